"""What /proc tells of one process or thread; None wherever it does not tell.

Nothing here raises: processes end between two reads, and other users' files are closed to us.
Formats: proc(5). Times are seconds, ``tid`` None means the process (its main thread).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from whyhang.collectors.patient_read import read_bytes, read_patiently
from whyhang.schemas.process import IoCounters, OsThread
from whyhang.schemas.unread import Unread

PROC = "/proc"
_TICKS = os.sysconf("SC_CLK_TCK")
_STOPPED = frozenset("Tt")
_EXIT_CODE_FIELD = 49  # proc(5) counts it as 52; counted from the state, which is 3, as 0
_KERNEL_FRAME = re.compile(r"^(?:\[<[0-9a-fA-F]*>\]\s*)?([^+\s]+)")
_PYTHON_EXE = re.compile(r"(?:python|pypy)(?P<version>\d(?:\.\d+)*)?[a-z]*")
_NSPID = re.compile(rb"^NSpid:((?:[ \t]+\d+)+)$", re.MULTILINE)
_LIBPYTHON = re.compile(rb"/libpython(\d\.\d+)[^/\n]*\.so")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """``/proc/PID/stat``: name as the kernel cut it, times since the process started."""

    pid: int
    name: str
    state: str
    ppid: int
    session: int
    cpu_seconds: float
    start_ticks: int
    exit_code: int | None


def list_pids() -> tuple[int, ...]:
    """All processes of this PID namespace, ascending."""
    try:
        names = [path.name for path in Path(PROC).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))


def list_tids(pid: int) -> tuple[int, ...] | None:
    """The threads of a process, ascending; None where the process is gone."""
    try:
        names = [path.name for path in Path(f"{PROC}/{pid}/task").iterdir()]
    except OSError:
        return None
    return tuple(sorted(int(name) for name in names))


def parse_stat(data: bytes) -> Stat | None:
    """Parse a ``stat`` line. The name may hold blanks and brackets: it ends at the last ``)``."""
    head, bracket, tail = data.rpartition(b")")
    pid, opening, name = head.partition(b"(")
    fields = tail.split()
    if not (bracket and opening) or len(fields) < 20:
        return None
    try:
        exit_word = int(fields[_EXIT_CODE_FIELD]) if len(fields) > _EXIT_CODE_FIELD else None
        return Stat(
            pid=int(pid),
            name=name.decode("utf-8", "replace"),
            state=fields[0].decode("ascii", "replace"),
            ppid=int(fields[1]),
            session=int(fields[3]),
            cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
            start_ticks=int(fields[19]),
            exit_code=None if exit_word is None else _exit_code(exit_word),
        )
    except ValueError:
        return None


def read_stat(pid: int, tid: int | None = None) -> Stat | None:
    """State, parent and CPU time of a process or of one of its threads."""
    data = read_bytes(f"{_folder(pid, tid)}/stat")
    return None if data is None else parse_stat(data)


def read_status(pid: int) -> Mapping[str, str]:
    """``/proc/PID/status`` as a mapping (``TracerPid``, ``Cpus_allowed_list``, …); may be empty."""
    data = read_bytes(f"{PROC}/{pid}/status")
    if data is None:
        return {}
    lines = data.decode("utf-8", "replace").splitlines()
    return {key: value.strip() for key, colon, value in (x.partition(":") for x in lines) if colon}


def tracer_of(status: Mapping[str, str]) -> int | None:
    """Who holds a process by its ``/proc/PID/status``; 0 for nobody, None where that is unknown.

    py-spy, whoever started it (another whyhang, a person), holds a process for a moment only: it
    counts as nobody, unless it stands still itself and will not let go.
    """
    tracer = status.get("TracerPid", "")
    if not tracer.isdigit():
        return None
    sampler = read_stat(int(tracer)) if tracer != "0" else None
    passes = sampler is not None and sampler.name == "py-spy" and sampler.state not in _STOPPED
    return 0 if passes else int(tracer)


def read_inner_pid(pid: int, tid: int | None = None) -> int | None:
    """The number of a process or thread in its own PID namespace, where that lies below ours.

    None where it lives in ours, or where /proc does not tell.
    """
    data = read_bytes(f"{_folder(pid, tid)}/status") or b""
    match = _NSPID.search(data)
    numbers = match.group(1).split() if match is not None else []
    return int(numbers[-1]) if len(numbers) > 1 else None


def read_wchan(pid: int, tid: int | None = None) -> str | None:
    """The kernel function in which a thread sleeps.

    ``0`` means running, or not permitted: both are None.
    """
    data = read_bytes(f"{_folder(pid, tid)}/wchan")
    text = "" if data is None else data.decode("ascii", "replace").strip()
    return text if text not in ("", "0") else None


def read_os_threads(pid: int) -> tuple[OsThread, ...] | None:
    """Every kernel task of a process, C++ threads included; None where it is gone."""
    tids = list_tids(pid)
    if tids is None:
        return None
    threads = []
    for tid in tids:
        stat = read_stat(pid, tid)
        if stat is not None:  # else the thread ended meanwhile
            wchan = read_wchan(pid, tid)
            threads.append(OsThread(tid=tid, name=stat.name, state=stat.state, wchan=wchan))
    return tuple(threads) or None


def read_syscall(pid: int) -> int | None:
    """Number of the system call the main thread is in; -1 blocked outside one, None running."""
    text = _text(read_patiently(f"{PROC}/{pid}/syscall"))
    return _integer(text.split()[0]) if text and text.split() else None


def read_io(pid: int) -> IoCounters | None:
    """Bytes and calls since the process started."""
    text = _text(read_patiently(f"{PROC}/{pid}/io"))
    if text is None:
        return None
    pairs = (line.partition(":") for line in text.splitlines())
    counts = {key: _integer(value.strip()) for key, _, value in pairs}
    return IoCounters(
        read_bytes=counts.get("read_bytes"),
        write_bytes=counts.get("write_bytes"),
        rchar=counts.get("rchar"),
        wchar=counts.get("wchar"),
        syscr=counts.get("syscr"),
        syscw=counts.get("syscw"),
    )


def read_kernel_stack(pid: int) -> tuple[str, ...] | None:
    """Kernel functions of the main thread, innermost first; root only, empty where it runs."""
    text = _text(read_patiently(f"{PROC}/{pid}/stack"))
    if text is None:
        return None
    matches = (_KERNEL_FRAME.match(line.strip()) for line in text.splitlines())
    return tuple(match.group(1) for match in matches if match is not None)


def read_run_queue_seconds(pid: int) -> float | None:
    """Seconds the main thread was runnable without a CPU (second field of ``schedstat``)."""
    text = _text(read_bytes(f"{PROC}/{pid}/schedstat"))
    fields = text.split() if text else []
    nanoseconds = _integer(fields[1]) if len(fields) > 1 else None
    return None if nanoseconds is None else nanoseconds / 1e9


def read_environ(pid: int) -> Mapping[str, str] | None:
    """The environment a process was started with; None where not permitted, or a zombie."""
    data = read_patiently(f"{PROC}/{pid}/environ")
    if not data:
        return None
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0"))
    return {key: value for key, equals, value in pairs if equals}


def read_cmdline(pid: int) -> tuple[str, ...] | None:
    """The command line, unmasked; None for zombies and kernel threads, whose is empty.

    A process that set its own title has one word, with trailing NULs.
    """
    data = read_patiently(f"{PROC}/{pid}/cmdline")
    stripped = (data or b"").rstrip(b"\0 ")
    if not stripped:
        return None
    return tuple(word.decode("utf-8", "replace") for word in stripped.split(b"\0"))


def read_exe(pid: int) -> str | None:
    """The path of the running binary, as seen inside its mount namespace."""
    try:
        return str(Path(f"{PROC}/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        return None


def read_maps(pid: int) -> str | None:
    """``/proc/PID/maps``."""
    return _text(read_patiently(f"{PROC}/{pid}/maps"))


def python_of(exe: str) -> tuple[bool, str | None]:
    """Whether a binary is a Python interpreter, by its name, and the version the name tells."""
    match = _PYTHON_EXE.fullmatch(Path(exe).name)
    if match is None:
        return False, None
    version = match.group("version")
    return True, version if version and "." in version else None


def embedded_python(pid: int) -> str | None:
    """The version of the ``libpython`` a process has mapped, for programs that embed Python."""
    data = read_patiently(f"{PROC}/{pid}/maps")
    match = _LIBPYTHON.search(data or b"")
    return match.group(1).decode() if match is not None else None


def is_gone(pid: int) -> bool:
    """Whether no such process exists."""
    return not Path(f"{PROC}/{pid}").exists()


def dump_hazard(pid: int) -> Unread | None:
    """Why a dump that stops the process would not be safe now; None where it is safe.

    py-spy waits for every thread to stop: for one in uninterruptible sleep it waits as long as
    that lasts, with all others stopped. What cannot be read is not safe either.
    """
    tracer = read_status(pid).get("TracerPid")
    threads = read_os_threads(pid)
    if tracer is None or threads is None:
        return Unread(kind="gone", reason="its state could not be read")
    if tracer != "0":
        return Unread(kind="traced", reason=f"it is traced by process {tracer}")
    for thread in threads:
        who = f"thread {thread.tid}"
        if thread.state == "D":
            sleeps = f"{who} is in uninterruptible sleep (D)"
            return Unread(kind="uninterruptible", reason=sleeps)
        if thread.state in _STOPPED:
            return Unread(kind="stopped", reason=f"{who} is stopped ({thread.state})")
        if thread.wchan == "request_wait_answer":
            return Unread(kind="uninterruptible", reason=f"{who} waits for a FUSE server")
    return None


def _folder(pid: int, tid: int | None) -> str:
    return f"{PROC}/{pid}" if tid is None else f"{PROC}/{pid}/task/{tid}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _exit_code(word: int) -> int:
    """A wait status as ``subprocess`` counts it: negative for a signal."""
    signal = word & 0x7F
    return -signal if signal else (word >> 8) & 0xFF
