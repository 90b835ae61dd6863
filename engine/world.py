"""The subjects that rules speak of: ranks, nodes, processes, children and threads of an incident.

Sets of subjects are bitmaps. A rank's bit is its number; the other kinds are numbered densely, a
child has the number of its process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from whyhang.engine.machines import Machines
from whyhang.engine.stalled_operations import name_absent
from whyhang.engine.topology import NOT_TOLD
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Thread
from whyhang.schemas.topology import Topology

ScopeName: TypeAlias = Literal["job", "rank", "node", "process", "child", "thread"]
Track: TypeAlias = tuple[Process | None, ...]
NOBODY: Sequence[int] = ()


@dataclass(slots=True, kw_only=True)
class Subject:
    """One member of a kind, followed through the samples.

    ``track`` holds its process in each sample and ``threads`` (of threads only) the thread, None
    where it was not seen; ``node`` is None where the incident does not list it. Never changed.
    """

    rank: int | None = None
    node: Node | None = None
    track: Track = ()
    threads: tuple[Thread | None, ...] = ()


class Table:
    """All subjects of one kind, by bit."""

    def __init__(self, subjects: Mapping[int, Subject]) -> None:
        self.subjects = subjects
        self.members = RankSet(subjects).bits

    def __len__(self) -> int:
        return len(self.subjects)

    def of(self, bits: int) -> Iterator[tuple[int, Subject]]:
        """The subjects of a bitmap, upwards."""
        for number in RankSet.from_bits(bits & self.members):
            yield number, self.subjects[number]


class World:
    """An incident arranged by subject; what no rule asks for is never arranged.

    Ranks are those of the asked nodes, those that a trainer line carries and those that a log
    event names: a verdict may rest on the log where no stack could be had.
    """

    def __init__(self, incident: Incident, topology: Topology | Missing = NOT_TOLD) -> None:
        incident = name_absent(incident)
        self.incident = incident
        self.topology = topology
        self._nodes = {node.name: node for node in incident.nodes}
        self._asked = [node for node in incident.nodes if node.was_asked]
        self._kin: dict[tuple[ScopeName, ScopeName], Mapping[int, Sequence[int]]] = {}

    @cached_property
    def machines(self) -> Machines:
        """What the nodes told of themselves."""
        return Machines(self.incident)

    @cached_property
    def ranks(self) -> Table:
        """The ranks; each is followed through its trainer."""
        home: dict[int, Node] = {rank: node for node in self._asked for rank in node.ranks}
        trainers = _trainers(self.incident)
        for rank, track in trainers.items():
            if rank not in home:
                seen = next(process for process in track if process is not None)
                if seen.node in self._nodes:
                    home[rank] = self._nodes[seen.node]
        named = {rank for event in self.incident.events for rank in event.ranks}
        absent = (None,) * self.sample_count
        return Table(
            {
                rank: Subject(rank=rank, node=home.get(rank), track=trainers.get(rank, absent))
                for rank in sorted(home.keys() | trainers.keys() | named)
            }
        )

    @cached_property
    def nodes(self) -> Table:
        """The nodes that were asked."""
        return Table({bit: Subject(node=node) for bit, node in enumerate(self._asked)})

    @cached_property
    def processes(self) -> Table:
        """All processes."""
        return Table(
            {
                bit: Subject(rank=_rank_of(track), node=self._nodes.get(node), track=track)
                for bit, ((node, _), track) in enumerate(_tracks(self.incident).items())
            }
        )

    @cached_property
    def children(self) -> Table:
        """The processes of a rank other than its trainer."""
        return Table(
            {
                bit: subject
                for bit, subject in self.processes.subjects.items()
                if subject.rank is not None and _kind_of(subject.track) != "trainer"
            }
        )

    @cached_property
    def threads(self) -> Table:
        """The threads of the last sample's dumps."""
        return Table(dict(enumerate(_threads(self.processes.subjects.values()))))

    def pids_of(self, rank: int, sample: int) -> tuple[int, ...]:
        """The processes of a rank at a sample."""
        numbers = (*self.kin("rank", "process").get(rank, NOBODY),)
        tracks = (self.processes.subjects[number].track for number in numbers)
        return tuple(process.pid for track in tracks if (process := track[sample]) is not None)

    def table(self, scope: ScopeName) -> Table:
        """The subjects of a scope other than the job."""
        if scope == "rank":
            return self.ranks
        if scope == "node":
            return self.nodes
        if scope == "process":
            return self.processes
        return self.children if scope == "child" else self.threads

    def kin(self, scope: ScopeName, kind: ScopeName) -> Mapping[int, Sequence[int]]:
        """Who of ``kind`` belongs to each subject: the ranks of a node, the children of a rank.

        To a thread belongs its process.
        """
        if (scope, kind) not in self._kin:
            self._kin[scope, kind] = self._find_kin(scope, kind)
        return self._kin[scope, kind]

    def _find_kin(self, scope: ScopeName, kind: ScopeName) -> Mapping[int, Sequence[int]]:
        members = self.table(kind).subjects
        if scope == "node":
            places = {node.name: bit for bit, node in enumerate(self._asked)}
            return _grouped(
                (None if s.node is None else places.get(s.node.name), bit)
                for bit, s in members.items()
            )
        if scope == "rank" and kind != "thread":
            return _grouped((subject.rank, bit) for bit, subject in members.items())
        if scope == "thread":
            owners = {_key_of(owner.track): bit for bit, owner in members.items()}
            return {
                bit: (owners[_key_of(subject.track)],)
                for bit, subject in self.threads.subjects.items()
            }
        if kind == "thread":
            found = _grouped((_key_of(subject.track), bit) for bit, subject in members.items())
            return {
                bit: found.get(_key_of(subject.track), NOBODY)
                for bit, subject in self.table(scope).subjects.items()
            }
        children = self.kin("rank", "child")
        return {
            bit: [child for child in children.get(subject.rank, NOBODY) if child != bit]
            for bit, subject in self.table(scope).subjects.items()
            if subject.rank is not None
        }

    def stage_of(self, rank: int | None) -> int | Missing:
        """The pipeline stage of a rank."""
        if isinstance(self.topology, Missing):
            return self.topology
        if rank is None or rank >= self.topology.world_size:
            return Missing("the topology does not hold this rank")
        return self.topology.coordinate(rank, "pipeline")

    def inside(self, scope: ScopeName, bit: int, kind: ScopeName) -> int:
        """Who of ``kind`` belongs to one subject, as a bitmap; everybody belongs to the job."""
        if scope == "job":
            return self.table(kind).members
        return RankSet(self.kin(scope, kind).get(bit, NOBODY)).bits

    def ranks_of(self, kind: ScopeName, bits: int) -> RankSet:
        """The ranks that subjects of a kind belong to."""
        if kind == "rank":
            return RankSet.from_bits(bits)
        if kind == "node":
            ranks = self.kin("node", "rank")
            return RankSet(r for bit in RankSet.from_bits(bits) for r in ranks.get(bit, NOBODY))
        return RankSet(s.rank for _, s in self.table(kind).of(bits) if s.rank is not None)

    @property
    def sample_count(self) -> int:
        """How many samples were taken."""
        return len(self.incident.samples)

    def seconds_between(self, sample: int) -> float | None:
        """The interval that the rates of ``sample`` belong to; None with one sample.

        The first two samples share their interval: a rate is the same at both ends.
        """
        samples = self.incident.samples
        last = max(sample, 1)
        if last >= len(samples):
            return None
        seconds = samples[last].monotonic_seconds - samples[last - 1].monotonic_seconds
        return seconds if seconds > 0 else None


