"""``whyhang doctor`` finds by trying what keeps it from a real job, and names the cure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rights.conftest import Job, StartJob
from tests.rights.situations import (
    AS_NOBODY,
    IN_NEW_PID_NAMESPACE,
    SECONDS,
    is_free,
    needs_filter,
    needs_namespaces,
    needs_ptrace,
    needs_root,
    python_without_pyspy,
    under_filter,
)
from whyhang.schemas.unread import CURES

pytestmark = [pytest.mark.integration, needs_ptrace]


def _doctor(
    job: Job, place: Path, before: Sequence[str] = (), *, python: str = sys.executable
) -> dict[str, dict[str, str]]:
    command = [*before, python, "-m", "whyhang.engine", "doctor", "--json"]
    environ = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        [*command, "--pid", str(job.root), "--log", str(job.log)],
        cwd=place, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == int("fail" in {check["status"] for check in checks.values()})
    assert all(map(is_free, job.ranks))
    return checks


def test_where_nothing_is_missing(start_job: StartJob, tmp_path: Path) -> None:
    """The job's ranks are read, their Python is named, the log fits a preset."""
    with start_job() as job:
        checks = _doctor(job, tmp_path)
    for name in ("stacks of the job", "Python of the job", "PID namespace", "training log"):
        assert checks[name]["status"] == "ok", checks[name]
    assert checks["stacks of the job"]["found"].startswith("2 of")
    assert checks["buffering"]["status"] == "warn"
    assert "PYTHONUNBUFFERED" in checks["buffering"]["cure"]
    assert "exchange" not in checks


@needs_root
def test_another_users_job(start_job: StartJob, tmp_path: Path) -> None:
    """Rights and trial both fail on the job, though a process of one's own is read."""
    with start_job() as job:
        checks = _doctor(job, tmp_path, AS_NOBODY)
    for name in ("ptrace rights", "stacks of the job"):
        assert checks[name]["status"] == "fail"
        assert checks[name]["cure"] == CURES["permission"]
        assert f"process {min(job.ranks)}" in checks[name]["found"]
    assert checks["reading a stack"]["status"] == "ok"


@needs_filter
def test_a_filter(start_job: StartJob, tmp_path: Path) -> None:
    """It costs native frames only, which is told as such."""
    with start_job() as job:
        checks = _doctor(job, tmp_path, under_filter())
    for name in ("seccomp", "reading a stack"):
        assert (checks[name]["status"], checks[name]["cure"]) == ("warn", CURES["seccomp"])
    assert checks["stacks of the job"]["status"] == "ok"


@needs_namespaces
def test_a_job_in_a_container(start_job: StartJob, tmp_path: Path) -> None:
    """Its ranks are read, and where native frames can be had is told."""
    with start_job(before=IN_NEW_PID_NAMESPACE) as job:
        checks = _doctor(job, tmp_path)
    assert checks["stacks of the job"]["status"] == "ok"
    assert checks["PID namespace"]["status"] == "warn"
    assert "nsenter" in checks["PID namespace"]["cure"]


@needs_namespaces
def test_a_proc_of_another_namespace(start_job: StartJob, tmp_path: Path) -> None:
    """Numbers that mean other processes are found out before they mislead."""
    with start_job() as job:
        checks = _doctor(job, tmp_path, ("unshare", "--pid", "--fork", "--kill-child"))
    assert checks["PID namespace"]["status"] == "fail"
    assert "--mount-proc" in checks["PID namespace"]["cure"]


def test_no_py_spy(start_job: StartJob, tmp_path: Path) -> None:
    """What needs no stack is told nevertheless."""
    if Path("/usr/bin/py-spy").exists():
        pytest.skip("py-spy is a program of this system")
    with start_job() as job:
        checks = _doctor(job, tmp_path, python=python_without_pyspy(tmp_path / "bare"))
    assert (checks["py-spy"]["status"], checks["py-spy"]["cure"]) == ("fail", CURES["no_tool"])
    assert "stacks of the job" not in checks
    assert checks["Python of the job"]["status"] == "ok"
    assert checks["training log"]["status"] == "ok"
