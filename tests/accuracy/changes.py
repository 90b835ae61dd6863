"""Changes of an incident that carry no meaning, and the hiding of a dump.

``CHANGES`` must leave every conclusion as it is; :func:`permute_nodes` moves the suspects with
their nodes; :func:`hide_dump` takes evidence away, which must never accuse anybody more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import PurePosixPath

from whyhang.engine.positions import Positions, is_user_code
from whyhang.rules.load import load_ruleset
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread

Change = Callable[[Incident], Incident]
WITHOUT_RIGHTS = "py-spy: permission denied"
_PACKAGES = re.compile(r"^.*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"^.*/lib(?:64)?/python(\d[\d.]*)/")


def each_process(incident: Incident, change: Callable[[Process], Process]) -> Incident:
    """The incident with every process line changed."""
    samples = (
        replace(sample, processes=tuple(map(change, sample.processes)))
        for sample in incident.samples
    )
    return replace(incident, samples=tuple(samples))


def each_stack(change: Callable[[Stack], Stack]) -> Change:
    """A change of every stack; equal stacks stay one object, as readers intern them."""

    def apply(incident: Incident) -> Incident:
        known: dict[Stack, Stack] = {}

        def process(line: Process) -> Process:
            if isinstance(line.threads, Missing):
                return line
            threads = (
                replace(thread, stack=known.setdefault(thread.stack, change(thread.stack)))
                for thread in line.threads
            )
            return replace(line, threads=tuple(threads))

        return each_process(incident, process)

    return apply


def each_frame(change: Callable[[Frame], Frame]) -> Change:
    """A change of every frame."""
    return each_stack(
        lambda stack: Stack(tuple(map(change, stack.frames)), truncated=stack.truncated)
    )


def renamed_user_files(incident: Incident) -> Incident:
    """The user's code lies in other directories, in files of other names."""

    def change(frame: Frame) -> Frame:
        if not is_user_code(frame) or frame.filename is None or _is_known_module(frame):
            return frame
        path = PurePosixPath(frame.filename)
        name = f"my_{path.stem}_2{path.suffix}"
        moved = str(PurePosixPath("/mnt/x y/é", *path.parts[-2:-1], name))
        return replace(frame, filename=moved, short_filename=name)

    return each_frame(change)(incident)


def _is_known_module(frame: Frame) -> bool:
    """Whether the rules know any function of its file: that of a framework run from a checkout."""
    return bool(_built_in().claims(replace(frame, name="any_other_function")))


@cache
def _built_in() -> Positions:
    return Positions(load_ruleset().lists)


def moved_packages(incident: Incident) -> Incident:
    """Python and its packages are installed somewhere else."""

    def change(frame: Frame) -> Frame:
        path = frame.filename
        if path is None or frame.is_native:
            return frame
        moved = _PACKAGES.sub("/opt/conda/envs/t/lib/python3.12/site-packages/", path)
        if moved == path:
            moved = _LIBRARY.sub(r"/opt/py/lib/python\1/", path)
        return replace(frame, filename=moved)

    return each_frame(change)(incident)


def bare_names(incident: Incident) -> Incident:
    """Functions are named without their class, as Pythons before 3.11 report them."""
    return each_frame(
        lambda frame: frame if frame.is_native else replace(frame, name=frame.function)
    )(incident)


def qualified_names(incident: Incident) -> Incident:
    """Functions are named with a class, as py-spy 0.4.3 reports them of Python 3.11 and later."""

    def change(frame: Frame) -> Frame:
        if frame.is_native or "." in frame.name or frame.name.startswith("<"):
            return frame
        return replace(frame, name=f"Outer.{frame.name}")

    return each_frame(change)(incident)


def native_dumps(incident: Incident) -> Incident:
    """Stacks that were dumped plainly show the frames of an ordinary wait below Python's."""
    below = (
        Frame("__futex_abstimed_wait", "libc.so.6", "libc.so.6", 0, "libc.so.6"),
        Frame("pthread_cond_wait", "libc.so.6", "libc.so.6", 0, "libc.so.6"),
    )

    def change(stack: Stack) -> Stack:
        if stack.has_native or not stack.frames:
            return stack
        return Stack((*below, *stack.frames), truncated=stack.truncated)

    return each_stack(change)(incident)


def other_pids(incident: Incident) -> Incident:
    """All processes have other numbers, in another order, unless NCCL RAS names them."""
    if incident.ras:
        return incident

    def change(line: Process) -> Process:
        parent = None if line.ppid is None else 9_000_000 - line.ppid
        return replace(line, pid=9_000_000 - line.pid, ppid=parent)

    return each_process(incident, change)


