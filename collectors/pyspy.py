"""One py-spy dump of one process, always bounded in time.

Never with ``--subprocesses`` (it loses children silently) and never with ``--locals`` (values hold
passwords and data). A nonblocking dump stops nothing. The others stop the target while they last:
they run below :mod:`whyhang.collectors.dump_guard`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from whyhang.collectors import dump_guard
from whyhang.collectors.addresses import resolve_addresses
from whyhang.collectors.masking import shorten_homes
from whyhang.collectors.procfs import (
    is_gone,
    list_tids,
    read_inner_pid,
    read_maps,
    read_stat,
    read_status,
)
from whyhang.collectors.pyspy_failures import BACKTRACE, explain
from whyhang.collectors.rights import sharpen
from whyhang.schemas.environment import INTERNAL
from whyhang.schemas.errors import FormatError
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, DumpMode
from whyhang.schemas.stack import Thread
from whyhang.schemas.stack_codec import decode_threads
from whyhang.schemas.unread import Unread

_NOT_FOUND = "py-spy: not found beside whyhang nor on PATH"
_ARGUMENTS: Mapping[DumpMode, tuple[str, ...]] = {
    "nonblocking": ("--nonblocking",),
    "python": (),
    "native": ("--native",),
}
# What changes py-spy's texts, or was meant for the job alone.
_UNWANTED = ("RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_LOG", "LD_PRELOAD")
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")
_GRACE_SECONDS = 2.0  # for a killed py-spy to be gone, which the kernel may delay
_LEAST_SECONDS = 0.05

_unreaped: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpResult:
    """The stacks, or why there are none; ``failure`` says the same in a form to decide by."""

    dump: Dump
    threads: tuple[Thread, ...] | Missing
    failure: Unread | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How one call of py-spy ended; ``status`` is None where the time limit ended it."""

    status: int | None
    stdout: bytes
    stderr: str


@lru_cache(maxsize=1)
def find_pyspy() -> str | Missing:
    """The py-spy that was installed with us, else the one on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    # With the rights we act with: capabilities may open a directory that our user may not enter.
    if os.access(beside, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return str(beside)
    return shutil.which("py-spy") or Missing(_NOT_FOUND)


@lru_cache(maxsize=8)
def tool_name(binary: str) -> str:
    """``py-spy 0.4.3``; what a frame's name looks like depends on it."""
    run = _run([binary, "--version"], limit_seconds=10.0, guarded=False)
    version = _VERSION.search(run.stdout.decode("utf-8", "replace"))
    return f"py-spy {version.group()}" if version else "py-spy"


