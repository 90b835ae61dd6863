"""What the silence of a node is evidence of."""

import pytest

from whyhang.schemas.incident import Node


@pytest.mark.parametrize("reason", [None, "no answer in 60 s", "its watcher did not answer"])
def test_silence_is_evidence(reason: str | None) -> None:
    assert Node(name="gpu1", status="missing", reason=reason).fell_silent


@pytest.mark.parametrize(
    "reason", ["Watcher is gone", "whyhang crashed on this node", "the exchange is stuck"]
)
def test_a_failure_of_our_own_is_none(reason: str) -> None:
    assert not Node(name="gpu1", status="missing", reason=reason).fell_silent


def test_a_node_that_nobody_asked_is_not_silent() -> None:
    assert not Node(name="gpu1", status="not_collected", reason="no answer").fell_silent
