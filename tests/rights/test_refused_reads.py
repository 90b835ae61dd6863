"""One process read, or not, where rights are missing: the kind of reason, and its cure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial

import pytest

from tests.patience import eventually
from tests.rights.situations import (
    AS_NOBODY,
    IN_NEW_PID_NAMESPACE,
    NOBODY,
    UNDUMPABLE,
    WAIT,
    WITHOUT_CAPABILITIES,
    dump_in,
    is_free,
    needs_filter,
    needs_namespaces,
    needs_ptrace,
    needs_root,
    target,
    under_filter,
)
from whyhang.collectors import procfs, pyspy
from whyhang.collectors.collect import take_sample
from whyhang.collectors.process_table import list_processes
from whyhang.schemas.config import CollectConfig
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, DumpMode
from whyhang.schemas.unread import CURES, UnreadKind

pytestmark = [pytest.mark.integration, needs_ptrace]
FRAMES = ["wait_here", "<module>"]
MODES: tuple[DumpMode, ...] = ("nonblocking", "python", "native")
# How a dump may end that meets a process in its first or last moments.
PASSING: frozenset[UnreadKind] = frozenset(
    ("gone", "zombie", "torn", "starting", "not_python", "namespace", "traced", "unwind")
)


@needs_root
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("around", "inside", "code", "words"),
    [
        (AS_NOBODY, (), WAIT, f"runs as user 0, whyhang as user {NOBODY}"),
        (WITHOUT_CAPABILITIES, (), WAIT, "has capabilities that whyhang has not"),
        (AS_NOBODY, AS_NOBODY, UNDUMPABLE, "PR_SET_DUMPABLE"),
        (WITHOUT_CAPABILITIES, WITHOUT_CAPABILITIES, UNDUMPABLE, "permission denied"),
    ],
    ids=["other user", "more capabilities", "undumpable", "undumpable root"],
)
def test_without_rights_nothing_is_read(
    around: Sequence[str], inside: Sequence[str], code: str, words: str, mode: DumpMode
) -> None:
    """The reason is the permission, told with the rule of the kernel that refused it."""
    with target(code, before=inside) as pid:
        found = dump_in(around, pid, mode)
        assert (found["kind"], found["cure"]) == ("permission", CURES["permission"])
        assert words in found["error"]
        assert is_free(pid)


@needs_root
@pytest.mark.parametrize("mode", MODES)
def test_equal_capabilities_suffice(mode: DumpMode) -> None:
    """In a container without SYS_PTRACE, its own processes are read all the same."""
    with target(before=WITHOUT_CAPABILITIES) as pid:
        assert dump_in(WITHOUT_CAPABILITIES, pid, mode)["frames"] == FRAMES
        assert is_free(pid)


@needs_filter
def test_a_filter_leaves_the_stack_that_needs_no_stop() -> None:
    """Where ptrace is forbidden the Python stack is read, and what attaches names the filter."""
    with target() as pid:
        assert dump_in(under_filter(), pid)["frames"] == FRAMES
        for mode in ("python", "native"):
            found = dump_in(under_filter(), pid, mode)
            assert (found["kind"], found["cure"]) == ("seccomp", CURES["seccomp"])
        assert is_free(pid)


@needs_filter
def test_a_filter_that_kills_is_named() -> None:
    """A py-spy that the kernel killed for a call leaves a reason and a running target."""
    with target() as pid:
        for mode in ("python", "native"):
            found = dump_in(under_filter("kill"), pid, mode)
            assert (found["kind"], found["cure"]) == ("seccomp", CURES["seccomp"])
        assert is_free(pid)


@needs_namespaces
def test_a_container_is_read_from_outside() -> None:
    """Its threads get the numbers of our /proc, and native frames are not tried in vain."""
    with target(before=IN_NEW_PID_NAMESPACE) as pid:
        assert procfs.read_inner_pid(pid) == 1
        result = pyspy.dump(pid, "nonblocking", 30)
        assert not isinstance(result.threads, Missing), result.threads
        assert [(thread.tid, thread.active) for thread in result.threads] == [(pid, None)]
        failure = pyspy.dump(pid, "native", 30).failure
        assert failure is not None
        assert failure.kind == "namespace"
        config = CollectConfig(native="always")
        (process,) = take_sample(
            list_processes(node="n", root=pid), deep=True, config=config, deadline_seconds=60
        )
        assert isinstance(process.dump, Dump)
        assert (process.dump.ok, process.dump.mode) == (True, "nonblocking")
        assert (process.dump.kind, process.dump.cure) == ("namespace", CURES["namespace"])
        assert is_free(pid)


@needs_namespaces
def test_a_container_is_read_from_inside() -> None:
    """There it has its own numbers, and native frames as well."""
    with target(before=IN_NEW_PID_NAMESPACE) as pid:
        inside = ("nsenter", "-t", str(pid), "-p", "-m")
        found = dump_in(inside, 1, "native")
        assert (found["frames"], found["tids"]) == (FRAMES, [1])
        assert is_free(pid)


def _is_traced(pid: int) -> bool:
    return procfs.read_status(pid).get("TracerPid") != "0"


TRACER = """
import ctypes, os, sys, time
seize = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), 0, 0)
print("ready" if seize == 0 else os.strerror(ctypes.get_errno()), flush=True)
time.sleep(300)
"""


@needs_root
def test_a_traced_process_is_read_without_attaching() -> None:
    """A debugger's hold forbids attaching only, and it is named; it is not ours to end."""
    with target() as pid:
        tracer = subprocess.Popen(
            [sys.executable, "-c", TRACER, str(pid)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert tracer.stdout is not None
            assert tracer.stdout.readline() == "ready\n"
            assert pyspy.dump(pid, "nonblocking", 30).failure is None
            failure = pyspy.dump(pid, "native", 30).failure
            assert failure is not None
            assert failure.kind == "traced"
            assert f"traced by process {tracer.pid}" in failure.reason
            assert procfs.read_status(pid)["TracerPid"] == str(tracer.pid)
        finally:
            tracer.kill()
            tracer.wait()
            if tracer.stdout is not None:
                tracer.stdout.close()
        assert is_free(pid)


def test_a_process_that_ends_during_its_dump() -> None:
    """It is read, or its end is the reason; no dump hangs."""
    for number in range(8):
        started = time.monotonic()
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"])
        try:
            time.sleep(0.04 * number)
            result = pyspy.dump(process.pid, "python" if number % 2 else "native", 20)
        finally:
            process.kill()
            process.wait()
        assert result.failure is None or result.failure.kind in PASSING, result.failure
        assert time.monotonic() - started < 20


def test_a_process_that_is_killed_during_its_dump() -> None:
    """The tracer of a dying process ends too, whatever it has read by then."""
    for _ in range(3):
        with target() as pid:
            code = f"from whyhang.collectors.pyspy import dump; print(dump({pid}, 'native', 20))"
            dumper = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
            assert eventually(partial(_is_traced, pid))
            os.kill(pid, signal.SIGKILL)
            assert dumper.wait(20) == 0


def test_an_interpreter_that_is_starting() -> None:
    """It is read or said to be starting, and a moment later it is read."""
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True)
        try:
            failure = pyspy.dump(process.pid, "nonblocking", 20, sleep=lambda _: None).failure
            assert failure is None or failure.kind in PASSING, failure
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            result = pyspy.dump(process.pid, "nonblocking", 20)
            assert not isinstance(result.threads, Missing), result.threads
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
