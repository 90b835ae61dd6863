"""One process at one moment: who it is, what the kernel says of it, what its stacks show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.missing import Missing
from whyhang.schemas.stack import Thread
from whyhang.schemas.unread import UnreadKind
from whyhang.schemas.words import ProcessKind

DumpMode = Literal["native", "python", "nonblocking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IoCounters:
    """``/proc/PID/io``: bytes and calls since the process started; None where unread.

    ``rchar`` and ``wchar`` count every read and write, sockets included; ``read_bytes`` and
    ``write_bytes`` only what reached a device.
    """

    read_bytes: int | None = None
    write_bytes: int | None = None
    rchar: int | None = None
    wchar: int | None = None
    syscr: int | None = None
    syscw: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OsThread:
    """A kernel task of the process; ``state`` is the letter of ``/proc/PID/task/TID/stat``."""

    tid: int
    name: str | None = None
    state: str | None = None
    wchan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedOn:
    """What a system call waits for: ``call`` its name, and the file or the socket's other end.

    ``path`` is as /proc links it (``pipe:[12]`` for a pipe), ``peer`` is ``address:port``.
    """

    fd: int
    call: str | None = None
    path: str | None = None
    peer: str | None = None

    def __str__(self) -> str:
        """``read on /data/shard-3.bin``."""
        what = self.path or self.peer or f"descriptor {self.fd}"
        return f"{self.call} on {what}" if self.call else f"on {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """How the stacks were read.

    Where they were not, ``error`` says why, ``kind`` the same in a form to decide by, and ``cure``
    what helps. With ``ok`` all three tell why there are no better ones.
    """

    ok: bool
    tool: str | None = None
    mode: DumpMode | None = None
    seconds: float | None = None
    error: str | None = None
    kind: UnreadKind | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process line of a sample. None means unknown, never zero.

    ``threads`` is Missing where no stack could be read. ``state`` is the kernel's letter (R, S,
    D, T, t, Z; X for a process that had exited). ``os_threads`` is None where it was not read.
    """

    pid: int
    node: str
    kind: ProcessKind = "other"
    rank: int | None = None
    local_rank: int | None = None
    worker: int | None = None
    ppid: int | None = None
    name: str | None = None
    cmdline: tuple[str, ...] | None = None
    python: str | None = None
    state: str | None = None
    wchan: str | None = None
    syscall: int | None = None
    blocked_on: BlockedOn | None = None
    kernel_stack: tuple[str, ...] | None = None
    cpu_seconds: float | None = None
    io: IoCounters | None = None
    exit: int | None = None
    tracer_pid: int | None = None
    run_queue_seconds: float | None = None
    cpus_allowed: str | None = None
    os_threads: tuple[OsThread, ...] | None = None
    dump: Dump | None = None
    threads: tuple[Thread, ...] | Missing = Missing("no dump was taken")
    gpu_index: int | None = None
    gpu_uuid: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What makes it the same process in two samples."""
        return self.node, self.pid

    @property
    def place(self) -> str:
        """``gpu31:4250``: what it is called where it has no rank."""
        return f"{self.node}:{self.pid}"
