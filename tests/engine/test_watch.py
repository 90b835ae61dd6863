"""The progress state machine, told the time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.played_job import STALL, Job
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.progress import EventKind


def test_regular_steps_then_stop() -> None:
    """A job that stops is suspected at its threshold and confirmed once, never twice."""
    job = Job().steps(range(1, 21), 30.0)
    stopped = job.now
    job.wait(2000.0)
    assert job.states() == ["advancing", "suspect", "confirmed"]
    suspect, confirmed = job.changes[1:]
    assert suspect.threshold_seconds == 300.0
    assert stopped + 300.0 < suspect.at <= stopped + 302.0
    assert stopped + 375.0 <= confirmed.at <= stopped + 378.0
    assert job.watch.progress(job.now).state == "stalled"


def test_fast_job_is_suspected_at_the_floor() -> None:
    """Two minutes of silence are suspect in a job with steps of seconds."""
    job = Job().steps(range(1, 30), 2.5).wait(125.0)
    assert job.states() == ["advancing", "suspect"]


def test_healed_stall_is_remembered() -> None:
    """A stall that ended by itself heals, and its length is not suspected again."""
    job = Job().steps(range(1, 21), 10.0).wait(128.0).say(step=21)
    assert job.states() == ["advancing", "suspect", "healed"]
    job.steps(range(22, 32), 10.0).wait(150.0)
    assert job.states() == ["advancing", "suspect", "healed"]
    job.wait(60.0)
    assert job.states()[-1] == "suspect"


def test_progress_arms_again_after_confirmation() -> None:
    """A confirmed stall that resumes is watched anew."""
    job = Job(STALL).steps(range(1, 5), 5.0).wait(60.0).say(step=5).wait(60.0)
    once = ["suspect", "confirmed"]
    assert job.states() == ["advancing", *once, "healed", *once]


def test_steps_slower_than_a_fixed_stall_are_never_confirmed() -> None:
    """Steps of 25 s under `stall: 20s` are suspected and healed each time."""
    job = Job(STALL).steps(range(1, 4), 5.0).steps(range(4, 12), 25.0)
    states = job.states()
    assert states.count("suspect") == states.count("healed") == 8
    assert "confirmed" not in states
    assert job.watch.state == "advancing"


def test_fixed_stall_counts_from_the_start_without_a_step() -> None:
    """Where no step was ever seen, a fixed stall counts from the job's start."""
    job = Job(STALL).wait(10.0).say("init").say("compile").wait(35.0)
    assert job.states() == ["suspect", "confirmed"]
    assert job.changes[0].at == 21.0
    assert job.watch.progress(job.now).step is None


def test_first_step_has_an_hour() -> None:
    """Before the first step nothing is suspected for an hour; the state is unknown."""
    job = Job().wait(3500.0, every=10.0)
    assert job.states() == []
    assert job.watch.progress(job.now).state == "unknown"
    assert job.watch.progress(job.now).phase == "init"
    job.wait(200.0)
    assert job.states() == ["suspect"]


def test_loading_that_moves_extends_the_first_step() -> None:
    """Bars of loading are signs of life before the first step, for three hours at most."""
    job = Job()
    for _ in range(10):
        job.wait(1000.0, every=10.0)
        job.watch.alive(job.now)
    assert job.states() == []
    assert job.watch.phase == "load"
    for _ in range(10):
        job.wait(1000.0, every=10.0)
        job.watch.alive(job.now)
    assert job.states()[0] == "suspect"


def test_three_epochs_of_a_bare_bar() -> None:
    """A bar that restarts with the same total is progress throughout."""
    job = Job()
    for _ in range(3):
        job.steps(range(1, 31), 4.0, total=30)
    assert set(job.states()) <= {"advancing", "finishing"}
    assert (job.watch.progress(job.now).epoch, job.watch.progress(job.now).step) == (2, 30)


def test_final_step_is_finishing() -> None:
    """Silence behind the last step is no stall for the time that an end may take."""
    job = Job().steps(range(1, 31), 4.0, total=30).wait(1700.0)
    assert job.states() == ["advancing", "finishing"]
    assert job.watch.progress(job.now).state == "advancing"
    assert job.watch.progress(job.now).phase == "end"
    job.wait(200.0)
    assert job.states()[-1] == "suspect"


def test_end_marker_is_finishing_under_a_fixed_stall() -> None:
    """An end marker gives ten times a fixed stall, not for ever."""
    job = Job(STALL).steps(range(1, 31), 4.0).say("end").wait(190.0)
    assert job.states() == ["advancing", "finishing"]
    job.wait(40.0)
    assert job.states() == ["advancing", "finishing", "suspect", "confirmed"]


