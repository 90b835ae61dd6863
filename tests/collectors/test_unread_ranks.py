"""Which closed processes are a job's ranks, by parent, name and command line alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whyhang.collectors.kinds import Identity
from whyhang.collectors.ranks import JobEnvironment
from whyhang.collectors.unread_ranks import closed_pythons, closed_siblings, closed_trainers


def _closed(pid: int, ppid: int, *words: str) -> Identity:
    """A Python program of which only the public part could be read."""
    return Identity(
        pid=pid, ppid=ppid, name="python", state="S", is_python=None, cmdline=("python", *words)
    )


TRAIN = ("train.py", "--lr", "1")
LOADER = ("-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--multi")
LONE = (_closed(10, 1, *TRAIN),)
WITH_WORKERS = (*LONE, _closed(11, 10, *TRAIN), _closed(12, 10, *TRAIN))
WITH_SPAWNED = (*LONE, _closed(11, 10, *LOADER), _closed(12, 10, *LOADER))
WITH_HELPER = (*LONE, _closed(11, 10, "-m", "tracker.service"))
STARTED = (_closed(9, 1, "launch.py"), _closed(10, 9, *TRAIN), _closed(11, 9, *TRAIN))
WITH_BOTH = (*STARTED, _closed(12, 10, *TRAIN), _closed(13, 11, *LOADER))


@pytest.mark.parametrize(
    ("processes", "ranks"),
    [
        (LONE, {10}),
        (WITH_WORKERS, {10}),
        (WITH_SPAWNED, {10}),
        (WITH_HELPER, {10}),
        (STARTED, {10, 11}),
        (WITH_BOTH, {10, 11}),
        ((), set()),
    ],
)
def test_the_uppermost_programs_are_the_ranks(
    processes: tuple[Identity, ...], ranks: set[int]
) -> None:
    """Workers and helpers below a rank are none, nor is what starts the ranks."""
    table = {process.pid: process for process in processes}
    assert closed_trainers(table, table.keys()) == ranks


@pytest.mark.parametrize(
    "change",
    [{"environ": {}}, {"state": "Z"}, {"is_python": False}, {"cmdline": ("py-spy",)},
     {"cmdline": ("python", "-m", "whyhang.engine")}, {"cmdline": ("python", "/bin/torchrun")}],
)  # fmt: skip
def test_others_are_no_closed_programs(change: dict[str, object]) -> None:
    """What was read, has ended, is no Python, is ours or starts ranks."""
    process = replace(LONE[0], **change)  # type: ignore[arg-type]
    assert closed_pythons({process.pid: process}) == frozenset()
    assert closed_pythons({10: LONE[0]}) == {10}


def test_a_closed_one_beside_known_ranks_is_one() -> None:
    """The same program from the same parent; another program there is not."""
    known = replace(STARTED[1], environ={"RANK": "0"}, job=JobEnvironment(rank=0, source="RANK"))
    other = _closed(14, 9, "monitor.py")
    table = {process.pid: process for process in (STARTED[0], known, STARTED[2], other)}
    assert closed_siblings(table, {10}) == {11}
