"""Kleene's laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.schemas.truth import Truth, all_of, any_of

truths = st.sampled_from(Truth)


@given(truths, truths, truths)
def test_logic_is_a_lattice(a: Truth, b: Truth, c: Truth) -> None:
    """And and or commute, associate and obey De Morgan; double negation is nothing."""
    assert a & b == b & a
    assert a | b == b | a
    assert (a & b) & c == a & (b & c)
    assert (a | b) | c == a | (b | c)
    assert ~(a & b) == ~a | ~b
    assert ~~a == a


@given(st.lists(truths), st.integers(0, 10), st.sampled_from([Truth.TRUE, Truth.FALSE]))
def test_learning_never_flips_a_decision(parts: list[Truth], place: int, value: Truth) -> None:
    """Replacing an unknown by a value leaves every decided result as it was."""
    if place >= len(parts) or parts[place] is not Truth.UNKNOWN:
        return
    learned = [*parts[:place], value, *parts[place + 1 :]]
    for combine in (all_of, any_of):
        if combine(parts) is not Truth.UNKNOWN:
            assert combine(learned) is combine(parts)


def test_a_truth_is_no_boolean() -> None:
    """An unknown used as a condition by mistake is an error, not silently true."""
    with pytest.raises(TypeError):
        bool(Truth.UNKNOWN)
