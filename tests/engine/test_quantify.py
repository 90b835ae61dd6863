"""Quantifiers against brute force: every possible world is tried."""

from __future__ import annotations

import math
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from whyhang.engine.quantify import Tally, decide, need
from whyhang.rules.ast import Quantifier
from whyhang.schemas.truth import Truth

small = st.integers(0, 2)
tallies = st.builds(Tally, small, small, small, small, small, small)


def worlds(tally: Tally) -> set[tuple[int, int]]:
    """(yes, size) of every world: unknowns answered either way, doubtful members in or out."""
    found = set()
    unknown = range(tally.unknown + 1)
    inside = (
        range(tally.doubtful_yes + 1),
        range(tally.doubtful_no + 1),
        range(tally.doubtful_unknown + 1),
        range(tally.doubtful_unknown + 1),
    )
    for told_yes, yes, no, maybe_yes, maybe_no in product(unknown, *inside):
        if maybe_yes + maybe_no > tally.doubtful_unknown:
            continue
        size = tally.yes + tally.no + tally.unknown + yes + no + maybe_yes + maybe_no
        found.add((tally.yes + told_yes + yes + maybe_yes, size))
    return found


def holds(quantifier: Quantifier, yes: int, size: int, amount: float | int) -> bool:
    """The plain meaning of a quantifier in one world where everything is known."""
    share = isinstance(amount, float)
    if quantifier == "any":
        return yes >= 1
    if quantifier == "none":
        return yes == 0
    if quantifier == "all":
        return yes == size
    if quantifier == "most":
        return 2 * yes > size
    if quantifier == "at_least":
        return yes >= need(amount, size)
    if quantifier == "at_most":
        return yes <= (math.floor(round(amount * size, 9)) if share else amount)
    return yes == need(amount, size)


@given(tallies, st.sampled_from(["any", "none", "most", "at_least", "at_most", "exactly"]),
       st.sampled_from([1, 2, 3, 0.5, 0.9]))  # fmt: skip
def test_decided_results_hold_in_every_world(
    tally: Tally, quantifier: Quantifier, amount: float | int
) -> None:
    """True and false are said only where all possible worlds agree."""
    answers = {holds(quantifier, yes, size, amount) for yes, size in worlds(tally)}
    answer = decide(quantifier, tally, amount)
    if answer is not Truth.UNKNOWN:
        assert answers == {answer is Truth.TRUE}


@given(tallies, st.sampled_from(["any", "none", "most", "at_least"]), st.sampled_from([1, 2, 0.5]))
def test_unknown_is_said_only_where_worlds_differ(
    tally: Tally, quantifier: Quantifier, amount: float | int
) -> None:
    """A clause is not left open where nothing that is missing could change it."""
    answers = {holds(quantifier, yes, size, amount) for yes, size in worlds(tally)}
    if len(answers) == 1:
        assert decide(quantifier, tally, amount) is Truth.of(answers.pop())


@given(tallies)
def test_all_never_fires_over_nobody(tally: Tally) -> None:
    """`all` is true only where somebody is surely in the group and nobody may say no."""
    if decide("all", tally) is Truth.TRUE:
        assert tally.yes
        assert all(yes == size for yes, size in worlds(tally))


@given(tallies, st.sampled_from(["any", "none", "all", "most", "at_least", "at_most", "exactly"]))
def test_learning_never_flips_a_decision(tally: Tally, quantifier: Quantifier) -> None:
    """Answering an unknown member leaves a decided result as it is."""
    if not tally.unknown or decide(quantifier, tally, 2) is Truth.UNKNOWN:
        return
    for yes, no in ((1, 0), (0, 1)):
        learned = Tally(
            tally.yes + yes,
            tally.no + no,
            tally.unknown - 1,
            tally.doubtful_yes,
            tally.doubtful_no,
            tally.doubtful_unknown,
        )
        assert decide(quantifier, learned, 2) is decide(quantifier, tally, 2)


def test_shares_round_up_exactly() -> None:
    """90 % of ten are nine, in spite of binary fractions; a share of nobody is not met."""
    assert need(0.9, 10) == 9
    assert need(0.9, 11) == 10
    assert need(0.07, 100) == 7
    assert need(0.5, 0) == 1
    assert need(3, 1) == 3