def dump(
    pid: int,
    mode: DumpMode,
    timeout: float,
    *,
    binary: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> DumpResult:
    """Read the stacks of a process within ``timeout`` seconds, a second try included.

    Whether a mode that stops the target is safe now is the caller's to check
    (:func:`whyhang.collectors.procfs.dump_hazard`).
    """
    found = find_pyspy() if binary is None else binary
    if isinstance(found, Missing):
        return _failed(Unread(kind="no_tool", reason=found.reason), mode, None, None)
    started = time.monotonic()
    tool = tool_name(found)
    result = _dump_once(found, tool, pid, mode, timeout)
    retry = result.failure.retry_after_seconds if result.failure else None
    left = timeout - (time.monotonic() - started)
    if retry is None or left <= retry + _LEAST_SECONDS:
        return result
    sleep(retry)
    return _dump_once(found, tool, pid, mode, left - retry)


def tool_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment py-spy gets."""
    kept = {key: value for key, value in environ.items() if key not in _UNWANTED}
    return {**kept, INTERNAL: "1"}


def resume_if_left_stopped(pid: int, *, was_stopped: bool) -> bool:
    """Wake a process that stands still although no one traces it and that ran before.

    A killed py-spy leaves no such process; this is for the kernels on which that is not so.
    Answers whether a SIGCONT was sent.
    """
    stat = read_stat(pid)
    if was_stopped or stat is None or stat.state != "T":
        return False
    if read_status(pid).get("TracerPid") != "0":
        return False
    try:
        os.kill(pid, signal.SIGCONT)
    except OSError:
        return False
    return True


def _dump_once(binary: str, tool: str, pid: int, mode: DumpMode, limit: float) -> DumpResult:
    command = [binary, "dump", "--json", *_ARGUMENTS[mode], "--pid", str(pid)]
    before = read_stat(pid)
    started = time.monotonic()
    run = _run(command, limit_seconds=limit, guarded=mode != "nonblocking")
    maps = read_maps(pid) if run.status == 0 and mode == "native" else None
    seconds = round(time.monotonic() - started, 3)
    if run.status is None:
        resume_if_left_stopped(pid, was_stopped=before is None or before.state in "Tt")
        reason = f"py-spy: no answer within {limit:.3g} s, killed"
        return _failed(Unread(kind="timeout", reason=reason), mode, tool, seconds)
    if run.status != 0:
        return _failed(_explain(run, pid), mode, tool, seconds)
    try:
        threads = decode_threads(_shareable(resolve_addresses(run.stdout, maps or "")))
    except FormatError as error:
        return _failed(Unread(kind="garbage", reason=f"py-spy: {error}"), mode, tool, seconds)
    if not threads:
        reason = "py-spy: the process has no Python thread (it is starting or ending)"
        return _failed(Unread(kind="starting", reason=reason), mode, tool, seconds)
    told = Dump(ok=True, tool=tool, mode=mode, seconds=seconds)
    return DumpResult(dump=told, threads=_with_outer_tids(pid, threads))


def _explain(run: Run, pid: int) -> Unread:
    if run.status in (-signal.SIGSYS, 128 + signal.SIGSYS):
        return Unread(kind="seccomp", reason="py-spy: killed by a seccomp filter")
    stat = read_stat(pid)
    state = stat.state if stat else None
    return sharpen(explain(run.stderr, state=state, exists=not is_gone(pid)), pid)


def _with_outer_tids(pid: int, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The threads of a container's process by the numbers that our /proc knows them by.

    py-spy gives those of the process's own namespace, and looks for each one's state under that
    number in ours: what it calls active is not known.
    """
    if read_inner_pid(pid) is None:
        return threads
    outer = {read_inner_pid(pid, tid): tid for tid in list_tids(pid) or ()}
    return tuple(replace(x, tid=outer.get(x.tid), active=None) for x in threads)


def _shareable(dump: bytes) -> bytes:
    """Without home directories: stacks are made to be pasted into tickets."""
    return shorten_homes(dump.decode("utf-8", "replace")).encode()


def _failed(failure: Unread, mode: DumpMode, tool: str | None, seconds: float | None) -> DumpResult:
    told = Dump(
        ok=False,
        tool=tool,
        mode=mode,
        seconds=seconds,
        error=failure.reason,
        kind=failure.kind,
        cure=failure.cure or None,
    )
    return DumpResult(dump=told, threads=Missing(failure.reason), failure=failure)


def _run(command: list[str], *, limit_seconds: float, guarded: bool) -> Run:
    """Run a command to its end or to its time limit; nothing of it is left behind."""
    _reap()
    if guarded:
        guard = [sys.executable, "-I", "-S", dump_guard.__file__, f"{limit_seconds:.3f}"]
        command = [*guard, *command]
        limit_seconds += _GRACE_SECONDS
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if guarded else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=tool_environ(os.environ),
            start_new_session=True,  # not for the terminal's ^C, and killed as a group
        )
    except (OSError, ValueError) as error:
        return Run(127, b"", f"could not start {command[0]}: {error}")
    # communicate() would close the guard's standard input, its sign that we are alive.
    alive, child.stdin = child.stdin, None
    try:
        stdout, stderr = child.communicate(timeout=limit_seconds)
        status: int | None = child.returncode
    except subprocess.TimeoutExpired:
        stdout, stderr, status = b"", b"", None
    finally:
        _end(child)
        if alive is not None:
            alive.close()
    if guarded and status in (dump_guard.TIMED_OUT, dump_guard.ABANDONED):
        status = None
    text = stderr.decode("utf-8", "replace").partition(BACKTRACE)[0]
    return Run(status, stdout, text)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child and its session."""
    # Also where it was killed by others: a guard that ended so has left its py-spy behind. Not
    # after a regular end: the number may belong to somebody else by now.
    if child.returncode is None or child.returncode < 0:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _unreaped.append(child)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _reap() -> None:
    """Collect children that died later than we could wait for."""
    for child in list(_unreaped):
        if child.poll() is not None:
            with contextlib.suppress(ValueError):
                _unreaped.remove(child)
