"""Walking the syntax trees of a set of rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from whyhang.rules import ast
from whyhang.rules.ruleset import Rule, Ruleset, SuppressRule


def roots(ruleset: Ruleset) -> Iterator[ast.Node]:
    """Every expression and group of the rules."""
    entries: tuple[Rule | SuppressRule, ...] = (*ruleset.rules, *ruleset.suppress)
    yield from (entry.when for entry in entries)
    yield from (rule.suspects for rule in ruleset.rules if rule.suspects is not None)
    yield from ruleset.defs.values()
    yield from ruleset.sets.values()
    yield from ruleset.ignore


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes directly below."""
    for _, _, child in places(node):
        yield child


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """A node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def places(node: ast.Node) -> Iterator[tuple[str, int | None, ast.Node]]:
    """The nodes directly below, with the field and the position in it that each has."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, ast.Node):
            yield field.name, None, value
        elif isinstance(value, tuple):
            for number, part in enumerate(value):
                if isinstance(part, ast.Node):
                    yield field.name, number, part
