"""Durations, sizes and percentages."""

from __future__ import annotations

import pytest

from whyhang.rules.quantities import parse_duration, parse_percent, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20s", 20), ("1h30m", 5400), ("30d", 2592000), ("500ms", 0.5), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    """Units add up."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("5GB", 5 * 10**9), ("512MiB", 2**29), ("1000", 1000), ("2k", 2000), ("1.5 GB", 15 * 10**8)],
)
def test_sizes(text: str, size: int) -> None:
    """Decimal and binary units are told apart."""
    assert parse_size(text) == size


def test_percentages() -> None:
    """A percentage is a fraction of one."""
    assert parse_percent("90%") == 0.9


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5x", "-5s", "5s "])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A number needs its unit."""
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "GB", "5XB", "-1GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """A unit needs its number, and must be known."""
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)
