"""What depends on what in a set of rules: which answers a changed name can change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from whyhang.engine.rule_trees import roots, walk
from whyhang.rules import ast
from whyhang.rules.ruleset import Ruleset

# ("def", "waiting"), ("set", "odd"), ("variable", "quorum")
Name: TypeAlias = tuple[str, str]


class Reach:
    """The names behind each node of the rules, directly or through other names."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._named: dict[Name, frozenset[Name]] = {}
        self._open: set[Name] = set()

    def of(self, node: ast.Node) -> frozenset[Name]:
        """All names that the value of a node depends on."""
        found: set[Name] = set()
        for each in walk(node):
            for name in self._direct(each):
                found.add(name)
                found |= self._behind(name)
        return frozenset(found)

    def _direct(self, node: ast.Node) -> Iterator[Name]:
        if isinstance(node, ast.Ref) and node.name in self._ruleset.defs:
            yield "def", node.name
        elif isinstance(node, ast.Named):
            yield "set", node.name
        elif isinstance(node, ast.Variable):
            yield "variable", node.name

    def _behind(self, name: Name) -> frozenset[Name]:
        if name not in self._named and name not in self._open:
            kind, text = name
            self._open.add(name)
            body: ast.Node | None = None
            if kind == "def":
                body = self._ruleset.defs.get(text)
            elif kind == "set":
                body = self._ruleset.sets.get(text)
            self._named[name] = frozenset() if body is None else self.of(body)
            self._open.discard(name)
        return self._named.get(name, frozenset())


def stale_nodes(ruleset: Ruleset) -> dict[Name, frozenset[int]]:
    """For each name the ids of all nodes whose value may change when its meaning does."""
    reach = Reach(ruleset)
    found: dict[Name, set[int]] = {}
    for root in roots(ruleset):
        for node in walk(root):
            for name in reach.of(node):
                found.setdefault(name, set()).add(id(node))
    return {name: frozenset(ids) for name, ids in found.items()}