def test_end_of_an_epoch_learns_its_length() -> None:
    """From the third epoch on, a stall between epochs is found in minutes."""
    job = Job()
    for _ in range(4):
        job.steps(range(1, 31), 4.0, total=30).wait(10.0)
    job.wait(170.0)
    assert job.states()[-1] == "suspect"


def test_evaluation_has_its_own_time() -> None:
    """A marked evaluation is silent beyond the training's threshold without suspicion."""
    job = Job().steps(range(1, 21), 10.0).say("eval").wait(900.0)
    assert job.states() == ["advancing"]
    assert job.watch.progress(job.now).phase == "eval"
    job.say(step=21).wait(115.0)
    assert job.states() == ["advancing"]
    # The gap with the evaluation in it is none of training: the threshold is as before.
    job.wait(10.0)
    assert job.states()[-1] == "suspect"


def test_end_of_a_phase_heals_a_suspicion() -> None:
    """A checkpoint that ends late was no stall; once confirmed only a step heals."""
    job = Job().steps(range(1, 21), 10.0).say("checkpoint_save_start").wait(1810.0)
    job.say("checkpoint_save_end").wait(100.0)
    assert job.states() == ["advancing", "suspect", "healed"]
    job.say("checkpoint_save_start").wait(500.0)
    assert job.states() == ["advancing", "suspect", "healed", "suspect", "confirmed"]
    job.say("checkpoint_save_end").wait(5.0)
    assert job.watch.state == "confirmed"


def test_end_of_a_named_epoch_is_not_finishing() -> None:
    """Where lines name their epoch a full counter is the end of that epoch only."""
    job = Job()
    for step in range(1, 31):
        job.wait(4.0).say(step=step, total=30, epoch=1)
    assert job.states() == ["advancing"]
    assert job.watch.phase == "end"


def test_dangling_phase_is_bounded() -> None:
    """A checkpoint that begins and never ends is suspected after its limit."""
    job = Job().steps(range(1, 21), 10.0).say("checkpoint_save_start", step=20).wait(1790.0)
    assert job.states() == ["advancing"]
    job.wait(20.0)
    assert job.states() == ["advancing", "suspect"]


def test_opening_a_phase_again_does_not_extend_it() -> None:
    """Repeated begin markers without any movement share one limit."""
    job = Job().steps(range(1, 21), 10.0)
    for _ in range(8):
        job.say("checkpoint_save_start").wait(300.0)
    assert "confirmed" in job.states()
    job = Job().steps(range(1, 21), 10.0)
    for _ in range(8):
        job.say("checkpoint_save_start").wait(300.0).say("checkpoint_save_end").wait(1.0)
    assert "suspect" in job.states()


def test_phase_that_opens_again_has_what_is_left() -> None:
    """Of a checkpoint's half hour the second one before any progress has only the rest."""
    job = Job().steps(range(1, 21), 10.0).say("checkpoint_save_start").wait(1000.0)
    job.say("checkpoint_save_end").say("checkpoint_save_start").wait(790.0)
    assert job.states() == ["advancing"]
    job.wait(20.0)
    assert job.states() == ["advancing", "suspect"]


def test_progress_renews_a_phases_limit() -> None:
    """Each checkpoint between steps has its own half hour."""
    job = Job().steps(range(1, 21), 10.0)
    for step in range(21, 25):
        job.say("checkpoint_save_start").wait(1000.0).say("checkpoint_save_end").say(step=step)
    assert job.states() == ["advancing"]


def test_end_marker_closes_a_phase() -> None:
    """Behind a checkpoint's end the training's own threshold counts again, from there."""
    job = Job().steps(range(1, 21), 10.0).say("checkpoint_save_start").wait(500.0)
    job.say("checkpoint_save_end").wait(115.0)
    assert job.states() == ["advancing"]
    job.wait(10.0)
    assert job.states() == ["advancing", "suspect"]


def test_phase_learns_its_usual_length() -> None:
    """After two evaluations the third is suspected by their length, not after an hour."""
    job = Job()
    for first in (1, 11, 21):
        job.steps(range(first, first + 10), 10.0).say("eval").wait(50.0)
    assert job.states() == ["advancing"]
    job.wait(270.0)
    assert job.states() == ["advancing", "suspect"]


def test_moving_evaluation_is_alive() -> None:
    """An evaluation whose own counter moves may take longer than its limit."""
    job = Job().steps(range(1, 21), 10.0)
    for done in range(8):
        job.say("eval", step=done, total=9).wait(1000.0, every=10.0)
    assert job.states() == ["advancing"]