def idle_threads(incident: Incident) -> Incident:
    """Every process has more threads, which do nothing."""
    wait = Frame("wait", "/usr/lib/python3.11/threading.py", "threading.py", 327)
    run = Frame("run", "/usr/lib/python3.11/threading.py", "threading.py", 982)
    idle = Thread(name="QueueFeederThread", stack=Stack((wait, run)))

    def change(line: Process) -> Process:
        # A process with a single thread of another name has that one for its main thread.
        if isinstance(line.threads, Missing) or not _has_main(line.threads):
            return line
        return replace(line, threads=(idle, *line.threads, replace(idle, name="Thread-7")))

    return each_process(incident, change)


def _has_main(threads: Iterable[Thread]) -> bool:
    return any(thread.name == "MainThread" for thread in threads)


def shuffled_lines(incident: Incident) -> Incident:
    """Lines and nodes come in another order."""
    samples = (replace(s, processes=tuple(reversed(s.processes))) for s in incident.samples)
    return replace(incident, samples=tuple(samples), nodes=tuple(reversed(incident.nodes)))


def renamed_nodes(incident: Incident) -> Incident:
    """The machines have other names, unless NCCL RAS names them."""
    if incident.ras:
        return incident
    names = {node.name: f"h{number}" for number, node in enumerate(reversed(incident.nodes))}
    return _move(incident, names, {})


def permute_nodes(incident: Incident) -> tuple[Incident, Mapping[int, int]]:
    """The incident with the ranks of two equally large machines exchanged, and who is now who.

    No rank has another number where no two machines are alike, or where a recorder or RAS reply
    holds numbers of its own.
    """
    if incident.ras or incident.flight:
        return incident, {}
    for first in incident.nodes:
        for other in reversed(incident.nodes):
            if first.ranks != other.ranks and len(first.ranks) == len(other.ranks) > 0:
                there = dict(zip(first.ranks, other.ranks, strict=True))
                back = dict(zip(other.ranks, first.ranks, strict=True))
                return _move(incident, {}, there | back), there | back
    return incident, {}


def _move(incident: Incident, names: Mapping[str, str], ranks: Mapping[int, int]) -> Incident:
    def node_of(node: Node) -> Node:
        return replace(
            node,
            name=names.get(node.name, node.name),
            ranks=RankSet(ranks.get(rank, rank) for rank in node.ranks),
            unread=RankSet(ranks.get(rank, rank) for rank in node.unread),
        )

    def rank_of(rank: int | None) -> int | None:
        return None if rank is None else ranks.get(rank, rank)

    moved = each_process(
        incident,
        lambda line: replace(line, node=names.get(line.node, line.node), rank=rank_of(line.rank)),
    )
    progress = replace(
        moved.progress,
        per_rank_step={
            ranks.get(rank, rank): step for rank, step in moved.progress.per_rank_step.items()
        },
    )
    events = (
        replace(
            event,
            ranks=RankSet(ranks.get(rank, rank) for rank in event.ranks),
            node=None if event.node is None else names.get(event.node, event.node),
        )
        for event in moved.events
    )
    return replace(
        moved,
        nodes=tuple(map(node_of, moved.nodes)),
        progress=progress,
        events=tuple(events),
    )


def hide_dump(incident: Incident, rank: int) -> Incident:
    """The incident without the stacks of one rank's processes, for want of rights.

    A rank whose trainer had ended has no stack to hide.
    """
    lines = () if incident.last is None else incident.last.processes
    if not any(line.rank == rank and line.kind == "trainer" for line in lines):
        return incident

    def hide(line: Process) -> Process:
        if line.rank != rank:
            return line
        failed = Dump(ok=False, error=WITHOUT_RIGHTS)
        return replace(line, threads=Missing(WITHOUT_RIGHTS), dump=failed)

    nodes = (
        replace(node, unread=node.unread | RankSet([rank]), status="partial")
        if rank in node.ranks and node.status in ("ok", "partial")
        else node
        for node in incident.nodes
    )
    return replace(each_process(incident, hide), nodes=tuple(nodes))


CHANGES: tuple[Change, ...] = (
    renamed_user_files,
    moved_packages,
    bare_names,
    qualified_names,
    native_dumps,
    other_pids,
    idle_threads,
    shuffled_lines,
    renamed_nodes,
)
