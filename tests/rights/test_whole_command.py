"""``whyhang collect`` where rights are missing: a verdict from what is left, and the cure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import eventually
from tests.rights.conftest import Job, StartJob, Told
from tests.rights.situations import (
    AS_NOBODY,
    IN_NEW_PID_NAMESPACE,
    WITHOUT_CAPABILITIES,
    child_of,
    is_free,
    needs_filter,
    needs_namespaces,
    needs_ptrace,
    needs_root,
    python_without_pyspy,
    under_filter,
)
from whyhang.collectors.procfs import read_inner_pid, read_status
from whyhang.schemas.unread import CURES

pytestmark = [pytest.mark.integration, pytest.mark.long, needs_ptrace]
Collect = Callable[..., Told]


def _trainers(told: Told) -> list[dict[str, Any]]:
    return [process for process in told.processes if process["kind"] == "trainer"]


def _is_told(told: Told, kind: str) -> None:
    """The report names the cure, nobody is a suspect, and all is on disk."""
    assert told.status == 0, told.errors
    assert " ".join(CURES[kind].split()) in told.words  # type: ignore[index]
    assert told.verdict["suspects"]["rank_list"] == []
    assert {"verdict.json", "diagnosis.md", "report.txt", "incident.json"} <= told.files
    assert "step 3 of 100" in told.words


@needs_root
@pytest.mark.parametrize("before", [AS_NOBODY, WITHOUT_CAPABILITIES], ids=["user", "capability"])
def test_a_job_that_is_closed_to_us(
    start_job: StartJob, whyhang: Collect, before: tuple[str, ...]
) -> None:
    """Not even the ranks can be read: who is unread, why, and the log's word are left."""
    with start_job() as job:
        told = whyhang("--pid", str(job.root), "--log", str(job.log), before=before)
        assert all(map(is_free, job.ranks))
    _is_told(told, "permission")
    assert told.verdict["verdict"] == "inconclusive"
    (unread,) = told.verdict["not_seen"]
    assert (unread["kind"], unread["ranks"]) == ("permission", "")
    assert all(str(pid) in unread["reason"] for pid in job.ranks)
    assert "stalled" in told.words
    for process in _trainers(told):
        assert process.get("rank") is None
        assert process["state"] == "S"
        assert process["dump"]["kind"] == "permission"
        assert process["dump"]["cure"] == CURES["permission"]
    assert len(_trainers(told)) == 2


@needs_root
def test_one_rank_that_is_closed_to_us(start_job: StartJob, whyhang: Collect) -> None:
    """The other is read; what is closed is unread, neither gone nor at fault."""
    with start_job(second=WITHOUT_CAPABILITIES) as job:
        options = ("--pid", str(job.root), "--log", str(job.log))
        told = whyhang(*options, before=WITHOUT_CAPABILITIES)
        assert all(map(is_free, job.ranks))
    _is_told(told, "permission")
    assert "load_shard" in told.words
    ranks = {process["pid"]: process.get("rank") for process in _trainers(told)}
    assert ranks == {job.ranks[0]: None, job.ranks[1]: 1}
    (unread,) = told.verdict["not_seen"]
    assert (unread["kind"], unread["ranks"]) == ("permission", "0")
    assert str(job.ranks[0]) in unread["reason"]


@needs_namespaces
def test_without_a_job_named_the_closed_ones_are(start_job: StartJob, whyhang: Collect) -> None:
    """Where no rank can be told from outside, the error names the closed processes and the cure."""
    with start_job(before=IN_NEW_PID_NAMESPACE) as job:
        # In there no other job of this machine is seen.
        told = whyhang(before=("nsenter", "-t", str(job.root), "-p", "-m", *AS_NOBODY))
        numbers = [read_inner_pid(pid) for pid in job.ranks]
    assert told.status == 2
    assert "--pid" in told.errors
    assert CURES["permission"] in told.errors
    assert all(str(number) in told.errors for number in numbers)


