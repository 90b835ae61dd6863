"""Processes as the lines of a sample. Pure: reads and writes no file."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from whyhang.schemas.lenient import decode_leniently
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import BlockedOn, Dump, IoCounters, OsThread, Process
from whyhang.schemas.stack_codec import StackReader, ThreadWire, thread_wire
from whyhang.schemas.wire import choice, rank_or_none, reader
from whyhang.schemas.words import PROCESS_KINDS, ProcessKind

# A line of /proc/PID/stack: `[<0>] nfs_wait_bit_killable+0x1e/0x90 [nfs]`.
_KERNEL_LINE = re.compile(r"(?:\[<[0-9a-fA-F]*>\]\s*)?(?P<function>[^+\s]+)")


class _Gpu(Struct):
    index: int | None = None
    uuid: str | None = None


class _Process(Struct):
    pid: int
    node: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    worker: int | None = None
    gpu: _Gpu | None = None
    ppid: int | None = None
    kind: str | None = None
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
    threads: list[ThreadWire] | None = None


class ProcessReader:
    """Decodes processes, reading each distinct stack once.

    ``ignored`` tells of values that were not what they should be and count as unknown, ``kindless``
    are the ranks of lines that do not say which kind of process they are.
    """

    def __init__(self) -> None:
        self.kindless: set[int] = set()
        self._stacks = StackReader()
        self._decoder = msgspec.json.Decoder(_Process, strict=False)

    @property
    def ignored(self) -> list[str]:
        """What was lost so far, in lines and in their stacks."""
        return self._stacks.ignored

    def process(self, line: bytes, *, node: str = "") -> Process:
        """Decode one line of a sample; ``node`` is the file's, for lines that name none.

        Raises FormatError.
        """
        wire, ignored = decode_leniently(line, reader(self._decoder, "a process line"))
        self.ignored.extend(ignored)
        threads = self._stacks.from_wires(wire.threads or ())
        rank = rank_or_none(wire.rank)
        if wire.kind not in PROCESS_KINDS and rank is not None:
            self.kindless.add(rank)
        return Process(
            pid=wire.pid,
            node=wire.node or node,
            kind=_kind(wire.kind),
            rank=rank,
            local_rank=wire.local_rank,
            worker=wire.worker,
            ppid=wire.ppid,
            name=wire.name,
            cmdline=wire.cmdline,
            python=wire.python,
            state=wire.state,
            wchan=None if wire.wchan in ("0", "") else wire.wchan,
            syscall=wire.syscall,
            blocked_on=wire.blocked_on,
            kernel_stack=_kernel_stack(wire.kernel_stack),
            cpu_seconds=wire.cpu_seconds,
            io=wire.io,
            exit=wire.exit,
            tracer_pid=wire.tracer_pid,
            run_queue_seconds=wire.run_queue_seconds,
            cpus_allowed=wire.cpus_allowed,
            os_threads=wire.os_threads,
            dump=wire.dump,
            threads=threads or _unread(wire.dump),
            gpu_index=wire.gpu.index if wire.gpu else None,
            gpu_uuid=wire.gpu.uuid if wire.gpu else None,
        )


def encode_process(process: Process) -> bytes:
    """One line of a sample, without the line break. Unknown values are left out."""
    gpu = {"index": process.gpu_index, "uuid": process.gpu_uuid}
    wire: dict[str, Any] = {
        "node": process.node,
        "rank": process.rank,
        "local_rank": process.local_rank,
        "worker": process.worker,
        "gpu": gpu if process.gpu_index is not None or process.gpu_uuid else None,
        "pid": process.pid,
        "ppid": process.ppid,
        "kind": process.kind,
        "name": process.name,
        "cmdline": process.cmdline,
        "python": process.python,
        "state": process.state,
        "wchan": process.wchan,
        "syscall": process.syscall,
        "blocked_on": process.blocked_on,
        "kernel_stack": process.kernel_stack,
        "cpu_seconds": process.cpu_seconds,
        "io": process.io,
        "exit": process.exit,
        "tracer_pid": process.tracer_pid,
        "run_queue_seconds": process.run_queue_seconds,
        "cpus_allowed": process.cpus_allowed,
        "os_threads": process.os_threads,
        "dump": _dump(process),
        "threads": None
        if isinstance(process.threads, Missing)
        else [thread_wire(process.pid, thread) for thread in process.threads],
    }
    return msgspec.json.encode({key: value for key, value in wire.items() if value is not None})


def _dump(process: Process) -> Dump | None:
    """The dump; the reason of missing threads survives also where no dump was tried."""
    if process.dump is None and isinstance(process.threads, Missing):
        return Dump(ok=False, error=process.threads.reason)
    return process.dump


def _kernel_stack(lines: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The functions of a kernel stack, which may be written as /proc prints them."""
    if lines is None:
        return None
    matches = (_KERNEL_LINE.match(line.strip()) for line in lines)
    return tuple(match["function"] for match in matches if match is not None)


def _kind(text: str | None) -> ProcessKind:
    kind: ProcessKind = choice(text, PROCESS_KINDS, "other")
    return kind


def _unread(dump: Dump | None) -> Missing:
    if dump is None:
        return Missing("no dump was taken")
    if dump.error:
        return Missing(dump.error)
    return Missing("the dump shows no thread" if dump.ok else "the dump failed")
