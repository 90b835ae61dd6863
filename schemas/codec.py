"""Bytes to types and back, for the files of an incident. Pure: reads and writes no file.

Readers ignore unknown keys, take missing ones, null and values of a wrong type for unknown, and
accept the thread objects of any py-spy release. The only module that knows msgspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.errors import FormatError
from whyhang.schemas.frame import Frame, is_address
from whyhang.schemas.incident import FORMAT, Incident, Node, Source
from whyhang.schemas.lenient import decode_leniently
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import (
    PROCESS_KINDS,
    BlockedOn,
    Dump,
    IoCounters,
    OsThread,
    Process,
    ProcessKind,
)
from whyhang.schemas.progress import PHASES, LogEvent, Progress, ProgressEvent
from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet
from whyhang.schemas.stack import Stack, Thread

T = TypeVar("T")
_RANK = re.compile(r"[0-9]{1,7}")


class _Frame(Struct):
    name: str | None = None
    filename: str | None = None
    short_filename: str | None = None
    line: int | None = None
    module: str | None = None


class _Thread(Struct):
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    frames: Raw = Raw(b"[]")
    truncated: bool | None = None


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
    threads: list[_Thread] | None = None


class _Node(Struct):
    name: str | None = None
    ranks: str | None = None
    unread: str | None = None
    status: str | None = None
    reason: str | None = None


class _Progress(Struct):
    state: str | None = None
    preset: str | None = None
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    stalled_seconds: float | None = None
    threshold_seconds: float | None = None
    median_interval_seconds: float | None = None
    phase: str | None = None
    last_line: str | None = None
    per_rank_step: dict[str, int | None] | None = None


class _Checkpoint(Struct):
    name: str | None = None
    step: int | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None


class _Sample(Struct):
    index: int | None = None
    at: str | None = None
    monotonic_seconds: float | None = None


class _Source(Struct):
    ok: bool | None = None
    reason: str | None = None


class _Index(Struct):
    format: str
    print_id: str | None = None
    job_id: str | None = None
    job_name: str | None = None
    framework: str | None = None
    taken_at: str | None = None
    finished_at: str | None = None
    trigger: str | None = None
    world_size: int | None = None
    nodes: list[_Node] | None = None
    samples: list[_Sample] | None = None
    progress: _Progress | None = None
    checkpoint: _Checkpoint | None = None
    sources: dict[str, _Source | None] | None = None
    whyhang: str | None = None


class SampleTime(Struct, frozen=True):
    """When a sample was taken; ``monotonic_seconds`` counts from sample 0."""

    index: int
    at: str
    monotonic_seconds: float


class StackReader:
    """Decodes processes, reading each distinct stack once.

    A thousand ranks that hang show a handful of stacks: frames are kept as raw bytes until they
    prove to be new. Equal stacks come out as the same object. ``ignored`` tells of values that
    were not what they should be and count as unknown, ``kindless`` are the ranks of lines that do
    not say which kind of process they are.
    """

    def __init__(self) -> None:
        self.ignored: list[str] = []
        self.kindless: set[int] = set()
        self._frames: dict[tuple[bytes, bool], Stack] = {}
        self._stacks: dict[Stack, Stack] = {}
        self._interned: dict[Frame, Frame] = {}
        self._process = msgspec.json.Decoder(_Process, strict=False)
        self._threads = msgspec.json.Decoder(list[_Thread], strict=False)
        self._frame_list = msgspec.json.Decoder(list[_Frame] | None, strict=False)

    def process(self, line: bytes, *, node: str = "") -> Process:
        """Decode one line of a sample; ``node`` is the file's, for lines that name none.

        Raises FormatError.
        """
        wire, ignored = decode_leniently(line, _reader(self._process, "a process line"))
        self.ignored += ignored
        threads = self._thread_tuple(wire.threads or ())
        rank = _rank(wire.rank)
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
            kernel_stack=wire.kernel_stack,
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

    def threads(self, data: bytes) -> tuple[Thread, ...]:
        """Decode what ``py-spy dump --json`` prints. Raises FormatError."""
        wires, ignored = decode_leniently(data, _reader(self._threads, "a py-spy dump"))
        self.ignored += ignored
        return self._thread_tuple(wires)

    def _thread_tuple(self, wires: list[_Thread] | tuple[()]) -> tuple[Thread, ...]:
        return tuple(
            Thread(
                name=wire.thread_name or None,
                tid=wire.os_thread_id,
                active=wire.active,
                owns_gil=wire.owns_gil,
                stack=self._stack(bytes(wire.frames), bool(wire.truncated)),
            )
            for wire in wires
        )

    def _stack(self, raw: bytes, truncated: bool) -> Stack:
        known = self._frames.get((raw, truncated))
        if known is None:
            wires, ignored = decode_leniently(raw, _reader(self._frame_list, "a list of frames"))
            self.ignored += ignored
            frames = tuple(self._frame(wire) for wire in wires or ())
            stack = Stack(frames, truncated)
            known = self._stacks.setdefault(stack, stack)
            self._frames[raw, truncated] = known
        return known

    def _frame(self, wire: _Frame) -> Frame:
        name = wire.name or "?"
        if wire.module is not None and is_address(name):
            # An address differs in every process: kept, no two ranks would share a stack.
            name = "?" + wire.module.rsplit("/", 1)[-1]
        frame = Frame(name, wire.filename, wire.short_filename, wire.line or 0, wire.module)
        return self._interned.setdefault(frame, frame)


def decode_threads(data: bytes) -> tuple[Thread, ...]:
    """Decode one ``py-spy dump --json``. Raises FormatError."""
    return StackReader().threads(data)


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
        else [_thread_wire(process.pid, thread) for thread in process.threads],
    }
    return msgspec.json.encode({key: value for key, value in wire.items() if value is not None})


def _dump(process: Process) -> Dump | None:
    """The dump; the reason of missing threads survives also where no dump was tried."""
    if process.dump is None and isinstance(process.threads, Missing):
        return Dump(ok=False, error=process.threads.reason)
    return process.dump


def _thread_wire(pid: int, thread: Thread) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "pid": pid,
        "thread_id": thread.tid,
        "thread_name": thread.name,
        "os_thread_id": thread.tid,
        "active": thread.active,
        "owns_gil": thread.owns_gil,
        "frames": [
            {
                "name": frame.name,
                "filename": frame.filename,
                "module": frame.module,
                "short_filename": frame.short_filename,
                "line": frame.line,
            }
            for frame in thread.stack.frames
        ],
    }
    if thread.stack.truncated:
        wire["truncated"] = True
    return wire


def decode_index(data: bytes) -> tuple[Incident, tuple[SampleTime, ...]]:
    """Decode ``incident.json``: the incident without samples, and when those were taken.

    Raises FormatError.
    """
    decoder = msgspec.json.Decoder(_Index, strict=False)
    wire, ignored = decode_leniently(data, _reader(decoder, "an incident index"))
    problems = list(ignored)
    if wire.format.partition("/")[0] != FORMAT.partition("/")[0]:
        raise FormatError(f"format is {wire.format!r}, expected {FORMAT!r}")
    if wire.format != FORMAT:
        raise FormatError(
            f"format is {wire.format!r}, this release reads {FORMAT!r}",
            hint="use the release of whyhang that wrote the incident, or a newer one",
        )
    incident = Incident(
        print_id=wire.print_id,
        job_id=wire.job_id,
        job_name=wire.job_name,
        framework=wire.framework,
        taken_at=wire.taken_at,
        finished_at=wire.finished_at,
        trigger=_choice(wire.trigger, ("stall", "manual", "exit", "import"), "manual"),
        world_size=_rank(wire.world_size) or None,
        nodes=tuple(_node(number, node, problems) for number, node in enumerate(wire.nodes or ())),
        progress=_progress(wire.progress or _Progress()),
        checkpoint=None if wire.checkpoint is None else _checkpoint(wire.checkpoint),
        sources=_sources(wire.sources or {}, problems),
        whyhang=wire.whyhang,
    )
    return incident, _sample_times(wire.samples or [])


def _node(number: int, wire: _Node, problems: list[str]) -> Node:
    name = wire.name or f"node{number}"
    return Node(
        name=name,
        ranks=_rank_set(wire.ranks, f"ranks of {name}", problems),
        unread=_rank_set(wire.unread, f"unread ranks of {name}", problems),
        status=_choice(wire.status, ("ok", "partial", "missing", "not_collected"), "ok"),
        reason=wire.reason,
    )


def _rank_set(text: str | None, what: str, problems: list[str]) -> RankSet:
    try:
        return RankSet.parse(text or "")
    except ValueError as error:
        problems.append(f"{what}: {error}")
        return NOBODY


def _sources(wires: Mapping[str, _Source | None], problems: list[str]) -> Mapping[str, Source]:
    found = {
        name: Source(ok=bool(wire.ok), reason=wire.reason)
        for name, wire in wires.items()
        if wire is not None
    }
    if problems:
        found["index"] = Source(ok=False, reason="; ".join(problems[:5]))
    return found


def _sample_times(wires: list[_Sample]) -> tuple[SampleTime, ...]:
    """The samples in the order of their indexes, each once: read twice, it would prove stillness.

    One without an index has that of its place.
    """
    found: dict[int, SampleTime] = {}
    for place, wire in enumerate(wires):
        index = place if wire.index is None else wire.index
        moment = SampleTime(index, wire.at or "", wire.monotonic_seconds or 0.0)
        found.setdefault(index, moment)
    return tuple(found[index] for index in sorted(found))


def encode_index(incident: Incident) -> bytes:
    """``incident.json`` of an incident, indented for people."""
    progress = incident.progress
    wire = {
        "format": FORMAT,
        "print_id": incident.print_id,
        "job_id": incident.job_id,
        "job_name": incident.job_name,
        "framework": incident.framework,
        "taken_at": incident.taken_at,
        "finished_at": incident.finished_at,
        "trigger": incident.trigger,
        "world_size": incident.world_size,
        "nodes": [
            {
                "name": node.name,
                "ranks": str(node.ranks),
                "unread": str(node.unread),
                "status": node.status,
                "reason": node.reason,
            }
            for node in incident.nodes
        ],
        "samples": [
            {"index": s.index, "at": s.at, "monotonic_seconds": s.monotonic_seconds}
            for s in incident.samples
        ],
        "checkpoint": None if incident.checkpoint is None else asdict(incident.checkpoint),
        "progress": {
            "preset": progress.preset,
            "step": progress.step,
            "total": progress.total,
            "epoch": progress.epoch,
            "stalled_seconds": progress.stalled_seconds,
            "threshold_seconds": progress.threshold_seconds,
            "median_interval_seconds": progress.median_interval_seconds,
            "phase": progress.phase,
            "state": progress.state,
            "last_line": progress.last_line,
            "per_rank_step": {str(k): v for k, v in sorted(progress.per_rank_step.items())} or None,
        },
        "sources": {
            name: {"ok": source.ok, "reason": source.reason}
            for name, source in incident.sources.items()
        },
        "whyhang": incident.whyhang,
    }
    return msgspec.json.format(msgspec.json.encode(wire), indent=1) + b"\n"


def decode_progress_event(line: bytes) -> ProgressEvent:
    """One line of ``progress.jsonl``. Raises FormatError."""
    return _reader(_PROGRESS_EVENTS, "a progress event")(line)


def encode_progress_event(event: ProgressEvent) -> bytes:
    """One line of ``progress.jsonl``, without the line break."""
    return msgspec.json.encode(event)


class _LogEvent(Struct):
    kind: str
    line: str | None = None
    source: str | None = None
    node: str | None = None
    rank: int | None = None
    ranks: str | None = None
    device: str | None = None
    exit_code: int | None = None
    at: str | None = None


_LOG_EVENTS = msgspec.json.Decoder(_LogEvent, strict=False)
_PROGRESS_EVENTS = msgspec.json.Decoder(ProgressEvent, strict=False)


def decode_log_event(line: bytes) -> LogEvent:
    """One line of ``events.jsonl``. Raises FormatError."""
    wire, _ = decode_leniently(line, _reader(_LOG_EVENTS, "a log event"))
    try:
        ranks = RankSet.parse(wire.ranks or ("" if wire.rank is None else str(wire.rank)))
    except ValueError as error:
        raise FormatError(f"not a log event: {error}") from error
    return LogEvent(
        kind=wire.kind,
        line=wire.line or "",
        source="kernel" if wire.source == "kernel" else "log",
        ranks=ranks,
        node=wire.node,
        device=wire.device,
        exit_code=wire.exit_code,
        at=wire.at,
    )


def encode_log_event(event: LogEvent) -> bytes:
    """One line of ``events.jsonl``, without the line break."""
    ranks = list(event.ranks)
    wire = {
        "at": event.at,
        "kind": event.kind,
        "source": event.source,
        "node": event.node,
        "rank": ranks[0] if len(ranks) == 1 else None,
        "ranks": str(event.ranks) if len(ranks) > 1 else None,
        "device": event.device,
        "exit_code": event.exit_code,
        "line": event.line,
    }
    return msgspec.json.encode({key: value for key, value in wire.items() if value is not None})


def _progress(wire: _Progress) -> Progress:
    return Progress(
        state=_choice(wire.state, ("stalled", "advancing", "slow", "unknown"), "unknown"),
        preset=wire.preset,
        step=wire.step,
        total=wire.total,
        epoch=wire.epoch,
        stalled_seconds=wire.stalled_seconds,
        threshold_seconds=wire.threshold_seconds,
        median_interval_seconds=wire.median_interval_seconds,
        phase=_choice(wire.phase, PHASES, None),
        last_line=wire.last_line,
        per_rank_step=_rank_keys(wire.per_rank_step or {}),
    )


def _checkpoint(wire: _Checkpoint) -> Checkpoint:
    return Checkpoint(
        name=wire.name,
        step=wire.step,
        age_seconds=wire.age_seconds,
        max_age_seconds=wire.max_age_seconds,
    )


def _rank_keys(steps: Mapping[str, int | None]) -> Mapping[int, int]:
    return {
        int(rank): step
        for rank, step in steps.items()
        if step is not None and _RANK.fullmatch(rank)
    }


def _rank(number: int | None) -> int | None:
    """A rank, or a number of ranks; None where it is none."""
    return number if number is not None and 0 <= number <= MAX_RANK else None


def _reader(decoder: msgspec.json.Decoder[T], what: str) -> Callable[[bytes], T]:
    """A function that decodes, or says in a FormatError what is wrong."""

    def read(data: bytes) -> T:
        try:
            return decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise FormatError(f"not {what}: {error}") from error

    return read


def _kind(text: str | None) -> ProcessKind:
    kind: ProcessKind = _choice(text, PROCESS_KINDS, "other")
    return kind


def _choice(value: str | None, choices: tuple[Any, ...], default: Any) -> Any:
    """``value`` where it is one of ``choices``: files of newer releases may know more words."""
    return value if value in choices else default


def _unread(dump: Dump | None) -> Missing:
    if dump is None:
        return Missing("no dump was taken")
    if dump.error:
        return Missing(dump.error)
    return Missing("the dump shows no thread" if dump.ok else "the dump failed")
