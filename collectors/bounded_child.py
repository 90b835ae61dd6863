"""Runs a program that may never answer: within a time limit, with bounded output, never awaited.

A child that hangs in a driver cannot be killed; it is then left behind and collected later.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from whyhang.schemas.environment import INTERNAL

MAX_OUTPUT_BYTES = 8 << 20
_GRACE_SECONDS = 0.5

_unreaped: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRun:
    """How it ended: ``status`` is None where the limit ended it; the output is what came so far."""

    status: int | None
    stdout: str = ""
    stderr: str = ""
    limit_seconds: float = 0.0


def run_bounded(command: Sequence[str], limit_seconds: float) -> ChildRun:
    """Run a command; status 127 where it cannot be started. Never raises OSError.

    Its output goes to files in memory: no disk need have room, what it wrote before the limit is
    not lost, and a child that cannot be killed holds nothing of ours.
    """
    _reap()
    try:
        with _memory_file() as out, _memory_file() as err:
            child = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, INTERNAL: "1", "LC_ALL": "C"},
                start_new_session=True,
            )
            with contextlib.suppress(OSError):
                limit = (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, limit)
            status: int | None
            try:
                status = child.wait(limit_seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(child)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        return ChildRun(status=127, stderr=f"could not start {command[0]}: {error}")
    return ChildRun(status=status, stdout=texts[0], stderr=texts[1], limit_seconds=limit_seconds)


def _memory_file() -> IO[bytes]:
    return open(os.memfd_create("whyhang-child"), "w+b")  # noqa: PTH123 (a descriptor)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _unreaped.append(child)


def _reap() -> None:
    for child in list(_unreaped):
        if child.poll() is not None:
            with contextlib.suppress(ValueError):
                _unreaped.remove(child)
