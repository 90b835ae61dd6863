"""Examines this host: can whyhang collect here, and if not, what helps?"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from whyhang.collectors import procfs, pyspy
from whyhang.collectors.gpu_facts import read_gpus
from whyhang.collectors.log_files import find_log, is_closed, log_age
from whyhang.collectors.process_table import list_processes, read_identities
from whyhang.collectors.ras_client import settings_of
from whyhang.collectors.ras_safety import Policy
from whyhang.collectors.ras_version import detect_nccl
from whyhang.collectors.rights import read_guarded, read_rights
from whyhang.collectors.unread_ranks import closed_pythons
from whyhang.engine import checkup
from whyhang.engine.checkup import Check
from whyhang.engine.spool import spool_root
from whyhang.engine.temporary import temporary_directory
from whyhang.engine.trials import try_child, try_job
from whyhang.schemas.config import Config
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

T = TypeVar("T")

WANTED_STORE_BYTES = 10**9
WANTED_SPOOL_BYTES = 500 * 10**6
PLACE_SECONDS = 3.0
GPU_SECONDS = 8.0
# Python's options that take no value and end no list of options.
_FLAGS = re.compile(r"-[bBdEiIOPqRsSuvx]+|-[WX].+")


def examine(config: Config, log: Path | None = None, root: int | None = None) -> Iterator[Check]:
    """All checks, one after the other; nothing is changed, and the job is only looked at.

    ``root`` is the first process of the job that is meant, where several run here.
    """
    node = platform.node() or "localhost"
    processes = list_processes(node=node, root=root, exclude=(os.getpid(),))
    trainers = [process for process in processes if process.kind == "trainer"]
    binary = pyspy.find_pyspy()
    version = None if isinstance(binary, Missing) else pyspy.tool_name(binary)
    yield checkup.pyspy(binary, version)
    yield from _check_stacks(trainers, has_tool=not isinstance(binary, Missing))
    yield checkup.pythons({process.pid: process.python for process in trainers})
    yield checkup.namespace(
        [process.pid for process in trainers if procfs.read_inner_pid(process.pid) is not None],
        hidden=_hides_pids(),
        foreign_proc=Path("/proc/self").readlink() != Path(str(os.getpid())),
    )
    yield _check_log(config, log, processes)
    yield checkup.buffering({process.pid: is_unbuffered(process) for process in trainers})
    yield from _check_nccl(trainers, config.collect.ras)
    yield _check_gpus()
    yield checkup.kernel_log(_kernel_log_trouble())
    store = Path(config.store.path)
    yield checkup.space("store", str(store), free_bytes(store), wanted_bytes=WANTED_STORE_BYTES)
    yield _check_spool()
    if config.store.exchange is not None:
        yield checkup.exchange(config.store.exchange)


def _check_spool() -> checkup.Check:
    try:
        spool = spool_root()
    except OSError:
        # What is in the way of it is in the way here.
        spool = temporary_directory()
    return checkup.space("spool", str(spool), free_bytes(spool), wanted_bytes=WANTED_SPOOL_BYTES)


def is_unbuffered(process: Process) -> bool | None:
    """Whether a Python process writes each line at once; None where it cannot be known."""
    words = iter((process.cmdline or ())[1:])
    for word in words:
        if word in ("-W", "-X"):
            next(words, None)
        elif _FLAGS.fullmatch(word) is None:
            break
        elif "u" in word and word[1] not in "WX":
            return True
    environ = procfs.read_environ(process.pid)
    if environ is None:
        return None
    return bool(environ.get("PYTHONUNBUFFERED"))


def free_bytes(path: Path) -> int | Missing:
    """The room that a place which exists, or will be made, has for us; never waits for long."""

    def ask() -> int | Missing:
        place = path.absolute()
        while not place.exists():
            place = place.parent
        if not place.is_dir():
            return Missing(f"{place} is no directory")
        if not os.access(place, os.W_OK | os.X_OK):
            return Missing(f"{place} cannot be written")
        status = os.statvfs(place)
        return status.f_bavail * status.f_frsize

    found = within(PLACE_SECONDS, ask)
    return Missing("its file system does not answer") if found is None else found


def within(seconds: float, ask: Callable[[], T]) -> T | Missing | None:
    """The answer to a question that may hang; None where it does, Missing for an OSError."""
    answers: list[T | Missing] = []

    def run() -> None:
        try:
            answers.append(ask())
        except OSError as error:
            answers.append(Missing(error.strerror or str(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _check_stacks(trainers: Sequence[Process], *, has_tool: bool) -> Iterator[Check]:
    """What the kernel allows, then what it does in fact; only the second needs py-spy."""
    own = read_rights()
    guarded = {process.pid: read_guarded(process.pid) for process in trainers}
    child = try_child() if has_tool else None
    tried = try_job(trainers) if has_tool else {}
    yield checkup.rights(
        own,
        {pid: target for pid, target in guarded.items() if target is not None},
        read=[pid for pid, failure in tried.items() if failure is None],
    )
    yield checkup.seccomp(own, child.attach if child is not None else None)
    if child is not None:
        yield checkup.trial(child.reading, child.attach, child.seconds)
        closed = () if trainers else closed_pythons(read_identities())
        yield checkup.job_stacks(tried, closed)


def _check_log(config: Config, named: Path | None, processes: Sequence[Process]) -> Check:
    path = named
    if path is None and config.progress.log:
        names = (name for pattern in config.progress.log for name in _matches(pattern))
        path = next((Path(name) for name in names if Path(name).is_file()), None)
    if path is None:
        path = find_log(process.pid for process in processes)
    if path is None:
        closed = any(is_closed(process.pid) for process in processes)
        return checkup.log(None, None, has_job=bool(processes), closed=closed)
    age = log_age(path, time.time(), config.progress.preset, config.progress.pattern)
    preset = age.preset if age.last is not None else None
    return checkup.log(str(path), preset, has_job=bool(processes))


def _matches(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (it may be absolute)


def _check_nccl(trainers: Sequence[Process], policy: Policy) -> Iterator[Check]:
    if not trainers:
        yield checkup.nccl(Missing("no process with a rank runs here"), None)
        return
    found = detect_nccl(trainers[0].pid)
    if isinstance(found, Missing):
        yield checkup.nccl(found, None)
    else:
        yield checkup.nccl(found.versions, found.path)
    environ = procfs.read_environ(trainers[0].pid) or {}
    yield checkup.ras(policy, found, enabled=settings_of(environ).enabled)


def _check_gpus() -> Check:
    found = read_gpus(GPU_SECONDS)
    count = found if isinstance(found, Missing) else len(found)
    return checkup.gpus(count, has_device=Path("/dev/nvidiactl").exists())


def _hides_pids() -> bool:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if " - proc " in line and line.split()[4] == "/proc":
                return "hidepid=" in line and "hidepid=0" not in line and "hidepid=off" not in line
    return False


def _kernel_log_trouble() -> str | None:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return f"/dev/kmsg: {error.strerror}"
    return None
