"""Lints about quantifiers and unknown answers: H304, H310, H313."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.rules import ast
from whyhang.rules.fields import FIELDS
from whyhang.rules.findings import Finding
from whyhang.rules.lint_input import LintInput, lint_finding
from whyhang.rules.lint_walk import (
    NEVER_UNKNOWN,
    Visit,
    expanded,
    fields_asked,
    same_group,
    visits,
)


def lint_empty_groups(given: LintInput) -> Iterator[Finding]:
    """H304: a percentage of nobody, where nobody is taken for enough."""
    for visit in _visits(given):
        node = visit.node
        if not isinstance(node, ast.Quantified | ast.Agree) or node.amount is None:
            continue
        if not isinstance(given.value(node.amount), float):
            continue
        # Nobody is never enough for `at least`: only its negation is met by nobody.
        met = visit.positive if node.quantifier == "at_most" else not visit.positive
        if met and _may_be_empty(node.group, given) and not _has_members(node.group, visit, given):
            group = node.group.text
            yield lint_finding(
                "H304",
                f"`{group}` may be empty, and then this holds",
                node.span,
                f"add `count({group}) >= 1 and`",
            )


def _may_be_empty(group: ast.Group, given: LintInput) -> bool:
    whole = expanded(group, given.ruleset.sets)
    return not isinstance(whole, ast.Everything) or whole.kind in ("child", "thread")


def _has_members(group: ast.Group, visit: Visit, given: LintInput) -> bool:
    """Whether a guard says that somebody is in the group."""
    return any(_says_somebody(guard, group, given) for guard in visit.guards)


def _says_somebody(guard: ast.Expr, group: ast.Group, given: LintInput) -> bool:
    sets = given.ruleset.sets
    if isinstance(guard, ast.Quantified):
        somebody = guard.quantifier in ("any", "all", "most")
        return somebody and same_group(guard.group, group, sets)
    if not isinstance(guard, ast.Compare):
        return False
    left, op, right = guard.left, guard.op, guard.right
    if not isinstance(left, ast.Count | ast.Share):
        return False
    if not isinstance(right, ast.Literal_ | ast.Variable):
        return False
    number = given.value(right)
    if not isinstance(number, int | float):
        return False
    if same_group(left.group, group, sets):
        return (op == ">" and number >= 0) or (op in (">=", "==") and number > 0)
    whole = expanded(group, sets)
    return (
        isinstance(whole, ast.Except)
        and isinstance(left, ast.Share)
        and same_group(left.group, whole.without, sets)
        and ((op == "<" and number <= 1) or (op == "<=" and number < 1))
    )


def lint_blocking_all(given: LintInput) -> Iterator[Finding]:
    """H313: ``all`` over the ranks of the job, which one unread rank leaves undecided."""
    for visit in _visits(given):
        node = visit.node
        if not isinstance(node, ast.Quantified | ast.Agree) or node.quantifier != "all":
            continue
        if visit.scope != "job" or not _is_everybody(node.group):
            continue
        if isinstance(node, ast.Agree) or _may_be_unknown(node.predicate, (), given):
            yield lint_finding(
                "H313",
                f"one unread rank leaves `{node.text}` undecided",
                node.span,
                "ask for a share, such as `at least 90% of ranks`",
            )


def _is_everybody(group: ast.Group) -> bool:
    if isinstance(group, ast.Except):
        return _is_everybody(group.group)
    return isinstance(group, ast.Everything) and group.kind == "rank"


def _may_be_unknown(expr: ast.Expr, known: tuple[str, ...], given: LintInput) -> bool:
    """Whether a rank can leave an expression undecided."""
    if isinstance(expr, ast.And):
        known += tuple(
            part.field.name
            for part in expr.parts
            if isinstance(part, ast.Known) and not part.negated
        )
        return any(_may_be_unknown(part, known, given) for part in expr.parts)
    if isinstance(expr, ast.Or):
        return any(_may_be_unknown(part, known, given) for part in expr.parts)
    if isinstance(expr, ast.Not | ast.Held):
        return _may_be_unknown(expr.part, known, given)
    if isinstance(expr, ast.Known):
        return False
    if isinstance(expr, ast.Ref) and expr.name in given.ruleset.defs:
        return _may_be_unknown(given.ruleset.defs[expr.name], known, given)
    asked = fields_asked(expr)
    return not asked or any(
        each.name not in known and each.name not in NEVER_UNKNOWN for each in asked
    )


def lint_negations(given: LintInput) -> Iterator[Finding]:
    """H310: a negation that an unknown field leaves unanswered; information only."""
    for visit in _visits(given):
        for test in _negated(visit.node):
            for asked in fields_asked(test):
                if asked.name in NEVER_UNKNOWN or asked.name not in FIELDS:
                    continue
                if not visit.is_guarded(asked.name):
                    yield lint_finding(
                        "H310",
                        f"where `{asked.name}` is unknown, this is neither true nor false",
                        visit.node.span,
                        f"to count unknown as no, write `{asked.name} is known and …`",
                        "info",
                    )


def _negated(node: ast.Expr) -> Iterator[ast.Expr]:
    """The tests that a node turns round."""
    if isinstance(node, ast.Not):
        yield node.part
    elif isinstance(node, ast.Quantified) and node.quantifier == "none":
        yield node.predicate
    elif (isinstance(node, ast.Compare) and node.op == "!=") or (
        isinstance(node, ast.In) and node.negated
    ):
        yield node


def _visits(given: LintInput) -> Iterator[Visit]:
    for condition, scope in given.conditions():
        yield from visits(condition, scope, given.ruleset.defs)
