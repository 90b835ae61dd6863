"""One sample of real small processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rights.situations import needs_ptrace
from whyhang.collectors import collect, procfs
from whyhang.collectors.collect import take_sample
from whyhang.collectors.process_table import list_processes
from whyhang.collectors.pyspy import DumpResult
from whyhang.schemas.config import CollectConfig
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, DumpMode, Process
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.unread import CURES, Unread, UnreadKind

CONFIG = CollectConfig()


class FakeDump:
    """Answers as py-spy would; keeps what it was asked for."""

    def __init__(self, failures: dict[tuple[int, DumpMode], UnreadKind] | None = None) -> None:
        self.failures = failures or {}
        self.asked: list[tuple[int, DumpMode]] = []

    def __call__(self, pid: int, mode: DumpMode, timeout: float) -> DumpResult:
        self.asked.append((pid, mode))
        assert 0 < timeout <= CONFIG.timeout
        kind = self.failures.get((pid, mode))
        if kind is not None:
            failure = Unread(kind=kind, reason=f"py-spy: {kind}")
            told = Dump(ok=False, mode=mode, error=failure.reason)
            return DumpResult(dump=told, threads=Missing(failure.reason), failure=failure)
        thread = Thread(name="MainThread", stack=Stack((Frame(mode, "a.py"),)))
        return DumpResult(dump=Dump(ok=True, mode=mode), threads=(thread,))


TRAINER = Process(pid=1, node="n", kind="trainer", rank=0, python="3.11", state="S")
WORKER = replace(TRAINER, pid=2, kind="dataloader")
LAUNCHER = replace(TRAINER, pid=3, kind="launcher", rank=None)
HELPER = replace(TRAINER, pid=4, kind="helper")
OTHER = replace(TRAINER, pid=5, kind="other")
ALL = (HELPER, OTHER, LAUNCHER, WORKER, TRAINER)
FIRST = [(pid, "nonblocking") for pid in (1, 2, 3, 5)]


@pytest.fixture
def py_spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeDump]]:
    """Puts a fake in py-spy's place, and makes every process safe to stop."""

    def install(
        failures: dict[tuple[int, DumpMode], UnreadKind] | None = None, hazard: Unread | None = None
    ) -> FakeDump:
        fake = FakeDump(failures)
        monkeypatch.setattr(collect, "dump", fake)
        monkeypatch.setattr(procfs, "dump_hazard", lambda pid: hazard)
        return fake

    yield install


def _mode(sample: tuple[Process, ...], pid: int) -> str | None:
    (process,) = [process for process in sample if process.pid == pid]
    return process.dump.mode if process.dump else None


@pytest.mark.parametrize(
    ("deep", "native", "second"),
    [
        (False, "always", []),
        (True, "auto", [(1, "native")]),
        (True, "never", []),
        (True, "always", [(pid, "native") for pid in (1, 2, 3, 5)]),
    ],
)
def test_who_is_dumped_and_how(
    py_spy: Callable[..., FakeDump], deep: bool, native: str, second: list[tuple[int, DumpMode]]
) -> None:
    """All nonblocking first; native second, only of those it is meant for."""
    fake = py_spy()
    config = replace(CONFIG, native=native)  # type: ignore[arg-type]
    sample = take_sample(ALL, deep=deep, config=config, deadline_seconds=60)
    assert sorted(fake.asked[:4]) == FIRST
    assert sorted(fake.asked[4:]) == second
    assert [process.pid for process in sample] == [1, 2, 3, 4, 5]
    helper = sample[3]
    assert helper.threads == Missing("processes of kind helper are not in collect.kinds")


def test_generic_children_are_left_alone_where_no_worker_is_wanted(
    py_spy: Callable[..., FakeDump],
) -> None:
    """They are read only because one may prove to be a worker."""
    fake = py_spy()
    take_sample(ALL, deep=False, config=replace(CONFIG, kinds=("trainer",)), deadline_seconds=60)
    assert sorted(fake.asked) == [(1, "nonblocking"), (3, "nonblocking")]


def test_a_hazard_keeps_the_first_stacks(py_spy: Callable[..., FakeDump]) -> None:
    """Where stopping is not safe no native dump is tried, and the dump says why."""
    hazard = Unread(kind="uninterruptible", reason="thread 9 is in uninterruptible sleep (D)")
    fake = py_spy(hazard=hazard)
    (process,) = take_sample((TRAINER,), deep=True, config=CONFIG, deadline_seconds=60)
    assert fake.asked == [(1, "nonblocking")]
    assert process.dump == Dump(
        ok=True,
        mode="nonblocking",
        error="no native frames: thread 9 is in uninterruptible sleep (D)",
        kind="uninterruptible",
        cure=CURES["uninterruptible"],
    )
    assert not isinstance(process.threads, Missing)


@pytest.mark.parametrize("kind", ["timeout", "unwind", "permission"])
def test_a_failed_native_dump_keeps_the_first_stacks(
    py_spy: Callable[..., FakeDump], kind: UnreadKind
) -> None:
    """The stacks of the nonblocking dump stay, with a note."""
    py_spy({(1, "native"): kind})
    (process,) = take_sample((TRAINER,), deep=True, config=CONFIG, deadline_seconds=60)
    assert process.dump == Dump(
        ok=True,
        mode="nonblocking",
        error=f"no native frames: py-spy: {kind}",
        kind=kind,
        cure=CURES[kind],
    )
    assert not isinstance(process.threads, Missing)


