"""What the lab takes for right and for wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.lab.expectations import Expected, Fact, function_of, seen
from whyhang.schemas.frame import Frame
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.stack import Stack, Thread

WORKER = Process(
    pid=7,
    node="gpu1",
    kind="dataloader",
    rank=2,
    state="S",
    wchan="anon_pipe_read",
    dump=Dump(ok=True, mode="nonblocking"),
    threads=(
        Thread(name="MainThread", stack=Stack((Frame("read_shard", "/home/x/data.py", "", 3),))),
    ),
)
FACT = Fact(
    kind="dataloader",
    rank=2,
    function="read_shard",
    state="S",
    wchan="pipe",
    mode="nonblocking",
)
EXPECTED = Expected(
    verdicts=("local_hang",), categories=("dataloader",), suspects=(2,), facts=(FACT,)
)


def verdict(**changes: Any) -> dict[str, Any]:
    """The right verdict, with changes."""
    right = {"verdict": "local_hang", "category": "dataloader", "suspects": {"rank_list": [2]}}
    return {**right, **changes}


def rights(found: dict[str, Any], *processes: Process) -> list[bool]:
    """Which statements fit."""
    return [right for right, _ in seen(EXPECTED, found, processes)]


def test_the_right_answer_fits() -> None:
    """Verdict and fact alike."""
    assert rights(verdict(), WORKER) == [True, True]


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "global_hang"},
        {"category": "other"},
        {"suspects": {"rank_list": []}},
        {"suspects": {"rank_list": [1, 2]}},
    ],
)
def test_another_verdict_does_not_fit(change: dict[str, Any]) -> None:
    """Verdict, category and exactly the suspects are asked for."""
    assert rights(verdict(**change), WORKER) == [False, True]


@pytest.mark.parametrize(
    "process",
    [
        replace(WORKER, rank=1),
        replace(WORKER, kind="trainer"),
        replace(WORKER, state="D"),
        replace(WORKER, wchan=None),
        replace(WORKER, dump=Dump(ok=True, mode="native")),
        replace(WORKER, dump=Dump(ok=False, mode="nonblocking")),
        replace(WORKER, threads=()),
    ],
)
def test_another_process_does_not_fit(process: Process) -> None:
    """Each point of a fact is asked for."""
    assert rights(verdict(), process) == [True, False]


def test_no_process_does_not_fit() -> None:
    """A fact about a process that was not found is missed."""
    assert list(seen(EXPECTED, verdict(), ()))[1] == (False, "dataloader 2: none")


def test_the_process_that_fits_best_is_shown() -> None:
    """One of a rank's workers blocks, the others rest."""
    resting = replace(WORKER, pid=6, wchan="do_poll")
    assert rights(verdict(), resting, WORKER) == [True, True]


def test_a_function_is_that_of_the_position() -> None:
    """What a process without stacks does is not known."""
    assert function_of(WORKER) == "read_shard"
    assert function_of(replace(WORKER, threads=())) is None
