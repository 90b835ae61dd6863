"""What holds of the watch whatever a job's rhythm."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.played_job import AUTO, Job
from whyhang.engine.threshold import confirm_seconds, phase_limit
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.progress import EventKind
from whyhang.schemas.words import Phase

MARKERS: dict[Phase, EventKind] = {
    "eval": "eval",
    "checkpoint": "checkpoint_save_start",
    "compile": "compile",
}
few = settings(max_examples=25)


def limit(job: Job) -> float:
    """The threshold of now."""
    seconds = job.watch.progress(job.now).threshold_seconds
    assert seconds is not None
    return seconds


@few
@given(st.floats(0.5, 1500.0), st.integers(1, 3), st.data())
def test_a_steady_job_is_never_suspected(gap: float, per_line: int, data: st.DataObject) -> None:
    """Steps that come at a pace, give or take a fifth, are no stall at any length."""
    job = Job()
    for number in range(1, 30):
        wobble = data.draw(st.floats(0.8, 1.2))
        job.wait(gap * wobble, every=5.0).say(step=number * per_line)
    assert set(job.states()) <= {"advancing"}


@few
@given(st.lists(st.floats(1.0, 3000.0), min_size=1, max_size=70))
def test_a_job_that_stops_is_always_found(gaps: list[float]) -> None:
    """Within the threshold and the time to confirm, which are bounded by the job's own pace."""
    job = Job()
    for number, gap in enumerate(gaps):
        job.wait(gap, every=5.0).say(step=number)
    stopped, threshold = job.now, limit(job)
    assert AUTO.floor <= threshold <= max(AUTO.ceiling, 10.0 * max(gaps))
    bound = threshold + confirm_seconds(AUTO, threshold)
    job.changes.clear()
    job.wait(bound + 12.0, every=5.0)
    confirmed = [change.at for change in job.changes if change.state == "confirmed"]
    assert len(confirmed) == 1
    assert stopped + bound <= confirmed[0] <= stopped + bound + 12.0


@few
@given(st.floats(1.0, 100.0), st.sampled_from(sorted(MARKERS)), st.floats(0.0, 50.0))
def test_a_marker_hides_a_stall_for_a_bounded_time(gap: float, phase: Phase, later: float) -> None:
    """However often it is repeated, a phase without movement is confirmed."""
    job = Job().steps(range(1, 12), gap).wait(later)
    longest = max(limit(job), phase_limit(AUTO, phase))
    opened = job.now
    while job.now < opened + 2.0 * longest:
        job.say(MARKERS[phase]).wait(300.0, every=5.0)
    assert "confirmed" in job.states()
    suspect = next(change for change in job.changes if change.state == "suspect")
    assert suspect.at <= opened + longest + 310.0


@few
@given(st.sampled_from(sorted(MARKERS)), st.booleans(), st.floats(1.0, 30.0))
def test_a_phase_left_open_ends_with_its_attempt(phase: Phase, announced: bool, gap: float) -> None:
    """A checkpoint that a crash cut short gives the next attempt's stall no time."""
    job = Job().steps(range(100, 112), gap).say(MARKERS[phase])
    if announced:
        job.say("init")
    else:
        job.watch.restart(job.now)
    job.steps(range(90, 102), gap)
    assert job.watch.phase == "train"
    before = len(job.states())
    job.wait(2.0 * limit(job) + 35.0)
    assert job.states()[before:] == ["suspect", "confirmed"]


@few
@given(st.integers(2, 200), st.floats(6.0, 2000.0))
def test_lines_out_of_a_buffer_raise_the_threshold(lines: int, between: float) -> None:
    """Lines that come all at once, then none for long, are measured by the time between."""
    job = Job()
    for flush in range(8):
        job.wait(between, every=5.0)
        for line in range(lines):
            job.say(step=flush * lines + line, seconds_per_step=between / lines)
    assert "confirmed" not in job.states()
    assert limit(job) >= max(AUTO.floor, 3.0 * between)


@few
@given(st.floats(1.0, 20.0), st.floats(200.0, 1e5), st.floats(0.0, 110.0))
def test_a_stopped_machine_is_credited(gap: float, pause: float, silent: float) -> None:
    """The time that this host slept is no silence; the silence before and after it is."""
    job = Job().steps(range(1, 20), gap).wait(silent)
    waited = job.watch.silent_for(job.now)
    job.now += pause
    job.tick()
    assert job.states() == ["advancing"]
    # Where between two ticks it fell asleep is not known.
    assert abs(job.watch.silent_for(job.now) - waited) <= 2.0
    job.wait(limit(job) - waited + 5.0)
    assert job.states() == ["advancing", "suspect"]


@few
@given(
    st.lists(st.floats(0.1, 5000.0), max_size=20),
    st.floats(1.0, 1000.0),
    st.sampled_from(["progress", "eval", "checkpoint_save_start", "checkpoint_save_end", "end"]),
)
def test_the_threshold_is_never_below_the_floor(
    gaps: list[float], floor: float, kind: EventKind
) -> None:
    """Whatever was seen, and whatever phase is open."""
    job = Job(DetectConfig(floor=floor))
    for number, gap in enumerate(gaps):
        job.wait(gap, every=5.0).say(step=number)
    job.say(kind, step=len(gaps))
    assert limit(job) >= floor
