"""The lab's fixtures: scenarios are played two at a time, ahead of the tests that look at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.harness import Outcome
from tests.lab.scenarios import SCENARIOS
from tests.lab.stage import Stage


@pytest.fixture(scope="session")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The stage, with the scenarios of all selected tests announced."""
    stage = Stage(tmp_path_factory.mktemp("lab"), SCENARIOS)
    try:
        stage.announce(_wanted(request.session.items))
        yield stage
    finally:
        stage.close()


@pytest.fixture
def played(request: pytest.FixtureRequest, stage: Stage) -> Outcome:
    """What came of the scenario that the test names as its parameter."""
    reason = SCENARIOS[request.param].left_out
    if reason:
        pytest.skip(reason)
    return stage.outcome(request.param)


def _wanted(items: list[pytest.Item]) -> Iterator[str]:
    """The scenarios of these tests that can be played here, in the tests' order."""
    for item in items:
        call = getattr(item, "callspec", None)
        name = None if call is None else call.params.get("played")
        if name in SCENARIOS and SCENARIOS[name].left_out is None:
            yield name
