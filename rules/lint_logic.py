"""Lints about what conditions say: H302 never or always, H303 twice, H305, H309 overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whyhang.rules import ast
from whyhang.rules.contradiction import why_impossible
from whyhang.rules.cycles import walk
from whyhang.rules.findings import Finding
from whyhang.rules.lint_input import LintInput, lint_finding
from whyhang.rules.ruleset import Rule, Ruleset, SuppressRule
from whyhang.rules.shapes import Shape, conjuncts, shape


def lint_never_or_always(given: LintInput) -> Iterator[Finding]:
    """H302: rules and suppressions whose condition has only one answer."""
    for what, each in _both(given.ruleset):
        if not given.is_own(each.span) and not given.is_own(each.when.span):
            continue
        never = why_impossible(each.when, given.ruleset)
        if never is not None:
            verb = "fire" if what == "rule" else "act"
            yield lint_finding(
                "H302", f"{what} `{each.id}` can never {verb}", each.when.span, never
            )
            continue
        always = why_impossible(each.when, given.ruleset, positive=False)
        if always is not None:
            verb = "fires" if what == "rule" else "acts"
            yield lint_finding(
                "H302",
                f"{what} `{each.id}` always {verb}: its condition cannot be false",
                each.when.span,
            )


def _both(rules: Ruleset) -> Iterator[tuple[str, Rule | SuppressRule]]:
    for suppression in rules.suppress:
        yield "suppression", suppression
    for rule in rules.rules:
        yield "rule", rule


def lint_duplicates(given: LintInput) -> Iterator[Finding]:
    """H303: a part of a chain, or a whole condition, that stands there already."""
    for condition, _ in given.conditions():
        for node in walk(condition):
            if isinstance(node, ast.And | ast.Or):
                yield from _repeated_parts(node.parts)
    seen: dict[tuple[str, Shape], str] = {}
    for what, each in _both(given.ruleset):
        first = seen.setdefault((what, shape(each.when)), each.id)
        if first != each.id:
            message = f"`{each.id}` has the same condition as {what} `{first}`"
            yield lint_finding("H303", message, each.when.span)


def _repeated_parts(parts: Sequence[ast.Expr]) -> Iterator[Finding]:
    seen: set[Shape] = set()
    for part in parts:
        key = shape(part)
        if key in seen:
            yield lint_finding("H303", f"`{part.text}` stands in this condition twice", part.span)
        seen.add(key)


def lint_missing_suspects(given: LintInput) -> Iterator[Finding]:
    """H305: a local hang that names nobody."""
    for rule in given.ruleset.rules:
        if rule.verdict == "local_hang" and rule.suspects is None:
            span = given.key_span(given.assembly.rules[rule.id], "verdict")
            message = f"rule `{rule.id}` finds a local hang but names no suspects"
            yield lint_finding("H305", message, span, "add `suspects:` with a group of ranks")


def lint_overlaps(given: LintInput) -> Iterator[Finding]:
    """H309: two rules that fire together, and nothing but their order says which wins."""
    rules = given.ruleset.rules
    if not any(given.is_own(rule.span) for rule in rules):
        return
    facts = {
        rule.id: {shape(part) for part in conjuncts(rule.when, given.ruleset.defs)}
        for rule in rules
    }
    outranked = _outranked(rules)
    for special in rules:
        for general in rules:
            # Of a built-in pack's rules among themselves nothing is told, nor looked for.
            if not given.is_own(special.span) and not given.is_own(general.span):
                continue
            if special is general or _is_settled(special, general, outranked):
                continue
            if _follows(general.when, facts[special.id], given.ruleset) and not (
                _follows(special.when, facts[general.id], given.ruleset)
            ):
                yield lint_finding(
                    "H309",
                    f"whenever `{special.id}` fires, `{general.id}` fires too, and only their "
                    "order says which wins",
                    special.span if given.is_own(special.span) else general.span,
                    f"add `refines: {general.id}` to `{special.id}`",
                )


def _outranked(rules: Sequence[Rule]) -> dict[str, set[str]]:
    """The rules that each rule refines, directly or through others."""
    found = {rule.id: set(rule.refines) for rule in rules}
    for _ in rules:
        grown = {
            id: names.union(*(found.get(name, set()) for name in names))
            for id, names in found.items()
        }
        if grown == found:
            break
        found = grown
    return found


def _is_settled(one: Rule, other: Rule, outranked: dict[str, set[str]]) -> bool:
    if one.priority != other.priority:
        return True
    if other.id in outranked[one.id] or one.id in outranked[other.id]:
        return True
    return _answer(one) == _answer(other)


def _answer(rule: Rule) -> tuple[object, ...]:
    suspects = None if rule.suspects is None else shape(rule.suspects)
    return rule.verdict, rule.category, suspects


def _follows(expr: ast.Expr, facts: set[Shape], rules: Ruleset) -> bool:
    """Whether an expression is true wherever all the facts are."""
    if shape(expr) in facts:
        return True
    if isinstance(expr, ast.Ref) and expr.name in rules.defs:
        return _follows(rules.defs[expr.name], facts, rules)
    if isinstance(expr, ast.And):
        return all(_follows(part, facts, rules) for part in expr.parts)
    if isinstance(expr, ast.Or):
        return any(_follows(part, facts, rules) for part in expr.parts)
    return False