@pytest.mark.parametrize(("kind", "tried"), [("permission", False), ("torn", True)])
def test_native_mends_only_what_it_can(
    py_spy: Callable[..., FakeDump], kind: UnreadKind, tried: bool
) -> None:
    """A torn read is made good by stopping the process, a missing right is not."""
    fake = py_spy({(1, "nonblocking"): kind})
    (process,) = take_sample((TRAINER,), deep=True, config=CONFIG, deadline_seconds=60)
    assert ((1, "native") in fake.asked) is tried
    assert isinstance(process.threads, Missing) is not tried
    assert process.dump is not None
    assert process.dump.ok is tried


def test_a_process_that_ended_meanwhile_is_dead(py_spy: Callable[..., FakeDump]) -> None:
    """Its state says so: X as for the kernel."""
    py_spy({(1, "nonblocking"): "gone"})
    (process,) = take_sample((TRAINER,), deep=True, config=CONFIG, deadline_seconds=60)
    assert process.state == "X"


def test_the_dead_are_not_asked(py_spy: Callable[..., FakeDump]) -> None:
    """A zombie costs no dump."""
    fake = py_spy()
    zombie = replace(TRAINER, state="Z")
    (process,) = take_sample((zombie,), deep=True, config=CONFIG, deadline_seconds=60)
    assert fake.asked == []
    assert process.threads == Missing("exited: it has no stack")


def test_what_is_not_reached_says_so(py_spy: Callable[..., FakeDump]) -> None:
    """When the time is up the rest is unread, with the reason."""
    fake = py_spy()
    sample = take_sample((TRAINER, WORKER), deep=True, config=CONFIG, deadline_seconds=0)
    assert fake.asked == []
    assert [process.threads for process in sample] == [Missing("not reached within 0 s")] * 2


def test_native_frames_not_reached_are_noted(
    py_spy: Callable[..., FakeDump], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stacks stay when only the native ones missed the deadline."""
    fake = py_spy()
    left = iter([59.0, 0.0])
    monkeypatch.setattr(collect._Budget, "left", lambda _: next(left))
    (process,) = take_sample((TRAINER,), deep=True, config=CONFIG, deadline_seconds=60)
    assert fake.asked == [(1, "nonblocking")]
    assert process.dump is not None
    assert process.dump.error == "no native frames: not reached within 60 s"


TRAIN = """
import multiprocessing, os, runpy, subprocess, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
_worker_loop = runpy.run_path(folder + "/torch/utils/data/_utils/worker.py")["_worker_loop"]
def generic():
    os.write(1, b"ready\\n")
    time.sleep(120)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for target in (generic, _worker_loop, _worker_loop):
        context.Process(target=target, daemon=True).start()
    subprocess.Popen(["sleep", "120"])
    os.write(1, b"ready\\n")
    sys.stdin.read()
"""
WORKER_LOOP = """
import os, time
def _worker_loop():
    os.write(1, b"ready\\n")
    time.sleep(120)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A trainer with two workers of a torch that names no thread, a generic child and `sleep`."""
    worker = tmp_path / "torch/utils/data/_utils/worker.py"
    worker.parent.mkdir(parents=True)
    worker.write_text(WORKER_LOOP)
    (tmp_path / "train.py").write_text(TRAIN)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "train.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RANK": "1", "LOCAL_RANK": "1"},
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for _ in range(4):
            assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@pytest.mark.integration
@needs_ptrace
def test_a_deep_sample_of_a_real_job(job: subprocess.Popen[str]) -> None:
    """The trainer is read natively, workers are known by their frames, the rest has reasons."""
    table = list_processes(node="n", root=job.pid)
    assert [process.kind for process in table].count("dataloader") == 0
    sample = take_sample(table, deep=True, config=CONFIG, deadline_seconds=60)
    trainer, first, second, *rest = sample
    assert (trainer.pid, trainer.kind, trainer.rank) == (job.pid, "trainer", 1)
    assert trainer.dump is not None
    assert trainer.dump.mode == "native"
    assert [(x.kind, x.worker, x.rank) for x in (first, second)] == [
        ("dataloader", 0, 1),
        ("dataloader", 1, 1),
    ]
    assert _mode(sample, first.pid) == "nonblocking"
    assert {process.kind for process in rest} == {"other"}
    reasons = [x.threads for x in rest if x.name == "sleep"]
    assert reasons == [Missing("not a Python process")]
    assert len([x for x in rest if not isinstance(x.threads, Missing)]) == 1
    stat = procfs.read_stat(job.pid)
    assert stat is not None
    assert stat.state == "S"


@pytest.mark.integration
@needs_ptrace
def test_a_stopped_trainer_is_read_and_stays_stopped(job: subprocess.Popen[str]) -> None:
    """Its stack is evidence; neither waking nor attaching is ours to do."""
    os.kill(job.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 20
    while procfs.dump_hazard(job.pid) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    table = list_processes(node="n", root=job.pid)
    trainer, *_ = take_sample(table, deep=True, config=CONFIG, deadline_seconds=60)
    assert trainer.state == "T"
    assert trainer.dump is not None
    assert trainer.dump.mode == "nonblocking"
    assert trainer.dump.error is not None
    assert "is stopped (T)" in trainer.dump.error
    assert not isinstance(trainer.threads, Missing)
    stat = procfs.read_stat(job.pid)
    assert stat is not None
    assert stat.state == "T"
