"""``whyhang collect`` called to real jobs that hang and were started without whyhang."""

from __future__ import annotations

import pytest

from tests.lab.harness import FAULT_RANK, Outcome

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]


@pytest.mark.parametrize("played", ["collect_worker_block"], indirect=True)
def test_a_blocked_worker_is_named(played: Outcome) -> None:
    """The rank, the worker's function first and then the trainer's."""
    assert played.verdict is not None
    assert (played.verdict["verdict"], played.verdict["category"]) == ("local_hang", "dataloader")
    assert played.suspects == [FAULT_RANK]
    kinds = [kind for kind, _ in played.positions]
    assert played.positions[0] == ("dataloader", "read_shard")
    assert kinds[-1] == "trainer"


@pytest.mark.parametrize("played", ["collect_user_sleep"], indirect=True)
def test_a_sleeping_function_is_named(played: Outcome) -> None:
    """The rank and the user's function."""
    assert played.verdict is not None
    assert played.verdict["verdict"] == "local_hang"
    assert played.suspects == [FAULT_RANK]
    assert played.positions == [("trainer", "publish_metrics")]


@pytest.mark.parametrize("played", ["collect_sigstop"], indirect=True)
def test_a_stopped_rank_is_named(played: Outcome) -> None:
    """A rank that cannot be dumped, because it is stopped, is the suspect all the same."""
    assert played.verdict is not None
    assert played.verdict["verdict"] == "local_hang"
    assert played.verdict["category"] == "stopped_process"
    assert played.suspects == [FAULT_RANK]


@pytest.mark.parametrize("played", ["collect_without_log"], indirect=True)
def test_without_a_log_the_rank_is_named_with_less_confidence(played: Outcome) -> None:
    """Standing processes stand in for the log; the verdict says that none was read."""
    assert played.verdict is not None
    assert played.verdict["verdict"] == "local_hang"
    assert played.suspects == [FAULT_RANK]
    assert played.positions[0] == ("dataloader", "read_shard")
    assert played.verdict["confidence"] in ("medium", "low")
    assert any("log" in reason for reason in played.verdict["lowered"])
