"""The canary: whether a signal reached the group, also where it gets no CPU to say so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.patience import eventually
from whyhang.collectors.procfs import read_stat
from whyhang.engine.canary import Canary, _look_at

pytestmark = pytest.mark.integration

NUMBER = signal.SIGUSR2


@pytest.fixture
def canary() -> Iterator[Canary]:
    """A canary that waits for its signals."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {NUMBER})
    made = Canary({NUMBER})
    try:
        assert eventually(lambda: _look_at(made.pid)[1])
        yield made
    finally:
        made.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop(canary: Canary) -> None:
    """As a machine does that has no CPU for it."""
    os.kill(canary.pid, signal.SIGSTOP)
    assert eventually(lambda: getattr(read_stat(canary.pid), "state", "") == "T")


def test_what_it_received_reached_the_group(canary: Canary) -> None:
    """Each signal counts once."""
    for _ in range(2):
        os.kill(canary.pid, NUMBER)
        assert canary.reached_group(NUMBER, 0)
    assert not canary.reached_group(NUMBER, 0)


def test_a_signal_that_waits_for_it_reached_the_group(canary: Canary) -> None:
    """However late it reports; the report is not taken for that of another signal."""
    stop(canary)
    os.kill(canary.pid, NUMBER)
    assert canary.reached_group(NUMBER, 0)
    os.kill(canary.pid, signal.SIGCONT)
    assert eventually(lambda: _look_at(canary.pid) == (0, True))
    assert not canary.reached_group(NUMBER, 0)
    os.kill(canary.pid, NUMBER)
    assert canary.reached_group(NUMBER, 0)


def test_one_that_is_awake_is_waited_for(canary: Canary) -> None:
    """It may have taken the signal and have had no time to report it."""
    stop(canary)

    def report() -> None:
        os.kill(canary.pid, NUMBER)
        os.kill(canary.pid, signal.SIGCONT)

    late = threading.Timer(1.0, report)
    late.start()
    assert canary.reached_group(NUMBER, 0)
    late.join()


def test_one_that_never_reports_is_given_up(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A canary that stands still holds no signal back for long."""
    monkeypatch.setattr("whyhang.engine.canary.BUSY_SECONDS", 0.5)
    stop(canary)
    assert not canary.reached_group(NUMBER, 0)
