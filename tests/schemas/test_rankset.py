"""Rank sets: notation and algebra."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.schemas.rankset import RankSet

ranks = st.sets(st.integers(0, 300))


@given(ranks)
def test_notation_round_trips(members: set[int]) -> None:
    """What is printed is read back as the same set."""
    assert RankSet.parse(str(RankSet(members))) == RankSet(members)


@given(ranks, ranks)
def test_algebra_is_that_of_sets(first: set[int], second: set[int]) -> None:
    """Union, intersection, difference, size and order are those of Python's sets."""
    a, b = RankSet(first), RankSet(second)
    assert list(a | b) == sorted(first | second)
    assert list(a & b) == sorted(first & second)
    assert list(a - b) == sorted(first - second)
    assert len(a) == len(first)
    assert bool(a) == bool(first)


@given(ranks, st.integers(0, 5))
def test_bounded_form_says_how_many_are_left_out(members: set[int], runs: int) -> None:
    """The shown runs and the number behind ``+`` add up to the whole set."""
    text = RankSet(members).format(runs)
    shown, plus, left = text.partition("+")
    assert len(RankSet.parse(shown.rstrip("/"))) + int(left or 0) == len(members)
    assert bool(plus) == (len(list(RankSet(members).runs())) > runs)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("0-5", range(6)),
        ("60-62/65", [60, 61, 62, 65]),
        ("0-5,60-62", [*range(6), 60, 61, 62]),
        (" 1 / 2 ", [1, 2]),
        ("", []),
    ],
)
def test_both_separators_are_read(text: str, members: list[int]) -> None:
    """Slashes and commas separate runs; both ends of a run are included."""
    assert list(RankSet.parse(text)) == list(members)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "5-3", "1--2", "0-99999999999", "1.5"])
def test_nonsense_is_refused(text: str) -> None:
    """What is no rank notation is an error, never an empty set or gigabytes of bits."""
    with pytest.raises(ValueError, match="rank"):
        RankSet.parse(text)


def test_membership_takes_anything() -> None:
    """Asking for what cannot be a rank is answered with no."""
    assert 3 in RankSet([3])
    assert -1 not in RankSet([3])
    assert "3" not in RankSet([3])
