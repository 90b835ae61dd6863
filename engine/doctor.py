"""Examines this host: can whyhang collect here, and if not, what helps?"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from whyhang.collectors import procfs, pyspy
from whyhang.collectors.gpu_facts import read_gpus
from whyhang.collectors.log_files import find_log, log_age
from whyhang.collectors.process_table import list_processes
from whyhang.collectors.ras_version import detect_nccl
from whyhang.engine import checkup
from whyhang.engine.checkup import Check
from whyhang.engine.store import spool_root
from whyhang.schemas.config import Config
from whyhang.schemas.environment import INTERNAL
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

T = TypeVar("T")

WANTED_STORE_BYTES = 10**9
WANTED_SPOOL_BYTES = 500 * 10**6
PLACE_SECONDS = 3.0
TRIAL_SECONDS = 15.0
GPU_SECONDS = 8.0
_CAP_SYS_PTRACE = 19
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
# Python's options that take no value and end no list of options.
_FLAGS = re.compile(r"-[bBdEiIOPqRsSuvx]+|-[WX].+")
_SLEEPER = "import sys, time; print(flush=True); time.sleep(60)"


def examine(config: Config, log: Path | None = None) -> Iterator[Check]:
    """All checks, one after the other; nothing is changed, and the job is only looked at."""
    node = platform.node() or "localhost"
    processes = list_processes(node=node, exclude=(os.getpid(),))
    trainers = [process for process in processes if process.kind == "trainer"]
    yield _check_rights(trainers)
    binary = pyspy.find_pyspy()
    version = None if isinstance(binary, Missing) else pyspy.tool_name(binary)
    yield checkup.pyspy(binary, version)
    if not isinstance(binary, Missing):
        yield _check_reading()
    yield checkup.pythons({process.pid: process.python for process in trainers})
    yield checkup.namespace(
        [process.pid for process in trainers if _is_inner(process.pid)], hidden=_hides_pids()
    )
    yield _check_log(config, log, processes)
    yield checkup.buffering({process.pid: is_unbuffered(process) for process in trainers})
    yield _check_nccl(trainers)
    yield _check_gpus()
    yield checkup.kernel_log(_kernel_log_trouble())
    store = Path(config.store.path)
    yield checkup.space("store", str(store), free_bytes(store), wanted_bytes=WANTED_STORE_BYTES)
    spool = spool_root()
    yield checkup.space("spool", str(spool), free_bytes(spool), wanted_bytes=WANTED_SPOOL_BYTES)
    yield _check_exchange(config.store.exchange)


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


def _check_rights(trainers: Sequence[Process]) -> Check:
    capabilities = procfs.read_status(os.getpid()).get("CapEff")
    capable = None if capabilities is None else bool(int(capabilities, 16) >> _CAP_SYS_PTRACE & 1)
    owners = (procfs.read_status(p.pid).get("Uid", "").split()[:1] for p in trainers)
    return checkup.rights(
        capable=capable,
        uid=os.geteuid(),
        yama=_yama(),
        owners={int(words[0]) for words in owners if words},
    )


def _check_reading() -> Check:
    """Read a process of our own that is no descendant of py-spy, as the job's are not."""
    try:
        target = subprocess.Popen(
            [sys.executable, "-I", "-c", _SLEEPER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, INTERNAL: "1"},
        )
    except OSError as error:
        return checkup.trial(f"no process could be started: {error.strerror}", None)
    try:
        if target.stdout is not None:
            target.stdout.readline()
        started = time.monotonic()
        result = pyspy.dump(target.pid, "nonblocking", TRIAL_SECONDS)
        seconds = time.monotonic() - started
    finally:
        target.kill()
        target.wait()
        if target.stdout is not None:
            target.stdout.close()
    failure = result.threads.reason if isinstance(result.threads, Missing) else None
    return checkup.trial(failure, seconds)


def _check_log(config: Config, named: Path | None, processes: Sequence[Process]) -> Check:
    path = named
    if path is None and config.progress.log:
        names = (name for pattern in config.progress.log for name in _matches(pattern))
        path = next((Path(name) for name in names if Path(name).is_file()), None)
    if path is None:
        path = find_log(process.pid for process in processes)
    if path is None:
        return checkup.log(None, None, has_job=bool(processes))
    age = log_age(path, time.time(), config.progress.preset, config.progress.pattern)
    preset = age.preset if age.last is not None else None
    return checkup.log(str(path), preset, has_job=bool(processes))


def _matches(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (it may be absolute)


def _check_nccl(trainers: Sequence[Process]) -> Check:
    if not trainers:
        return checkup.nccl(Missing("no process with a rank runs here"), None)
    found = detect_nccl(trainers[0].pid)
    if isinstance(found, Missing):
        return checkup.nccl(found, None)
    return checkup.nccl(found.versions, found.path)


def _check_gpus() -> Check:
    found = read_gpus(GPU_SECONDS)
    count = found if isinstance(found, Missing) else len(found)
    return checkup.gpus(count, has_device=Path("/dev/nvidiactl").exists())


def _check_exchange(url: str | None) -> Check:
    if url is None or ("://" in url and not url.startswith("file://")):
        return checkup.exchange(url, None)
    found = free_bytes(Path(url.removeprefix("file://")))
    return checkup.exchange(url, found.reason if isinstance(found, Missing) else None)


def _yama() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(_YAMA.read_text())
    return None


def _is_inner(pid: int) -> bool:
    """Whether a process has a number of its own in a namespace below ours."""
    return len(procfs.read_status(pid).get("NSpid", "").split()) > 1


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
