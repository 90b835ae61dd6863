"""Series in the expanding notation of rule tests."""

from __future__ import annotations

import pytest

from whyhang.rules.quantities import parse_duration
from whyhang.rules.series import expand, expand_words, step_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0s+30sx3", (0.0, 30.0, 60.0, 90.0)),
        ("5m", (300.0,)),
        ("5mx2", (300.0, 300.0, 300.0)),
        ("90s-30sx2 _ 1m", (90.0, 60.0, 30.0, None, 60.0)),
        ("_x1 10s", (None, None, 10.0)),
        ("1h+1h30mx1", (3600.0, 9000.0)),
    ],
)
def test_numbers(text: str, values: tuple[float | None, ...]) -> None:
    """A count says how many values follow the first."""
    assert expand(text, parse_duration) == values


def test_words() -> None:
    """Words repeat; an x inside a word is no count."""
    assert expand_words("advancingx1 exit stalled", str) == (
        "advancing",
        "advancing",
        "exit",
        "stalled",
    )


@pytest.mark.parametrize(
    "text",
    ["", "0s+30s", "_+30sx2", "five", "0s+30sx1000", "0s+1sx999 5s", "30x2"],
)
def test_what_is_no_series(text: str) -> None:
    """Nonsense and endless series are refused."""
    with pytest.raises(ValueError, match=r"series|step|often|duration|values"):
        expand(text, parse_duration)


def test_words_have_no_steps() -> None:
    """Only numbers can grow."""
    with pytest.raises(ValueError, match="no step"):
        expand_words("stalled+1x3", str)


@pytest.mark.parametrize(("text", "step"), [("0s+30sx20", 30.0), ("5mx3", None), ("_ 9s-1sx2", 1)])
def test_step(text: str, step: float | None) -> None:
    """The step of the time since the last step is the time between two samples."""
    assert step_of(text, parse_duration) == step
