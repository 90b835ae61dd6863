"""Quantifiers over groups with doubtful members: ``at least 90% of GROUP are PRED``.

A group has members and doubtful members, a predicate yes, no and unknown ones. The answer is the
one that every possible world gives, or unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from whyhang.rules.ast import Quantifier
from whyhang.schemas.truth import Truth


@dataclass(frozen=True, slots=True)
class Tally:
    """How many members say yes, no and unknown, and the same of the doubtful members."""

    yes: int
    no: int
    unknown: int
    doubtful_yes: int = 0
    doubtful_no: int = 0
    doubtful_unknown: int = 0

    @property
    def most(self) -> tuple[int, int]:
        """(yes, size) where everything unknown says yes and every doubtful no stays outside."""
        yes = self.yes + self.unknown + self.doubtful_yes + self.doubtful_unknown
        return yes, yes + self.no

    @property
    def least(self) -> tuple[int, int]:
        """(yes, size) where everything unknown says no and every doubtful yes stays outside."""
        no = self.no + self.unknown + self.doubtful_no + self.doubtful_unknown
        return self.yes, self.yes + no

    @property
    def all_yes(self) -> int:
        """The largest possible number of yes."""
        return self.most[0]


def decide(quantifier: Quantifier, tally: Tally, amount: float | int | None = None) -> Truth:
    """The truth of a quantified clause. ``amount`` is a count (int) or a fraction (float)."""
    if quantifier == "none":
        return ~decide("any", tally)
    if quantifier == "at_most":
        return _at_most(tally, amount or 0)
    if quantifier == "exactly":
        return _exactly(tally, amount or 0)
    if quantifier == "any":
        return _between(tally.yes >= 1, tally.all_yes >= 1)
    if quantifier == "all":
        return _all(tally)
    if quantifier == "most":
        return _between(_is_most(*tally.least), _is_most(*tally.most))
    assert amount is not None
    return _between(
        tally.least[0] >= need(amount, tally.least[1]), tally.most[0] >= need(amount, tally.most[1])
    )


def need(amount: float | int, size: int) -> int:
    """How many of ``size`` an amount asks for: a count itself, a share rounded up.

    A share of nobody is not met by nobody: it asks for one at least.
    """
    if isinstance(amount, int):
        return amount
    # 0.9 * 10 is 9.000000000000002 in binary: shares are meant exactly.
    return max(1, math.ceil(round(amount * size, 9)))


def _between(least: bool, most: bool) -> Truth:
    """The answer of a clause that more yes can only make truer."""
    if least:
        return Truth.TRUE
    return Truth.UNKNOWN if most else Truth.FALSE


def _is_most(yes: int, size: int) -> bool:
    return 2 * yes > size


def _all(tally: Tally) -> Truth:
    """True over somebody, never over nobody: an empty group is unknown."""
    if tally.no:
        return Truth.FALSE
    undecided = tally.unknown + tally.doubtful_no + tally.doubtful_unknown
    return Truth.TRUE if tally.yes and not undecided else Truth.UNKNOWN


def _at_most(tally: Tally, amount: float | int) -> Truth:
    def holds(yes: int, size: int) -> bool:
        bound = amount if isinstance(amount, int) else math.floor(round(amount * size, 9))
        return yes <= bound

    if holds(*tally.most):
        return Truth.TRUE
    return Truth.UNKNOWN if holds(*tally.least) else Truth.FALSE


def _exactly(tally: Tally, amount: float | int) -> Truth:
    if isinstance(amount, float):
        # A share of a group whose size is in doubt is a number in doubt.
        if tally.least != tally.most:
            return Truth.UNKNOWN
        return Truth.of(tally.yes == need(amount, tally.least[1]))
    if not tally.yes <= amount <= tally.all_yes:
        return Truth.FALSE
    return Truth.TRUE if tally.yes == tally.all_yes else Truth.UNKNOWN
