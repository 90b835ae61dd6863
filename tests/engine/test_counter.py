"""Which lines are progress."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whyhang.engine.counter import Move, StepCounter
from whyhang.schemas.progress import LogLine


def line(
    step: int | None, total: int | None = None, epoch: float | None = None, rank: int | None = None
) -> LogLine:
    return LogLine(kind="progress", step=step, total=total, epoch=epoch, rank=rank)


def moves(counter: StepCounter, lines: list[LogLine], start: float = 0.0) -> list[bool]:
    """Whether each line was progress, the lines being a second apart."""
    return [counter.advance(one, start + index) is not None for index, one in enumerate(lines)]


def test_only_higher_steps_are_progress() -> None:
    """A repeated or lower step, as other ranks print it, is none."""
    counter = StepCounter()
    assert moves(counter, [line(n) for n in (1, 2, 2, 1, 3)]) == [True, True, False, False, True]
    assert counter.step == 3


def test_explicit_epochs_order_before_steps() -> None:
    """A lower step of a later epoch is progress, any step of an earlier epoch is none."""
    counter = StepCounter()
    lines = [line(90, 100, 1), line(1, 100, 2), line(95, 100, 1), line(2, 100, 2)]
    assert moves(counter, lines) == [True, True, False, True]
    assert (counter.epoch, counter.step) == (2, 2)


def test_bar_that_starts_again_is_a_new_epoch() -> None:
    """A full bar that is drawn again from its begin counts on."""
    counter = StepCounter()
    lines = [line(step, 50) for _ in range(3) for step in range(1, 51, 7)]
    assert all(moves(counter, lines))
    assert counter.epoch == 2


def test_announced_epoch_without_a_full_bar() -> None:
    """Where the log names the epoch in a line of its own, the bar may have ended anywhere."""
    counter = StepCounter()
    moves(counter, [line(30, 100)])
    counter.announce_epoch(2)
    assert moves(counter, [line(1, 100)]) == [True]


def test_bar_that_falls_midway_is_no_epoch() -> None:
    """A bar far from its end does not start a new epoch by falling."""
    counter = StepCounter()
    assert moves(counter, [line(40, 100), line(2, 100), line(3, 100)]) == [True, False, False]


def test_counter_set_back_is_noticed() -> None:
    """Lower steps that rise at three moments belong to a job that resumed unannounced."""
    counter = StepCounter()
    moves(counter, [line(1000)])
    assert moves(counter, [line(n) for n in (500, 501, 502, 503)], 10.0) == [
        False,
        False,
        True,
        True,
    ]
    assert counter.step == 503


def test_stragglers_are_no_reset() -> None:
    """Slower ranks whose lines come between those of the fastest do not set the counter back."""
    counter = StepCounter()
    lines = [line(n, rank=n % 2) for pair in range(2, 20) for n in (pair + 1, pair - 1)]
    assert moves(counter, lines) == [True, False] * 18
    assert counter.step == 20
    # Many lower lines at one moment are one poll of a slower rank's own file.
    assert [counter.advance(line(n), 99.0, "rank1.log") for n in range(1, 20)] == [None] * 19


def test_announced_restart_takes_lower_steps() -> None:
    """After a marker of the job's start the next lower step begins another attempt."""
    counter = StepCounter()
    moves(counter, [line(1000)])
    counter.announce_restart()
    assert counter.advance(line(800), 5.0) == Move(restarted=True)
    assert moves(counter, [line(801)]) == [True]


def test_torn_number_does_not_hide_progress() -> None:
    """One absurdly high step masks the true ones for three lines only."""
    counter = StepCounter()
    moves(counter, [line(5), line(5_000_000)])
    assert moves(counter, [line(n) for n in (6, 7, 8, 9)], 10.0)[-2:] == [True, True]


def test_ranks_have_bars_of_their_own() -> None:
    """A slower rank's full bar does not raise the new epoch of the faster one."""
    counter = StepCounter()
    lines = [line(50, 50, rank=0), line(1, 50, rank=0), line(50, 50, rank=1), line(2, 50, rank=0)]
    assert moves(counter, lines) == [True, True, False, True]
    assert counter.per_rank == {0: 2, 1: 50}


def test_fraction_of_an_epoch() -> None:
    """Lines without a step count by their epoch's fraction, until steps are known."""
    counter = StepCounter()
    lines = [line(None, epoch=0.1), line(None, epoch=0.1), line(None, epoch=0.2)]
    assert moves(counter, lines) == [True, False, True]
    assert moves(counter, [line(7), line(None, epoch=0.3)]) == [True, False]
    assert counter.epoch == 0.3


def test_any_line_counts_where_nothing_else_is_known() -> None:
    """Lines without step and epoch are all progress."""
    assert moves(StepCounter(), [line(None), line(None)]) == [True, True]


def test_steps_between_lines() -> None:
    """A jump is told, so that reported durations can be multiplied."""
    counter = StepCounter()
    counter.advance(line(10), 0.0)
    assert counter.advance(line(110), 1.0) == Move(steps=100)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([None, 20]), st.integers(0, 5))))
def test_order_never_falls(seen: list[tuple[int, int | None, int]]) -> None:
    """Whatever lines come, accepted ones rise in the counter's own order."""
    counter = StepCounter()
    moment = 0.0
    before = None
    for step, total, wait in seen:
        moment += wait
        if counter.advance(line(step, total), moment) is not None:
            assert before is None or (counter._key is not None and counter._key > before)
            before = counter._key
            assert counter.step == step


@given(st.lists(st.integers(0, 10_000), min_size=1, unique=True))
def test_rising_steps_are_all_progress(steps: list[int]) -> None:
    """Each higher step is progress."""
    assert all(moves(StepCounter(), [line(step) for step in sorted(steps)]))
