"""Case files: what a public report shows of a hang as one JSON file, built into an incident.

Keys of a case: ``id``, ``processes`` (each with ``rank``, ``process_type``, ``threads`` as py-spy
prints them, and what else the report tells), ``expected``, and optionally ``world_size``,
``ranks_per_node``, ``progress``, ``second_sample``, ``log_excerpt``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from whyhang.collectors.log_events import find_events
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, IoCounters, Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import PROCESS_KINDS, NodeStatus, Phase, ProcessKind, ProgressState

SECONDS_BETWEEN_SAMPLES = 75.0
GROWTH = 300_000_000
_NATIVE = re.compile(r"\.(so|c|h|cc|cpp|cu)(\.\d+)*$|^python3?[\d.]*$")
_ROOT = re.compile(r".*/(site|dist)-packages/")
_HELPERS = ("wandb", "resource_tracker", "forkserver", "semaphore_tracker")
_GONE = "gone"


def build_case(path: Path) -> Incident:
    """The incident of a case file."""
    case = json.loads(path.read_text(encoding="utf-8"))
    per_node = int(case.get("ranks_per_node") or 8)
    silent = {
        f"node{(entry['rank'] or 0) // per_node}"
        for entry in case["processes"]
        if any("no reply" in line for line in entry.get("dump_error", ()))
    }
    lines = tuple(str(line) for line in case.get("log_excerpt") or ())
    return Incident(
        print_id=None,
        trigger="import",
        world_size=case.get("world_size"),
        nodes=tuple(_nodes(case, per_node, silent)),
        samples=tuple(
            Snapshot(
                index=sample,
                at="",
                monotonic_seconds=sample * SECONDS_BETWEEN_SAMPLES,
                processes=tuple(
                    process
                    for process in _processes(case, per_node, sample)
                    if process.node not in silent
                ),
            )
            for sample in (0, 1)
        ),
        progress=_progress(case.get("progress") or {}),
        log_excerpt=lines,
        events=find_events(lines),
    )


def _progress(told: Mapping[str, Any]) -> Progress:
    state: ProgressState = told.get("state", "stalled")
    phase: Phase | None = told.get("phase")
    return Progress(
        state=state,
        stalled_seconds=told.get("stalled_seconds", 1800.0),
        threshold_seconds=told.get("threshold_seconds", 300.0),
        median_interval_seconds=told.get("median_interval_seconds"),
        phase=phase,
        step=told.get("step"),
        total=told.get("total"),
    )


def _nodes(case: Mapping[str, Any], per_node: int, silent: set[str]) -> Iterator[Node]:
    """The machines. What a report does not show was not collected: that is no evidence."""
    shown = {entry["rank"] for entry in case["processes"] if entry.get("rank") is not None}
    unranked = any(entry.get("rank") is None for entry in case["processes"])
    size = max([*shown, (case.get("world_size") or 0) - 1], default=-1) + 1
    if size <= 0:
        yield Node(name="node0")
    for number, first in enumerate(range(0, size, per_node)):
        ranks = RankSet(range(first, min(first + per_node, size)))
        absent = ranks - RankSet(shown)
        status: NodeStatus = "partial" if absent else "ok"
        if absent == ranks and not (unranked and not number):
            status = "not_collected"
        name = f"node{number}"
        if name in silent:
            status = "missing"
        yield Node(
            name=name,
            ranks=ranks,
            unread=absent if status == "partial" else NOBODY,
            status=status,
            reason="the report does not show it" if absent else None,
        )


def _processes(case: Mapping[str, Any], per_node: int, sample: int) -> Iterator[Process]:
    for place, entry in enumerate(case["processes"]):
        rank = entry.get("rank")
        kind = _kind(entry)
        change = case.get("second_sample") if sample and kind == "trainer" else None
        threads = tuple(_thread(thread, change) for thread in entry.get("threads", ()))
        state = entry.get("proc_state")
        error = "\n".join(entry.get("dump_error", ())) or None
        native = any(frame.is_native for thread in threads for frame in thread.stack.frames)
        command = entry.get("cmdline")
        yield Process(
            pid=4000 + 10 * place,
            node=f"node{(rank or 0) // per_node}",
            kind=kind,
            rank=rank,
            state="X" if state == _GONE else state,
            wchan=entry.get("wchan"),
            cmdline=tuple(command.split()) if isinstance(command, str) else None,
            cpu_seconds=_cpu(entry, sample),
            io=_io(entry, sample),
            exit=entry.get("exit_code"),
            dump=Dump(ok=bool(threads), mode="native" if native else "python", error=error),
            threads=threads or Missing(error or "the report shows no stack"),
        )


def _kind(entry: Mapping[str, Any]) -> ProcessKind:
    named = entry.get("process_type")
    for kind in get_args(ProcessKind):
        if named == kind:
            return PROCESS_KINDS[PROCESS_KINDS.index(kind)]
    return "helper" if any(w in str(entry.get("cmdline")) for w in _HELPERS) else "other"


def _cpu(entry: Mapping[str, Any], sample: int) -> float | None:
    growing = entry.get("cpu_time_growing")
    percent = entry.get("cpu_percent", None if growing is None else 90.0 * growing)
    return None if percent is None else sample * SECONDS_BETWEEN_SAMPLES * percent / 100


def _io(entry: Mapping[str, Any], sample: int) -> IoCounters | None:
    read, written = entry.get("io_read_growing"), entry.get("io_write_growing")
    if read is None and written is None:
        return None
    first = None if read is None else GROWTH * sample * bool(read)
    second = None if written is None else GROWTH * sample * bool(written)
    return IoCounters(rchar=first, read_bytes=first, wchar=second, write_bytes=second)


def _thread(thread: Mapping[str, Any], change: Mapping[str, Any] | None) -> Thread:
    name = thread.get("thread_name") or None
    moved = int(change["frames"]) if change and change["thread"] == name else 0
    return Thread(
        name=name,
        stack=Stack(tuple(_frame(f, depth < moved) for depth, f in enumerate(thread["frames"]))),
    )


def _frame(frame: Mapping[str, Any], moved: bool) -> Frame:
    path, line = frame.get("filename"), int(frame.get("line") or 0)
    if path is not None and _NATIVE.search(path):
        return Frame(frame["name"], path, path.rpartition("/")[2], line, path)
    short = None if path is None else _ROOT.sub("", path)
    return Frame(frame["name"], path, short, line + moved)
