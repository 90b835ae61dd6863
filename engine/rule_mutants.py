"""Mutants of rules: each differs from the rules in one small thing that a test should notice.

A condition is negated or left out, a threshold is halved or doubled, a window is dropped.
Mutants work on syntax trees: all that did not change is the same object, which is how an
evaluator knows what it has answered already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from whyhang.engine.rule_trees import children, places, roots, walk
from whyhang.rules import ast
from whyhang.rules.ruleset import Rule, Ruleset
from whyhang.schemas.evidence import Span

Section = Literal["rule", "suppression", "def", "set", "ignore", "variable"]
Change: TypeAlias = tuple[str, Span, Any]

LEAVES = (
    ast.Ref,
    ast.Compare,
    ast.In,
    ast.Has,
    ast.Matches,
    ast.Unchanged,
    ast.Known,
    ast.Quantified,
    ast.Agree,
)
# The only percentage that may lie above 100 %: a process can use many cores.
UNBOUNDED = "cpu.rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """Rules with one change. ``name`` is the id or name of the changed item."""

    section: Section
    name: str
    change: str
    span: Span
    ruleset: Ruleset

    @property
    def title(self) -> str:
        """How people and ``accept:`` call it."""
        return f"{self.section} {self.name}: {self.change}"


def mutants(ruleset: Ruleset, own: frozenset[str], variables: frozenset[str]) -> Iterator[Mutant]:
    """All mutants of what stands in the ``own`` files; titles are unique."""
    seen: dict[str, int] = {}
    for mutant in _all(ruleset, own, variables):
        count = seen[mutant.title] = seen.get(mutant.title, 0) + 1
        yield mutant if count == 1 else replace(mutant, change=f"{mutant.change} (no. {count})")


def _all(ruleset: Ruleset, own: frozenset[str], variables: frozenset[str]) -> Iterator[Mutant]:
    for number, suppression in enumerate(ruleset.suppress):
        if suppression.span.file in own:
            for change, span, when in changes(suppression.when):
                entries = _swapped(ruleset.suppress, number, replace(suppression, when=when))
                changed = replace(ruleset, suppress=entries)
                yield _mutant("suppression", suppression.id, change, span, changed)
    for number, rule in enumerate(ruleset.rules):
        if rule.span.file in own:
            for change, span, mutated in _rule_changes(rule):
                changed = replace(ruleset, rules=_swapped(ruleset.rules, number, mutated))
                yield _mutant("rule", rule.id, change, span, changed)
    for name, definition in ruleset.defs.items():
        if definition.span.file in own:
            for change, span, expr in changes(definition):
                changed = replace(ruleset, defs={**ruleset.defs, name: expr})
                yield _mutant("def", name, change, span, changed)
    for name, group in ruleset.sets.items():
        if group.span.file in own:
            for change, span, mutated in changes(group):
                changed = replace(ruleset, sets={**ruleset.sets, name: mutated})
                yield _mutant("set", name, change, span, changed)
    for number, group in enumerate(ruleset.ignore):
        if group.span.file in own:
            for change, span, mutated in changes(group):
                changed = replace(ruleset, ignore=_swapped(ruleset.ignore, number, mutated))
                yield _mutant("ignore", str(number + 1), change, span, changed)
    yield from _variables(ruleset, variables)


def _variables(ruleset: Ruleset, variables: frozenset[str]) -> Iterator[Mutant]:
    """Variables that conditions use; a share is never more than all."""
    shares = {name for name, node in _uses(ruleset) if _is_share(node)}
    used = {name for name, _ in _uses(ruleset)}
    for name in sorted(variables & used):
        value = ruleset.variables[name]
        if isinstance(value, bool | str):
            continue
        for word, other in _scaled(value, bounded=name in shares):
            changed = replace(ruleset, variables={**ruleset.variables, name: other})
            yield _mutant("variable", name, word, Span(), changed)


def _uses(ruleset: Ruleset) -> Iterator[tuple[str, ast.Node]]:
    """The variables in conditions with the clause that each stands in."""
    for root in roots(ruleset):
        for node in walk(root):
            for child in children(node):
                if isinstance(child, ast.Variable):
                    yield child.name, node


def _is_share(node: ast.Node) -> bool:
    return isinstance(node, ast.Quantified | ast.Agree) or (
        isinstance(node, ast.Compare) and _bounded(node)
    )


def _mutant(section: Section, name: str, change: str, span: Span, ruleset: Ruleset) -> Mutant:
    return Mutant(section=section, name=name, change=change, span=span, ruleset=ruleset)


def _swapped(entries: tuple[Any, ...], number: int, entry: Any) -> tuple[Any, ...]:
    return (*entries[:number], entry, *entries[number + 1 :])


def _rule_changes(rule: Rule) -> Iterator[Change]:
    for change, span, when in changes(rule.when):
        yield change, span, replace(rule, when=when)
    if rule.suspects is not None:
        for change, span, suspects in changes(rule.suspects):
            yield f"suspects: {change}", span, replace(rule, suspects=suspects)


# --- trees ------------------------------------------------------------------------------------


def changes(node: ast.Node) -> Iterator[Change]:
    """Every change of a tree: what was done, where, and the changed tree."""
    yield from _own_changes(node)
    for name, number, child in places(node):
        for change, span, mutated in changes(child):
            if number is None:
                value: Any = mutated
            else:
                parts = getattr(node, name)
                value = (*parts[:number], mutated, *parts[number + 1 :])
            # Any: the field's type is that of the node it held before.
            updated: Mapping[str, Any] = {name: value}
            yield change, span, replace(node, **updated)


def _own_changes(node: ast.Node) -> Iterator[Change]:
    if isinstance(node, ast.And | ast.Or):
        for number, part in enumerate(node.parts):
            rest = node.parts[:number] + node.parts[number + 1 :]
            left = rest[0] if len(rest) == 1 else replace(node, parts=rest)
            yield f"drop `{shown(part)}`", part.span, left
    elif isinstance(node, ast.Held):
        yield f"drop `for {node.duration.text}`", node.duration.span, node.part
    elif isinstance(node, LEAVES):
        yield f"negate `{shown(node)}`", node.span, negated(node)
    yield from _thresholds(node)


def negated(node: ast.Expr) -> ast.Expr:
    """The opposite of a clause."""
    if isinstance(node, ast.In | ast.Known):
        return replace(node, negated=not node.negated)
    return ast.Not(span=node.span, text=f"not {node.text}", part=node)


def _thresholds(node: ast.Node) -> Iterator[Change]:
    names: tuple[str, ...] = ()
    bounded = True
    if isinstance(node, ast.Compare):
        names, bounded = ("left", "right"), _bounded(node)
    elif isinstance(node, ast.Held | ast.Unchanged):
        names, bounded = ("duration",), False
    elif isinstance(node, ast.Quantified | ast.Agree):
        names = ("amount",)
    for name in names:
        value = getattr(node, name)
        if not isinstance(value, ast.Literal_) or isinstance(value.value, str):
            continue
        for word, number in _scaled(value.value, bounded=bounded):
            other = replace(value, value=number, text=f"{number:g}")
            updated: Mapping[str, Any] = {name: other}
            change = f"{word} `{value.text}` in `{shown(node)}`"
            yield change, value.span, replace(node, **updated)


def _bounded(node: ast.Compare) -> bool:
    """Whether a percentage in the comparison cannot be more than all."""
    sides = (node.left, node.right)
    return not any(isinstance(side, ast.Field) and side.name == UNBOUNDED for side in sides)


def _scaled(value: float, *, bounded: bool) -> Iterator[tuple[str, float]]:
    """Half and twice a threshold; where that changes nothing there is no mutant."""
    if isinstance(value, int):
        half: float = value // 2
        twice: float = value * 2
    else:
        half, twice = value / 2, value * 2
        if bounded and value <= 1:
            twice = min(twice, 1.0)
    if half != value:
        yield "halve", half
    if twice != value:
        yield "double", twice


def shown(node: ast.Node) -> str:
    """The text of a clause in one line."""
    return " ".join(node.text.split())
