"""Every scenario of the lab: what must be found, how soon, and that nobody is harmed by it."""

from __future__ import annotations

import pytest

from tests.lab.harness import Outcome
from tests.lab.scenarios import SCENARIOS
from tests.lab.table import findings

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

BETWEEN_SAMPLES_SECONDS = 10.0
# What a dump that waits for a process is given, and what one that need not may take on a busy
# machine.
TIME_LIMIT_SECONDS = 20.0
NO_DELAY_SECONDS = 5.0


@pytest.mark.parametrize("played", SCENARIOS, indirect=True)
def test_the_scenario_shows_what_it_must(played: Outcome) -> None:
    """Verdict, category, suspects and single processes are as declared, and nobody is harmed.

    After whyhang has looked, every process of the job lives and none is left stopped.
    """
    wrong = [said for right, said in findings(played) if not right]
    assert not wrong, played.output[-2000:]


@pytest.mark.parametrize("played", ["three_down"], indirect=True)
def test_ranks_that_cannot_be_stopped_are_no_delay(played: Outcome) -> None:
    """Neither a rank in uninterruptible sleep nor a stopped one is waited for."""
    held = [process for process in played.processes if process.state in ("D", "T")]
    assert {process.rank for process in held} == {0, 1, 2}
    for process in held:
        assert process.dump is not None
        assert process.dump.seconds is not None
        assert process.dump.seconds < NO_DELAY_SECONDS
    assert played.seconds is not None
    assert played.seconds < BETWEEN_SAMPLES_SECONDS + len(held) * TIME_LIMIT_SECONDS


@pytest.mark.parametrize("played", ["fuse_trainer", "freeze", "vfork"], indirect=True)
def test_others_are_stopped_but_not_for_long(played: Outcome) -> None:
    """The eye that is kept on stops sees those for native frames, and none of a time limit."""
    assert played.longest_stop is not None
    assert 0 < played.longest_stop < 15


@pytest.mark.parametrize("played", ["killed_collector"], indirect=True)
def test_a_job_outlives_its_collector(played: Outcome) -> None:
    """Killed while it holds a rank, a collector leaves a job that makes further steps."""
    assert played.longest_stop
    assert played.incidents == ()
