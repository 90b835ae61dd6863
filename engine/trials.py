"""Tries whether stacks can be read here: of a process of ours, and of the job's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from whyhang.collectors import pyspy
from whyhang.schemas.environment import INTERNAL
from whyhang.schemas.process import Process
from whyhang.schemas.unread import Unread

TRIAL_SECONDS = 15.0
JOB_SECONDS = 4.0
MOST_TRIED = 8
_SLEEPER = "import sys, time; print(flush=True); time.sleep(60)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Why a process of ours was not read, and why py-spy could not attach; None where it did."""

    reading: Unread | None
    attach: Unread | None
    seconds: float = 0.0


def try_child() -> Trial:
    """Read a process of our own that is no descendant of py-spy, as the job's are not."""
    try:
        with _sleeper() as pid:
            started = time.monotonic()
            reading = pyspy.dump(pid, "nonblocking", TRIAL_SECONDS).failure
            seconds = time.monotonic() - started
            attach = reading or pyspy.dump(pid, "python", TRIAL_SECONDS).failure
    except OSError as error:
        reason = f"no process could be started: {error.strerror}"
        failure = Unread(kind="other", reason=reason)
        return Trial(reading=failure, attach=failure)
    return Trial(reading=reading, attach=attach, seconds=seconds)


def try_job(trainers: Sequence[Process]) -> dict[int, Unread | None]:
    """Read the first of the job's ranks without stopping them; by pid, why it failed."""
    return {
        process.pid: pyspy.dump(process.pid, "nonblocking", JOB_SECONDS).failure
        for process in trainers[:MOST_TRIED]
    }


@contextmanager
def _sleeper() -> Iterator[int]:
    target = subprocess.Popen(
        [sys.executable, "-I", "-c", _SLEEPER],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, INTERNAL: "1"},
    )
    try:
        if target.stdout is not None:
            target.stdout.readline()
        yield target.pid
    finally:
        target.kill()
        target.wait()
        if target.stdout is not None:
            target.stdout.close()
