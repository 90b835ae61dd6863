"""``whyhang run`` around real jobs: those that hang, those that die, and two that are healthy."""

from __future__ import annotations

import json
import re

import pytest

from tests.lab.harness import Outcome
from tests.lab.job import first_step
from tests.lab.scenarios import FAULT_RANK

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


@pytest.mark.parametrize("played", ["watched_worker"], indirect=True)
def test_the_worker_comes_before_its_trainer(played: Outcome) -> None:
    """The blocked worker's function first, then where the trainer waits for it."""
    assert played.positions[0] == ("dataloader", "wait_for_shard")
    assert [kind for kind, _ in played.positions[1:]] == ["trainer"]


@pytest.mark.parametrize("played", ["watched_sleep"], indirect=True)
def test_a_confirmed_hang_is_worth_a_stop(played: Outcome) -> None:
    """The eye that is kept on the slow job below does see the stops that native frames cost."""
    assert played.positions == [("trainer", "publish_metrics")]
    assert played.longest_stop


@pytest.mark.parametrize("played", ["killed"], indirect=True)
def test_a_killed_rank_is_an_exit_and_no_hang(played: Outcome) -> None:
    """Torchrun ends the job; its failure report tells which rank died, and how."""
    assert played.verdict is not None
    assert f"rank {FAULT_RANK}" in played.verdict["headline"]
    assert re.search(r"signal 9\b|exit code -9\b", played.verdict["headline"])
    (incident,) = played.incidents
    assert json.loads((incident / "incident.json").read_text())["trigger"] == "exit"


@pytest.mark.parametrize("played", ["killed"], indirect=True)
def test_the_exit_code_is_that_of_the_job(played: Outcome) -> None:
    """Torchrun's own exit code for a killed rank comes through ``run``."""
    assert played.exit_code == 1


@pytest.mark.parametrize("played", ["killed_unwatched"], indirect=True)
def test_without_whyhang_the_exit_code_is_the_same(played: Outcome) -> None:
    """What the code of the job under ``run`` is compared to."""
    assert played.exit_code == 1


@pytest.mark.parametrize("played", ["three_epochs"], indirect=True)
def test_epochs_of_a_bare_bar_are_progress(played: Outcome) -> None:
    """A bar that begins anew is a new epoch: no suspicion, no incident, exit code 0."""
    assert played.exit_code == 0
    assert played.output.count("80/80") >= 3
    assert played.incidents == ()
    assert "-> suspect" not in _in_training(played.journal)


@pytest.mark.parametrize("played", ["slow_steps"], indirect=True)
def test_a_slow_job_is_suspected_and_left_alone(played: Outcome) -> None:
    """Steps longer than the stall time are a suspicion that heals; nobody is stopped for it."""
    assert played.exit_code == 0
    journal = _in_training(played.journal)
    assert "advancing -> suspect" in journal
    assert "suspect -> healed" in journal
    assert "-> confirmed" not in journal
    assert played.incidents == ()
    assert not played.longest_stop


def _in_training(journal: str) -> str:
    """What the watcher noted after the first step."""
    return journal[first_step(journal) :]