def test_moving_bar_of_another_phase_is_alive() -> None:
    """The latch's other bars keep a silent training from being suspected."""
    job = Job(STALL).steps(range(1, 5), 5.0)
    for _ in range(10):
        job.wait(15.0)
        job.watch.alive(job.now)
    assert job.states() == ["advancing"]
    job.wait(45.0)
    assert job.states() == ["advancing", "suspect", "confirmed"]


def test_fixed_stall_is_not_stretched_by_markers() -> None:
    """`stall: 20s` means 20 s in a checkpoint too, unless the phase is configured."""
    job = Job(STALL).steps(range(1, 5), 5.0).say("checkpoint_save_start").wait(25.0)
    assert job.states() == ["advancing", "suspect"]
    both = DetectConfig(stall=20.0, phases={"checkpoint": 90.0})
    job = Job(both).steps(range(1, 5), 5.0).say("checkpoint_save_start").wait(80.0)
    assert job.states() == ["advancing"]


def test_reported_seconds_spare_the_warm_up() -> None:
    """Lines that tell their steps' duration give a threshold from the second line on."""
    job = Job().say(step=100, seconds_per_step=2.0).wait(200.0)
    job.say(step=200, seconds_per_step=2.0).wait(1990.0)
    assert job.watch.progress(job.now).threshold_seconds == 2000.0
    assert job.states() == ["advancing"]
    assert job.wait(20.0).states() == ["advancing", "suspect"]


def test_buffered_lines_are_no_rhythm() -> None:
    """Lines that a buffer held back and that come all at once do not shorten the threshold."""
    job = Job()
    for first in range(1, 600, 100):
        job.wait(1300.0, every=10.0)
        for number in range(first, first + 100):
            job.say(step=number, seconds_per_step=13.0)
    assert job.states() == ["advancing"]
    threshold = job.watch.progress(job.now).threshold_seconds
    assert threshold is not None and threshold >= 1800.0


def test_many_lines_in_one_poll_are_one_event() -> None:
    """Steps that one poll reads together neither shorten the median nor flood the history."""
    job = Job()
    for first in range(0, 200, 10):
        job.wait(2.0)
        for number in range(first, first + 10):
            job.say(step=number)
    assert job.watch.progress(job.now).median_interval_seconds == 2.0
    assert len(job.watch.history()) == 20


def test_suspended_host_is_credited() -> None:
    """After a pause of the host itself nothing is suspected at once."""
    job = Job().steps(range(1, 21), 2.0)
    job.now += 5000.0
    job.tick()
    assert job.states() == ["advancing"]
    assert job.watch.silent_for(job.now) < 5.0
    job.wait(125.0)
    assert job.states() == ["advancing", "suspect"]


def test_lines_behind_a_suspension_do_not_spoil_the_rhythm() -> None:
    """A line that is read before the first tick after the pause gives no long gap."""
    job = Job().steps(range(1, 21), 2.0)
    job.now += 5000.0
    job.say(step=21).steps(range(22, 30), 2.0)
    assert job.watch.progress(job.now).threshold_seconds == 120.0


def test_busy_watcher_is_no_suspension() -> None:
    """Time that the watcher itself spent on samples counts as silence."""
    job = Job(STALL).steps(range(1, 21), 2.0).wait(21.0)
    assert job.states() == ["advancing", "suspect"]
    job.now += 30.0
    job.watch.worked(job.now)
    assert job.states() == ["advancing", "suspect", "confirmed"]


def test_restart_forgets_steps_and_phases() -> None:
    """Another attempt may begin at a lower step and waits for its first one anew."""
    job = Job().steps(range(1, 21), 10.0).say("checkpoint_save_start")
    job.watch.restart(job.now)
    job.wait(1000.0)
    assert job.states() == ["advancing", "warming"]
    assert job.watch.silent_for(job.now) == 1000.0
    job.steps(range(10, 20), 10.0)
    assert job.watch.progress(job.now).step == 19
    assert job.states() == ["advancing", "warming", "advancing"]


def test_start_marker_in_the_log_is_a_restart() -> None:
    """A job that resumes in the same log is given time to load and may fall back."""
    job = Job().steps(range(100, 120), 10.0).say("init").wait(900.0)
    assert job.states() == ["advancing"]
    job.say(step=50)
    assert job.watch.progress(job.now).step == 50
    assert job.states() == ["advancing"]


def test_reported_fault_confirms_a_suspicion() -> None:
    """A collective's timeout ends the wait of a suspicion, and makes nobody suspect."""
    job = Job().steps(range(1, 21), 10.0)
    job.watch.hasten()
    job.wait(119.0)
    assert job.states() == ["advancing"]
    job.wait(2.0)
    assert job.states() == ["advancing", "suspect"]
    job.watch.hasten()
    job.wait(1.0)
    assert job.states() == ["advancing", "suspect", "confirmed"]


