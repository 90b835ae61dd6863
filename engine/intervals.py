"""Comparing values that may be in doubt: a number between its smallest and its largest."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from whyhang.schemas.truth import Truth

Interval: TypeAlias = tuple[Any, Any]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def compare(op: str, left: Interval | None, right: Interval | None) -> Truth:
    """Decided only where every pair of possible values gives the same answer."""
    if left is None or right is None:
        return Truth.UNKNOWN
    if op in ("==", "!=") and (left[0] != left[1] or right[0] != right[1]):
        # Between the ends lie values that would be equal, unless the intervals do not touch.
        disjoint = left[1] < right[0] or right[1] < left[0]
        return Truth.of(op == "!=") if disjoint else Truth.UNKNOWN
    answers = {OPERATORS[op](a, b) for a in left for b in right}
    return Truth.of(answers.pop()) if len(answers) == 1 else Truth.UNKNOWN
