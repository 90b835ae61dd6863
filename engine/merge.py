"""Merges the stacks of one sample into the distinct ones, with who stands in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet
from whyhang.schemas.stack import Stack
from whyhang.schemas.stacktree import MergedStack, StackTree
from whyhang.schemas.words import PROCESS_KINDS, ProcessKind

_Key = tuple[ProcessKind, str | None, tuple[Frame, ...]]
# A thread whose stack came empty still stands somewhere: labels read this as ``unknown``.
_NO_FRAME = Frame("")
_KIND_ORDER = {kind: number for number, kind in enumerate(PROCESS_KINDS)}


@dataclass(slots=True)
class _Pile:
    """The processes that show one stack, one entry a thread."""

    count: int = 0
    members: list[Process] = field(default_factory=list)


def build_tree(incident: Incident, sample: int | None = None) -> StackTree | None:
    """The merged stacks of one sample; None where it has no stack at all.

    ``sample`` is the index of the sample. By default it is the last one in which any process was
    read, because the last collection of a job that ended is often empty.
    """
    snapshot = _choose(incident.samples, sample)
    if snapshot is None:
        return None
    piles = _pile(snapshot.processes)
    read = _read(snapshot.processes)
    trainers = dict(read).get("trainer", NOBODY)
    stacks = (_merged(kind, thread, frames, pile) for (kind, thread, frames), pile in piles.items())
    return StackTree(
        sample=snapshot.index,
        taken_at=snapshot.at or incident.taken_at,
        world_size=incident.world_size,
        read=read,
        unread=_expected(incident) - trainers - _ended(incident, snapshot),
        stacks=tuple(sorted(stacks, key=_order)),
    )


def _choose(samples: tuple[Snapshot, ...], index: int | None) -> Snapshot | None:
    for snapshot in reversed(samples):
        if index is not None and snapshot.index != index:
            continue
        if any(_was_read(process) for process in snapshot.processes):
            return snapshot
    return None


def _was_read(process: Process) -> bool:
    return not isinstance(process.threads, Missing) and bool(process.threads)


def _threads(process: Process) -> Iterator[tuple[str | None, Stack]]:
    if not isinstance(process.threads, Missing):
        for thread in process.threads:
            yield thread.name, thread.stack


def _pile(processes: Iterable[Process]) -> dict[_Key, _Pile]:
    """Group the threads by kind, thread name and merged line.

    The codec interns stacks, so the first look-up is by object: frames are compared once for each
    distinct stack, not once for each of 16,000 ranks. The snapshot keeps every stack alive, hence
    no two of them share an id.
    """
    by_object: dict[tuple[ProcessKind, str | None, int], _Pile] = {}
    by_line: dict[_Key, _Pile] = {}
    for process in processes:
        for name, stack in _threads(process):
            pile = by_object.get((process.kind, name, id(stack)))
            if pile is None:
                line = (process.kind, name, _line(stack))
                pile = by_object[process.kind, name, id(stack)] = by_line.setdefault(line, _Pile())
            pile.count += 1
            pile.members.append(process)
    return by_line


def _line(stack: Stack) -> tuple[Frame, ...]:
    """The frames of the merged line, outermost first: all Python frames, then the native ones.

    Native frames *between* Python frames are left out: they are the interpreter calling itself,
    and would part the ranks that were dumped natively from those that were not.
    """
    return (*reversed(stack.python), *reversed(stack.native)) or (_NO_FRAME,)


def _merged(
    kind: ProcessKind, thread: str | None, frames: tuple[Frame, ...], pile: _Pile
) -> MergedStack:
    threads: dict[tuple[str, int | None], int] = {}
    for process in pile.members:
        source = _source(process), process.rank
        threads[source] = threads.get(source, 0) + 1
    ordered = sorted(threads.items(), key=lambda item: (item[0][1] is None, item[0][1], item[0][0]))
    return MergedStack(
        kind=kind,
        thread=thread,
        frames=frames,
        count=pile.count,
        ranks=RankSet(rank for _, rank in threads if rank is not None),
        sources=tuple((name, rank, count) for (name, rank), count in ordered),
    )


def _source(process: Process) -> str:
    """The process for people: ``gpu31-rank1``; by its pid where it has no rank."""
    if process.rank is None:
        return f"{process.node}-pid{process.pid}"
    return f"{process.node}-rank{process.rank}"


def _read(processes: Iterable[Process]) -> tuple[tuple[ProcessKind, RankSet], ...]:
    """The ranks of each kind that was read, in the order of the kinds."""
    ranks: dict[ProcessKind, list[int]] = {}
    for process in processes:
        if _was_read(process):
            members = ranks.setdefault(process.kind, [])
            if process.rank is not None:
                members.append(process.rank)
    return tuple((kind, RankSet(ranks[kind])) for kind in PROCESS_KINDS if kind in ranks)


def _expected(incident: Incident) -> RankSet:
    """The ranks that ought to have been read: those of the asked nodes and those of the world."""
    expected = NOBODY
    for node in incident.nodes:
        if node.was_asked:
            expected = expected | node.ranks | node.unread
    world = min(incident.world_size or 0, MAX_RANK)
    return expected | RankSet.from_bits((1 << world) - 1)


def _ended(incident: Incident, snapshot: Snapshot) -> RankSet:
    """The ranks that have ended: zombies, and those without a process on a node that was read."""
    alive: set[int] = set()
    ended: set[int] = set()
    for process in snapshot.processes:
        if process.kind == "trainer" and process.rank is not None:
            (ended if process.state in ("Z", "X") else alive).add(process.rank)
    gone = NOBODY
    for node in incident.nodes:
        if node.status == "ok":
            gone = gone | (node.ranks - node.unread)
    return (gone - RankSet(alive)) | RankSet(ended - alive)


def _order(stack: MergedStack) -> tuple[object, ...]:
    """Trainers first, the main thread first, then by name and frames: the same in every run."""
    return (
        _KIND_ORDER[stack.kind],
        stack.thread != "MainThread",
        stack.thread is None,
        stack.thread or "",
        tuple(
            (frame.name, frame.filename or "", frame.short_filename or "", frame.line)
            for frame in stack.frames
        ),
        tuple(frame.module or "" for frame in stack.frames),
    )