def _tracks(incident: Incident) -> dict[tuple[str, int], Track]:
    found: dict[tuple[str, int], list[Process | None]] = {}
    for number, sample in enumerate(incident.samples):
        for process in sample.processes:
            track = found.get(process.key)
            if track is None:
                track = found[process.key] = [None] * len(incident.samples)
            track[number] = process
    return {key: tuple(track) for key, track in found.items()}


def _trainers(incident: Incident) -> dict[int, Track]:
    """The trainer of each rank in every sample, by rank: a restarted one has a new pid."""
    found: dict[int, list[Process | None]] = {}
    for number, sample in enumerate(incident.samples):
        for process in sample.processes:
            if process.kind == "trainer" and process.rank is not None:
                track = found.get(process.rank)
                if track is None:
                    track = found[process.rank] = [None] * len(incident.samples)
                track[number] = track[number] or process
    return {rank: tuple(track) for rank, track in found.items()}


def _rank_of(track: Track) -> int | None:
    return next((process.rank for process in track if process is not None), None)


def _kind_of(track: Track) -> str:
    return next((process.kind for process in reversed(track) if process is not None), "other")


def _key_of(track: Track) -> tuple[str, int] | None:
    """The process of the last sample: threads are those that it shows."""
    process = track[-1] if track else None
    return None if process is None else process.key


def _threads(processes: Iterable[Subject]) -> Iterator[Subject]:
    """The threads of the last sample, each found again in earlier ones by its id, else its name."""
    for subject in processes:
        seen = [_by_identity(process) for process in subject.track]
        for identity in seen[-1] if seen else ():
            yield Subject(
                rank=subject.rank,
                node=subject.node,
                track=subject.track,
                threads=tuple(threads.get(identity) for threads in seen),
            )


def _by_identity(process: Process | None) -> dict[Hashable, Thread]:
    """The threads of a process; those without an id go by their name and number."""
    found: dict[Hashable, Thread] = {}
    if process is not None and isinstance(process.threads, tuple):
        for thread in process.threads:
            identity: Hashable = thread.tid
            if thread.tid is None or thread.tid in found:
                identity = (thread.name, len(found))
            found[identity] = thread
    return found


def _grouped(pairs: Iterable[tuple[Hashable, int]]) -> dict[Any, list[int]]:
    """The bits by what they belong to; those that belong to nothing are left out."""
    found: dict[Any, list[int]] = {}
    for owner, bit in pairs:
        if owner is not None:
            found.setdefault(owner, []).append(bit)
    return found