@needs_filter
def test_a_collector_under_a_filter(start_job: StartJob, whyhang: Collect) -> None:
    """Python stacks are read, native frames are told to be missing."""
    with start_job() as job:
        told = whyhang("--pid", str(job.root), "--log", str(job.log), before=under_filter())
        assert all(map(is_free, job.ranks))
    _is_told(told, "seccomp")
    assert "load_shard" in told.words
    assert told.verdict["not_seen"] == []
    for process in _trainers(told):
        assert (process["dump"]["ok"], process["dump"]["kind"]) == (True, "seccomp")


def test_without_py_spy(start_job: StartJob, whyhang: Collect, tmp_path: Path) -> None:
    """The verdict rests on /proc and the log, and says how to get the stacks."""
    python = python_without_pyspy(tmp_path / "bare")
    with start_job() as job:
        options = ("--pid", str(job.root), "--log", str(job.log))
        told = whyhang(*options, python=python, path=str(tmp_path))
        assert all(map(is_free, job.ranks))
        _is_told(told, "no_tool")
        (unread,) = told.verdict["not_seen"]
        assert (unread["kind"], unread["ranks"]) == ("no_tool", "0-1")
        assert "0-1" in told.words
        for process in _trainers(told):
            assert process["dump"]["kind"] == "no_tool"
            assert process["io"]["rchar"] > 0
        # What /proc shows by itself is still a finding.
        os.kill(job.ranks[1], signal.SIGSTOP)
        assert eventually(lambda: "T" in read_status(job.ranks[1]).get("State", ""))
        told = whyhang(*options, python=python, path=str(tmp_path))
    assert told.verdict["category"] == "stopped_process", told.text
    assert told.verdict["suspects"]["rank_list"] == [1]


@needs_namespaces
def test_a_job_in_a_container_from_outside(start_job: StartJob, whyhang: Collect) -> None:
    """Stacks and numbers are those of this side, and what is missing says where to run."""
    with start_job(before=IN_NEW_PID_NAMESPACE) as job:
        told = whyhang("--pid", str(job.root), "--log", str(job.log))
        assert all(map(is_free, job.ranks))
    _is_told(told, "namespace")
    trainers = _trainers(told)
    assert [process["pid"] for process in trainers] == list(job.ranks)
    for process in trainers:
        assert process["dump"]["kind"] == "namespace"
        known = {thread["tid"] for thread in process["os_threads"]}
        assert {thread["os_thread_id"] for thread in process["threads"]} <= known


@needs_namespaces
def test_a_job_in_a_container_from_inside(start_job: StartJob, whyhang: Collect) -> None:
    """There nothing is missing but NCCL, and the ranks have their inner numbers."""
    with start_job(before=IN_NEW_PID_NAMESPACE) as job:
        inside = ("nsenter", "-t", str(job.root), "-p", "-m")
        told = whyhang("--log", str(job.log), before=inside)
        assert all(map(is_free, job.ranks))
    assert told.status == 0, told.errors
    assert told.verdict["not_seen"] == []
    assert [process["dump"]["mode"] for process in _trainers(told)] == ["native", "native"]
    assert all(process["pid"] < 10 for process in _trainers(told))


def test_a_collector_that_is_killed_leaves_the_job_running(
    start_job: StartJob, tmp_path: Path
) -> None:
    """Killed while a rank is held by py-spy, it leaves no rank stopped or traced."""
    with start_job() as job:
        # A rank is held for some 40 ms: on a busy machine that is missed now and then.
        assert any(_killed_in_time(job, tmp_path / str(number)) for number in range(5))
        assert all(map(is_free, job.ranks))
        assert child_of(job.root) in job.ranks


def _killed_in_time(job: Job, store: Path) -> bool:
    command = [sys.executable, "-m", "whyhang.engine", "collect", "--native", "always"]
    collector = subprocess.Popen(
        [*command, "--samples", "1", "--pid", str(job.root), "--store", str(store)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_held() -> bool:
        return any(read_status(pid).get("TracerPid", "0") != "0" for pid in job.ranks)

    try:
        eventually(lambda: is_held() or collector.poll() is not None)
        return collector.poll() is None and is_held()
    finally:
        collector.kill()
        collector.wait()
