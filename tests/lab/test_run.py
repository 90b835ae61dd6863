"""``whyhang run`` around real jobs: those that hang, one that dies, and two that are healthy."""

from __future__ import annotations

import json
import re

import pytest

from tests.lab.harness import FAULT_RANK, Outcome, first_step

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]


@pytest.mark.parametrize("played", ["worker_block"], indirect=True)
def test_a_blocked_worker_is_named(played: Outcome) -> None:
    """The rank whose worker blocks, the worker's function first and then the trainer's."""
    assert _verdict(played) == ("local_hang", "dataloader")
    assert played.suspects == [FAULT_RANK]
    assert played.positions[0] == ("dataloader", "read_shard")
    assert [kind for kind, _ in played.positions[1:]] == ["trainer"]


@pytest.mark.parametrize("played", ["user_sleep"], indirect=True)
def test_a_sleeping_function_is_named(played: Outcome) -> None:
    """The rank that sleeps in user code, and the function."""
    assert _verdict(played) == ("local_hang", "user_code")
    assert played.suspects == [FAULT_RANK]
    assert played.positions == [("trainer", "publish_metrics")]
    # The eye that is kept on the slow job below does see the stops that native frames cost.
    assert played.stopped


@pytest.mark.parametrize("played", ["d_state"], indirect=True)
def test_a_rank_on_a_frozen_file_system_is_named(played: Outcome) -> None:
    """The rank in uninterruptible sleep, which cannot be stopped to be read."""
    verdict, category = _verdict(played)
    assert verdict == "local_hang"
    assert category in ("disk_io", "checkpoint_io")
    assert played.suspects == [FAULT_RANK]
    assert played.verdict is not None
    (position,) = played.verdict["suspects"]["positions"]
    assert position["kind"] == "trainer"
    assert "torch/serialization.py" in position["frame"] or "write_part" in position["frame"]


@pytest.mark.parametrize("played", ["sigstop"], indirect=True)
def test_a_stopped_rank_is_named(played: Outcome) -> None:
    """The rank that SIGSTOP has stopped."""
    assert _verdict(played) == ("local_hang", "stopped_process")
    assert played.suspects == [FAULT_RANK]


@pytest.mark.parametrize("played", ["all_data_block"], indirect=True)
def test_nobody_is_accused_where_all_wait_for_data(played: Outcome) -> None:
    """The same fault on every rank is a global hang: no rank is at fault."""
    assert _verdict(played) == ("global_hang", "dataloader")
    assert played.suspects == []


@pytest.mark.parametrize("played", ["mismatch"], indirect=True)
def test_a_collective_that_one_rank_calls_is_seen(played: Outcome) -> None:
    """All wait in communication, the odd rank in another call than the rest."""
    assert _verdict(played) == ("global_hang", "collective_wait")
    assert played.suspects == [FAULT_RANK]


@pytest.mark.parametrize("played", ["kill9"], indirect=True)
def test_a_killed_rank_is_an_exit_and_no_hang(played: Outcome) -> None:
    """Torchrun ends the job; its failure report tells which rank died, and how."""
    assert _verdict(played) == ("no_hang", "exited_rank")
    assert played.verdict is not None
    assert played.suspects == [FAULT_RANK]
    assert f"rank {FAULT_RANK}" in played.verdict["headline"]
    assert re.search(r"signal 9\b|exit code -9\b", played.verdict["headline"])
    (incident,) = played.incidents
    assert json.loads((incident / "incident.json").read_text())["trigger"] == "exit"


@pytest.mark.parametrize("played", ["kill9"], indirect=True)
def test_the_exit_code_is_that_of_the_job(played: Outcome) -> None:
    """Torchrun's own exit code for a killed rank comes through ``run``."""
    assert played.exit_code == 1


@pytest.mark.parametrize("played", ["kill9_plain"], indirect=True)
def test_without_whyhang_the_exit_code_is_the_same(played: Outcome) -> None:
    """What the code of the job under ``run`` is compared to."""
    assert played.exit_code == 1


@pytest.mark.parametrize("played", ["three_epochs"], indirect=True)
def test_epochs_of_a_bare_bar_are_progress(played: Outcome) -> None:
    """A bar that begins anew is a new epoch: no suspicion, no incident, exit code 0."""
    assert played.exit_code == 0
    assert played.output.count("60/60") >= 3
    assert played.incidents == ()
    assert "-> suspect" not in _in_training(played.journal)


@pytest.mark.parametrize("played", ["slow"], indirect=True)
def test_a_slow_job_is_suspected_and_left_alone(played: Outcome) -> None:
    """Steps longer than the stall time are a suspicion that heals; nobody is stopped for it."""
    assert played.exit_code == 0
    journal = _in_training(played.journal)
    assert "advancing -> suspect" in journal
    assert "suspect -> healed" in journal
    assert "-> confirmed" not in journal
    assert played.incidents == ()
    assert played.stopped == frozenset()


def _in_training(journal: str) -> str:
    """What the watcher noted after the first step."""
    return journal[first_step(journal) :]


def _verdict(outcome: Outcome) -> tuple[str, str]:
    """Verdict and category of the first incident."""
    assert outcome.verdict is not None, outcome.output
    return outcome.verdict["verdict"], outcome.verdict["category"]