def test_progress_takes_a_fault_back() -> None:
    """What was hastened once is not hastened in the next suspicion."""
    job = Job().steps(range(1, 21), 10.0).wait(121.0)
    job.watch.hasten()
    job.say(step=21).wait(190.0)
    assert job.states() == ["advancing", "suspect", "healed", "suspect"]


def test_slow_is_told_from_stalled() -> None:
    """Steps that take more than five times as long as usual are slow, until they recover."""
    job = Job().steps(range(1, 40), 2.0).steps(range(40, 46), 15.0)
    assert job.states() == ["advancing", "slow"]
    assert job.watch.progress(job.now).state == "slow"
    job.steps(range(46, 60), 2.0)
    assert job.states() == ["advancing", "slow", "advancing"]


def test_more_steps_between_lines_are_not_slow() -> None:
    """A job that logs less often, at the same pace, is not slow."""
    job = Job().steps(range(1, 40), 2.0).steps(range(50, 200, 10), 20.0)
    assert job.states() == ["advancing"]


def test_fractions_of_epochs_are_progress() -> None:
    """A log without steps advances by its epoch's fraction."""
    job = Job(STALL)
    for number in range(10):
        job.wait(10.0).say(epoch=number / 100)
    assert job.states() == ["advancing"]
    assert job.wait(60.0).states() == ["advancing", "suspect", "confirmed"]


def test_chatter_is_no_progress() -> None:
    """The same step printed again and again does not hide a stall."""
    job = Job(STALL).steps(range(1, 5), 5.0).steps([4] * 20, 3.0)
    assert job.states() == ["advancing", "suspect", "confirmed"]


def test_old_gaps_seed_the_rhythm() -> None:
    """Gaps from an old log spare the warm-up."""
    job = Job()
    job.watch.seed([30.0] * 10)
    job.say(step=5)
    assert job.watch.progress(0.0).threshold_seconds == 300.0


def test_progress_view() -> None:
    """The view carries what an incident needs."""
    job = Job().steps(range(1, 11), 3.0, total=90, rank=3, text="step line").wait(5.0)
    view = job.watch.progress(job.now, preset="step")
    assert (view.state, view.preset, view.step, view.total) == ("advancing", "step", 10, 90)
    assert (view.stalled_seconds, view.median_interval_seconds) == (5.0, 3.0)
    assert (view.phase, view.last_line, dict(view.per_rank_step)) == ("train", "step line", {3: 10})


def test_history_is_bounded_and_carries_phases() -> None:
    """The last 256 events with the caller's wall time, phases as they opened."""
    job = Job().steps(range(1, 400), 2.0).say("eval").wait(2.0)
    history = job.watch.history()
    assert len(history) == 256
    assert (history[-1].phase, history[-2].phase) == ("eval", "train")
    assert (history[-2].step, history[-2].at, history[-2].source) == (399, "t798.0", "log")


@settings(max_examples=30)
@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=60))
def test_no_stall_while_steps_rise(gaps: list[float]) -> None:
    """While steps rise within the floor nothing is ever suspected."""
    job = Job()
    for number, gap in enumerate(gaps):
        job.wait(gap, every=7.0).say(step=number)
    assert set(job.states()) <= {"advancing", "slow"}


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 60.0),
            st.sampled_from(
                ["progress", "eval", "checkpoint_save_start", "checkpoint_save_end", "init", "end"]
            ),
            st.integers(0, 5),
        ),
        max_size=40,
    )
)
def test_states_follow_their_order(events: list[tuple[float, EventKind, int]]) -> None:
    """Only a suspicion is confirmed or healed, and each change starts where the last one ended."""
    job = Job(STALL)
    for gap, kind, step in events:
        job.wait(gap, every=3.0).say(kind, step=step)
    job.wait(300.0, every=3.0)
    before = "warming"
    for change in job.changes:
        assert change.previous == before or (change.previous, before) == ("advancing", "healed")
        assert change.state != "confirmed" or change.previous == "suspect"
        assert change.state != "healed" or change.previous in ("suspect", "confirmed")
        before = change.state
    assert job.watch.state == "confirmed"


@pytest.mark.parametrize("gap", [3.0, 30.0, 200.0])
def test_fires_once_between_threshold_and_confirmation(gap: float) -> None:
    """Whatever the rhythm, a stop is confirmed once, within threshold and confirmation."""
    job = Job().steps(range(1, 15), gap)
    stopped, limit = job.now, job.watch.progress(job.now).threshold_seconds
    assert limit is not None
    job.wait(3.0 * limit)
    confirmed = [change.at for change in job.changes if change.state == "confirmed"]
    assert len(confirmed) == 1
    assert stopped + limit < confirmed[0] <= stopped + limit + max(30.0, 0.25 * limit) + 3.0
