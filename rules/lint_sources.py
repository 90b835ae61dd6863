"""H307: rules that ask for what ``collect:`` switches off."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.rules import ast
from whyhang.rules.cycles import walk
from whyhang.rules.findings import Finding
from whyhang.rules.lint_input import LintInput, lint_finding
from whyhang.rules.ruleset import Rule, SuppressRule
from whyhang.schemas.config import CollectConfig

_STACK_FIELDS = ("top", "stack", "native")


def lint_disabled_sources(given: LintInput) -> Iterator[Finding]:
    """H307, once per rule and source."""
    collect = given.ruleset.config.collect
    both: list[Rule | SuppressRule] = [*given.ruleset.suppress, *given.ruleset.rules]
    for each in both:
        if not given.is_own(each.span):
            continue
        told: set[str] = set()
        for node, reason in _needs(each, given, collect):
            if reason in told:
                continue
            told.add(reason)
            # A definition of a pack is not what its reader can change.
            yield lint_finding(
                "H307",
                f"`{each.id}` asks for `{node.text}`, but `{reason}`",
                node.span if given.is_own(node.span) else each.when.span,
                "collect it, or drop the rule",
            )


def _needs(
    each: Rule | SuppressRule, given: LintInput, collect: CollectConfig
) -> Iterator[tuple[ast.Node, str]]:
    """The nodes that need a source that is switched off, and the setting that does it."""
    for node in _all_nodes(each.when, given, set()):
        if isinstance(node, ast.Known) and node.negated:
            continue
        field = _field(node)
        if field == "native" and collect.native == "never":
            yield node, "collect.native: never"
        elif (field == "ras" or field.startswith("ras.")) and collect.ras == "never":
            yield node, "collect.ras: never"
        elif field.startswith("gpu.") and collect.gpu == "never":
            yield node, "collect.gpu: never"
        elif isinstance(node, ast.And):
            yield from _kinds(node, given, collect)


def _kinds(
    node: ast.And, given: LintInput, collect: CollectConfig
) -> Iterator[tuple[ast.Node, str]]:
    """``proc.kind == "x" and …`` with stacks of a kind whose stacks are not read."""
    stacks = any(
        _field(inner).split(".")[0] in _STACK_FIELDS
        for part in node.parts
        for inner in _all_nodes(part, given, set())
    )
    for part in node.parts if stacks else ():
        if (
            isinstance(part, ast.Compare)
            and isinstance(part.left, ast.Field)
            and part.left.name == "proc.kind"
            and part.op == "=="
            and isinstance(part.right, ast.Literal_)
            and part.right.value not in collect.kinds
        ):
            yield part, f"collect.kinds: [{', '.join(collect.kinds)}]"


def _all_nodes(node: ast.Node, given: LintInput, seen: set[str]) -> Iterator[ast.Node]:
    """A node, all below it, and the definitions and sets that it names."""
    for inner in walk(node):
        if isinstance(inner, ast.Known) and inner.negated:
            continue
        yield inner
        body: ast.Node | None = None
        if isinstance(inner, ast.Ref):
            body = given.ruleset.defs.get(inner.name)
        elif isinstance(inner, ast.Named):
            body = given.ruleset.sets.get(inner.name)
        if body is not None and inner.text not in seen:
            seen.add(inner.text)
            yield from _all_nodes(body, given, seen)


def _field(node: ast.Node) -> str:
    return node.name if isinstance(node, ast.Field | ast.Ref) else ""
