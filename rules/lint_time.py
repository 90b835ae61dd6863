"""Lints about time: H306 too short, H311 suppressions without an end, H314 too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from whyhang.rules import ast
from whyhang.rules.cycles import walk
from whyhang.rules.findings import Finding
from whyhang.rules.lint_input import LintInput, lint_finding
from whyhang.schemas.config import Config

# Two samples are never taken closer together than this, unless `detect.confirm` says so.
SHORTEST_SECONDS = 10.0
# Without `detect.confirm` a quarter of the threshold passes between two samples; see
# `confirm_seconds` in engine/threshold.py.
CONFIRM_SHARE = 0.25
# While one of these holds, steps advance or the job is over: no hang can be hidden.
_NO_HANG = ("log.progressing", "log.slow", "job.ended")


def lint_windows(given: LintInput) -> Iterator[Finding]:
    """H306 and H314: windows that samples cannot tell from none, or never fill."""
    config = given.ruleset.config
    shortest, longest = shortest_interval(config), longest_span(config)
    for condition, _ in given.conditions():
        for node in walk(condition):
            if not isinstance(node, ast.Held | ast.Unchanged):
                continue
            seconds, text = given.seconds(node.duration), node.duration.text
            if seconds < shortest:
                yield lint_finding(
                    "H306",
                    f"`for {text}` asks no more than that two samples agree: they are "
                    f"{shortest:g} s apart or more",
                    node.duration.span,
                    f"write {shortest:g}s or longer",
                )
            elif seconds > longest:
                yield lint_finding(
                    "H314",
                    f"`for {text}` is longer than the {longest:g} s that samples span at most",
                    node.duration.span,
                    "shorten it, or set `detect: {confirm: …}` to a longer time",
                )


def shortest_interval(config: Config) -> float:
    """The least time in seconds between two samples."""
    if config.detect.confirm is None:
        return SHORTEST_SECONDS
    return min(SHORTEST_SECONDS, config.detect.confirm)


def longest_span(config: Config) -> float:
    """The most time in seconds that the samples of a suspicion span before the verdict."""
    detect = config.detect
    if detect.confirm is not None:
        return max(SHORTEST_SECONDS, detect.confirm)
    if detect.stall is not None:
        return min(60.0, max(SHORTEST_SECONDS, CONFIRM_SHARE * detect.stall))
    return CONFIRM_SHARE * max(detect.ceiling, detect.first_step, *detect.phases.values())


def lint_unbounded(given: LintInput) -> Iterator[Finding]:
    """H311: suppressions that could hide a real hang for ever; an error in packs."""
    packs = given.packs()
    for each in given.ruleset.suppress:
        if not ends(each.when, given.ruleset.defs):
            yield lint_finding(
                "H311",
                f"suppression `{each.id}` has no upper bound in time: it can hide a hang for ever",
                each.when.span,
                "add `and log.stalled_for < 30m`",
                "error" if each.span.file in packs else "warning",
            )


def ends(expr: ast.Expr, defs: Mapping[str, ast.Expr], *, positive: bool = True) -> bool:
    """Whether an expression cannot stay true (or false) for ever while the job hangs."""
    if isinstance(expr, ast.Not):
        return ends(expr.part, defs, positive=not positive)
    if isinstance(expr, ast.Held):
        return positive and ends(expr.part, defs)
    if isinstance(expr, ast.And | ast.Or):
        enough = any if isinstance(expr, ast.And) is positive else all
        return enough(ends(part, defs, positive=positive) for part in expr.parts)
    if isinstance(expr, ast.Quantified):
        somebody = expr.quantifier not in ("none", "at_most", "exactly")
        return positive and somebody and ends(expr.predicate, defs)
    if isinstance(expr, ast.Ref):
        if expr.name in defs:
            return ends(defs[expr.name], defs, positive=positive)
        return expr.name in _NO_HANG if positive else expr.name == "log.stalled"
    return isinstance(expr, ast.Compare) and _bounds(expr, positive)


def _bounds(node: ast.Compare, positive: bool) -> bool:
    left, op = node.left, node.op
    if isinstance(node.right, ast.Field):
        left, op = node.right, ast.MIRRORED[node.op]
    if not isinstance(left, ast.Field) or left.name != "log.stalled_for":
        return False
    return op in (("<", "<=") if positive else (">", ">="))
