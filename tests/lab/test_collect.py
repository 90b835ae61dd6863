"""``whyhang collect`` called to real jobs: what its answer says beyond the facts."""

from __future__ import annotations

import pytest

from tests.lab.harness import Outcome

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


@pytest.mark.parametrize("played", ["worker_fork"], indirect=True)
def test_the_worker_comes_before_its_trainer(played: Outcome) -> None:
    """The blocked worker's function first, then where the trainer waits for it."""
    assert played.positions[0] == ("dataloader", "wait_for_shard")
    assert [kind for kind, _ in played.positions[1:]] == ["trainer"]


@pytest.mark.parametrize("played", ["user_sleep"], indirect=True)
def test_a_sleeping_function_is_the_only_position(played: Outcome) -> None:
    """Workers of the rank that rest are no suspects."""
    assert played.positions == [("trainer", "publish_metrics")]


@pytest.mark.parametrize("played", ["without_log"], indirect=True)
def test_without_a_log_the_rank_is_named_with_less_confidence(played: Outcome) -> None:
    """Standing processes stand in for the log; the verdict says that none was read."""
    assert played.verdict is not None
    assert played.verdict["confidence"] in ("medium", "low")
    assert any("log" in reason for reason in played.verdict["lowered"])
