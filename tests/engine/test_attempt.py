"""Whether the trainers of an attempt live, have ended, or were replaced."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from whyhang.engine.attempt import Attempt
from whyhang.schemas.process import Process
from whyhang.schemas.words import ProcessKind

pytestmark = pytest.mark.integration


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Four processes that wait."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(4)]
    yield started
    for child in started:
        child.kill()
        child.wait()


def trainer(child: subprocess.Popen[bytes], kind: ProcessKind = "trainer") -> Process:
    """A line of a process table."""
    return Process(pid=child.pid, node="n", kind=kind)


def test_replaced_when_all_have_ended(children: list[subprocess.Popen[bytes]]) -> None:
    """One that ends is a loss; when all have, and others train, that is the next attempt."""
    first, second, third, worker = children
    attempt = Attempt([trainer(first), trainer(second), trainer(worker, "dataloader")])
    following = [trainer(third), trainer(worker, "dataloader")]
    assert attempt.living() == 2
    assert not attempt.has_lost
    first.kill()
    first.wait()
    assert attempt.has_lost
    assert not attempt.has_ended
    assert attempt.replaced_by(following) is None
    second.kill()  # not waited for: a zombie has ended as well
    while attempt.living():
        pass
    assert attempt.replaced_by([trainer(worker, "dataloader")]) is None
    assert attempt.replaced_by([trainer(second)]) is None
    successor = attempt.replaced_by(following)
    assert successor is not None
    assert successor.living() == 1


def test_an_attempt_without_trainers_never_ends() -> None:
    """Where no trainer was found, nothing follows from none being there."""
    attempt = Attempt([])
    assert not attempt.has_ended
    assert not attempt.has_lost
