"""The arithmetic of how long a job may stay silent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.engine.threshold import (
    Rhythm,
    confirm_seconds,
    phase_limit,
    phase_threshold,
    train_threshold,
)
from whyhang.schemas.config import DetectConfig

AUTO = DetectConfig()
GAPS = st.lists(st.floats(1.0, 5000.0), max_size=64)


def after(gaps: list[float], healed: list[float] | None = None) -> float:
    return train_threshold(AUTO, Rhythm(gaps=gaps, healed=healed or []), stepped=True)


@pytest.mark.parametrize(
    ("gaps", "threshold"),
    [
        ([2.0] * 9, 120.0),  # the floor
        ([30.0] * 9, 300.0),  # ten medians
        ([30.0] * 8 + [200.0], 600.0),  # three times the longest
        ([10.0, 20.0] * 5, 15.0 + 30.0 * 1.4826 * 5.0),  # the spread
        ([200.0] * 9, 2000.0),
        ([500.0] * 9, 5000.0),  # past the ceiling where the job itself is slower
        ([100.0] * 8 + [3000.0], 3600.0),  # the ceiling
    ],
)
def test_the_largest_term_decides(gaps: list[float], threshold: float) -> None:
    """Median, spread and the longest gap each may decide, between floor and ceiling."""
    assert after(gaps) == pytest.approx(threshold)


def test_healed_gaps_are_remembered() -> None:
    """A gap that ended by itself is not suspected again."""
    assert after([2.0] * 9, healed=[300.0]) == 450.0


@pytest.mark.parametrize("gaps", [[], [5.0] * 4])
def test_warming_up(gaps: list[float]) -> None:
    """Before the first step, and until five gaps are known, fixed limits hold."""
    assert train_threshold(AUTO, Rhythm(gaps=gaps), stepped=False) == 3600.0
    assert train_threshold(AUTO, Rhythm(gaps=gaps), stepped=True) == 1800.0


def test_reported_durations_shorten_the_warm_up() -> None:
    """A line that tells how long its steps take makes waiting for five gaps needless."""
    assert train_threshold(AUTO, Rhythm(reported=[40.0]), stepped=True) == 400.0
    slow = Rhythm(gaps=[2.0] * 9, reported=[40.0])
    assert train_threshold(AUTO, slow, stepped=True) == 400.0


def test_fixed_stall_overrides_floor_and_first_step() -> None:
    """`stall: 20s` holds from the start of the job."""
    fixed = DetectConfig(stall=20.0)
    for stepped in (False, True):
        assert train_threshold(fixed, Rhythm(gaps=[90.0] * 9), stepped=stepped) == 20.0


@pytest.mark.parametrize(
    ("config", "threshold", "confirm"),
    [
        (AUTO, 100.0, 30.0),
        (AUTO, 1000.0, 250.0),
        (DetectConfig(confirm=7.0), 1000.0, 7.0),
        (DetectConfig(stall=20.0), 20.0, 10.0),
        (DetectConfig(stall=100.0), 100.0, 25.0),
        (DetectConfig(stall=3600.0), 3600.0, 60.0),
    ],
)
def test_confirmation(config: DetectConfig, threshold: float, confirm: float) -> None:
    """A suspicion lasts a quarter of the threshold, within bounds, or as configured."""
    assert confirm_seconds(config, threshold) == confirm


def test_phase_without_history_has_its_limit() -> None:
    """An evaluation may take an hour, a checkpoint half of one, unless configured."""
    assert phase_threshold(AUTO, "eval", 120.0, ()) == 3600.0
    assert phase_threshold(AUTO, "checkpoint", 120.0, (60.0,)) == 1800.0
    assert phase_limit(DetectConfig(phases={"eval": 90.0}), "eval") == 90.0


def test_phase_learns_from_its_history() -> None:
    """Two earlier ones bound the next, never below training's threshold, never past the limit."""
    assert phase_threshold(AUTO, "eval", 120.0, (60.0, 100.0)) == 420.0
    assert phase_threshold(AUTO, "eval", 900.0, (60.0, 100.0)) == 900.0
    assert phase_threshold(AUTO, "eval", 120.0, (60.0, 3000.0)) == 3600.0


def test_fixed_stall_holds_in_phases() -> None:
    """A fixed threshold is not stretched by markers, unless the phase is configured too."""
    fixed = DetectConfig(stall=20.0)
    assert phase_threshold(fixed, "checkpoint", 20.0, ()) == 20.0
    assert phase_threshold(fixed, "end", 20.0, ()) == 200.0
    both = DetectConfig(stall=20.0, phases={"checkpoint": 90.0})
    assert phase_threshold(both, "checkpoint", 20.0, ()) == 90.0


@given(GAPS, st.lists(st.floats(1.0, 5000.0), max_size=8))
def test_threshold_stays_in_its_bounds(gaps: list[float], healed: list[float]) -> None:
    """Never below the floor, never past the ceiling that a slow job raises."""
    threshold = after(gaps, healed)
    assert threshold >= AUTO.floor
    assert threshold <= max(
        AUTO.ceiling, 10.0 * max(gaps, default=0.0), 1.5 * max(healed, default=0)
    )


@given(st.floats(1.0, 350.0), st.integers(5, 64))
def test_a_regular_job_is_not_suspected(gap: float, count: int) -> None:
    """A regular job has at least ten of its gaps."""
    assert after([gap] * count) >= 10.0 * gap * 0.999
