"""Who is missing: follows what each rank waits for until nobody is left to wait for.

A rank waits for its oldest unfinished operation; that operation waits for the ranks that have not
come to it, or, if all have come, for those that are held up before it. Where the chains end are
the suspects, however many ranks on the way there look stuck: a pipeline makes victims of victims.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from whyhang.engine.flight_record import (
    FlightRecord,
    GroupKey,
    differing_sizes,
    is_symmetric,
    operation,
)
from whyhang.engine.flight_stale import stale_ranks
from whyhang.schemas.flight_recorder import FlightDump, FlightEntry
from whyhang.schemas.rankset import RankSet

# `missing`: never came to the operation and waits for nothing itself. `lagging`: peers are over
# operations that this rank has not finished. `odd`: brought another operation or other sizes.
# `crossed`: of ranks that wait for each other, the few that are elsewhere. `not_started`: enqueued,
# but not started where others have. `no_dump`: all others came, and it left no dump.
Reason = Literal["missing", "lagging", "odd", "crossed", "not_started", "no_dump"]

# More ranks without a dump than this share: the dumps were not all gathered, which proves nothing.
MAX_UNREAD_SHARE = 0.25


class Operation(NamedTuple):
    """A collective (``transfer`` None) or all transfers from one rank of a group to another."""

    group: GroupKey
    seq: int
    transfer: tuple[int, int] | None = None


Node: TypeAlias = "int | Operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightSuspect:
    """A rank at which others' waiting ends; ``operation`` is what they wait in for it."""

    rank: int
    reason: Reason
    waiting: RankSet
    operation: Operation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A rank's oldest unfinished operation."""

    rank: int
    operation: Operation
    entry: FlightEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightAnalysis:
    """What the dumps show. ``unread`` are ranks of the job without a dump that tells of the hang;
    those of them in ``stale`` have an older one.

    ``lagging`` are ranks that have not finished what their peers have, suspects or not;
    ``sizes`` holds unfinished collectives to which ranks brought different sizes or operations.
    """

    record: FlightRecord
    waiting: tuple[Waiting, ...]
    suspects: tuple[FlightSuspect, ...]
    lagging: RankSet
    unread: RankSet
    stale: RankSet
    sizes: Mapping[Operation, Mapping[int, str]]
    stuck: tuple[Operation, ...]

    @property
    def ranks(self) -> RankSet:
        """The suspects."""
        return RankSet(suspect.rank for suspect in self.suspects)


def analyse(dumps: Sequence[FlightDump], *, world_size: int | None = None) -> FlightAnalysis:
    """Find out for whom the ranks wait, supposing that the job hangs."""
    record = FlightRecord(dumps, world_size)
    stale = stale_ranks(record)
    if stale:
        fresh = [dump for dump in dumps if dump.rank not in stale]
        record = FlightRecord(fresh, len(record.world))
    return _Analysis(record, stale).run()


class _Analysis:
    """One run; holds what is asked of the record again and again."""

    def __init__(self, record: FlightRecord, stale: frozenset[int]) -> None:
        self.record = record
        self.stale = stale
        self.pending = {rank: record.pending(rank) for rank in record.dumps}
        self.fronts = {rank: self._front(rank) for rank in self.pending}
        self._finished_elsewhere: dict[tuple[GroupKey, int], bool] = {}
        self.lagging = frozenset(rank for rank in self.pending if self._lags(rank))
        self.unread = frozenset(rank for rank in record.world if not self._is_read(rank))
        self.odd: dict[Operation, Mapping[int, str]] = {}
        self.edges: dict[Node, tuple[Node, ...]] = {}

    def run(self) -> FlightAnalysis:
        for rank in self.record.world:
            self._look_at(rank)
        ends = self._ends()
        suspects = self._name(ends)
        return FlightAnalysis(
            record=self.record,
            waiting=tuple(
                Waiting(rank=rank, operation=op, entry=entry)
                for rank, fronts in sorted(self.fronts.items())
                for op, entry in list(fronts.items())[:1]
            ),
            suspects=tuple(sorted(suspects, key=lambda suspect: suspect.rank)),
            lagging=RankSet(self.lagging),
            unread=RankSet(rank for rank in self.record.world if rank not in self.record.dumps),
            stale=RankSet(self.stale),
            sizes=self.odd,
            stuck=tuple(op for end in ends for op in end.nodes if isinstance(op, Operation)),
        )

    def _is_read(self, rank: int) -> bool:
        """Whether a dump tells what the rank waits for."""
        if rank not in self.record.dumps:
            return False
        if self.fronts[rank]:
            return True
        if self.pending[rank]:
            return False
        dump = self.record.dumps[rank]
        return bool(dump.entries or dump.status) and not self.record.is_unfinished(rank)

    def _front(self, rank: int) -> dict[Operation, FlightEntry]:
        """The oldest unfinished operation of a rank: several where transfers go in one batch."""
        fronts: dict[Operation, FlightEntry] = {}
        batch: tuple[str, int, int] | None = None
        for entry in self.pending[rank]:
            op = self._operation(rank, entry)
            if op is None:
                if not fronts and self.record.is_memberless(rank, entry):
                    return {}  # what the rank waits in was overwritten
                continue  # the end of a batch: its members stand before it
            here = (entry.group, entry.seq, entry.p2p_seq) if entry.is_p2p else None
            if fronts and (batch is None or here != batch):
                break
            fronts.setdefault(op, entry)
            batch = here
            if batch is None:
                break
        return fronts

    def _operation(self, rank: int, entry: FlightEntry) -> Operation | None:
        key = self.record.key(rank, entry.group)
        if not entry.is_p2p:
            return Operation(key, entry.seq)
        transfer = entry.transfer
        if transfer is None or max(transfer) >= len(key.ranks):
            return None
        source, target = key.ranks[transfer[0]], key.ranks[transfer[1]]
        return Operation(key, 0, (source, target)) if rank in (source, target) else None

    def _lags(self, rank: int) -> bool:
        """Whether all others are over a collective that needs everybody, but this rank is not."""
        for entry in self.pending[rank]:
            if entry.is_p2p:
                continue
            key = self.record.key(rank, entry.group)
            if not is_symmetric(self.record.records(key, entry.seq)[rank]):
                continue
            if (key, entry.seq) not in self._finished_elsewhere:
                found = set(self.record.standings(key, entry.seq).values())
                self._finished_elsewhere[key, entry.seq] = "done" in found and "absent" not in found
            if self._finished_elsewhere[key, entry.seq]:
                return True
        return False

    def _look_at(self, rank: int) -> None:
        """Note what a rank waits for; it ends at ranks that wait for nothing, lag or are unread."""
        if rank in self.lagging or rank not in self.record.dumps:
            self.edges[rank] = ()
            return
        fronts = self.fronts[rank]
        self.edges[rank] = tuple(fronts)
        for op in fronts:
            if op not in self.edges:
                self.edges[op] = self._held_up_by(op)

    def _held_up_by(self, op: Operation) -> tuple[int, ...]:
        """The ranks for which an operation waits; nobody where all came and it does not end."""
        if op.transfer is not None:
            return tuple(rank for rank in op.transfer if op not in self.fronts.get(rank, {}))
        standing = self.record.standings(op.group, op.seq)
        absent = tuple(rank for rank, where in standing.items() if where == "absent")
        if absent:
            return absent
        self._compare(op)
        if op in self.odd:
            return ()
        elsewhere = tuple(
            rank
            for rank, where in standing.items()
            if rank in self.lagging or (where == "pending" and op not in self.fronts.get(rank, {}))
        )
        return elsewhere or tuple(rank for rank, where in standing.items() if where == "unknown")

    def _compare(self, op: Operation) -> None:
        """Note differing operations or sizes of a collective that all came to."""
        records = self.record.records(op.group, op.seq)
        kinds = {rank: operation(entries) for rank, entries in records.items()}
        if len(set(kinds.values())) > 1:
            self.odd[op] = {rank: ", ".join(names) for rank, names in kinds.items()}
            return
        sizes = differing_sizes(records)
        if sizes:
            self.odd[op] = sizes

    def _ends(self) -> list[_End]:
        """Where chains end, with the ranks whose chains lead there."""
        backwards: dict[Node, list[Node]] = {}
        for node, targets in self.edges.items():
            for target in targets:
                backwards.setdefault(target, []).append(node)
        ends = []
        for nodes in _components(self.edges):
            inside = set(nodes)
            if any(target not in inside for node in nodes for target in self.edges.get(node, ())):
                continue
            ends.append(_End(nodes=nodes, waiting=_reach(nodes, backwards)))
        return ends

    def _name(self, ends: list[_End]) -> list[FlightSuspect]:
        """The suspects of all ends; a rank for which nobody waits is none."""
        strong: list[FlightSuspect] = []
        weak: list[FlightSuspect] = []
        for end in ends:
            for rank, reason in self._at_fault(end):
                waiting = RankSet(end.waiting - {rank})
                if not waiting:
                    continue
                suspect = FlightSuspect(
                    rank=rank, reason=reason, waiting=waiting, operation=self._waited_in(rank, end)
                )
                (weak if reason == "no_dump" else strong).append(suspect)
        return strong or (weak if self._blames_unread(ends) else [])

    def _blames_unread(self, ends: list[_End]) -> bool:
        """Whether nothing but ranks without a dump can hold the job up.

        A dump may as well not have been gathered: all others must wait for such ranks, and for
        nobody else.
        """
        unread = len(self.unread)
        size = len(self.record.world)
        if unread > max(1, MAX_UNREAD_SHARE * size) or 2 * unread >= size or len(self.stale) > 1:
            return False
        return all(end.nodes[0] in self.unread for end in ends)

    def _at_fault(self, end: _End) -> Iterable[tuple[int, Reason]]:
        if len(end.nodes) > 1:
            return [(rank, "crossed") for rank in self._odd_ones_out(end)]
        node = end.nodes[0]
        if isinstance(node, int):
            if node in self.lagging:
                return [(node, "lagging")]
            return [(node, "no_dump" if node in self.unread else "missing")]
        if node in self.odd:
            return [(rank, "odd") for rank in minority(self.odd[node])]
        return [(rank, "not_started") for rank in self._not_started(node)]

    def _not_started(self, op: Operation) -> tuple[int, ...]:
        """Ranks whose GPU has not reached an operation in which the kernels of others wait."""
        fronts = {
            rank: {fronts[op].state, *self._states(op, rank)}
            for rank, fronts in self.fronts.items()
            if op in fronts
        }
        late = tuple(rank for rank, states in fronts.items() if "started" not in states)
        return late if 0 < 2 * len(late) <= len(fronts) else ()

    def _states(self, op: Operation, rank: int) -> set[str]:
        """The states of all of a rank's records of a collective."""
        return {entry.state for entry in self.record.records(op.group, op.seq).get(rank, ())}

    def _odd_ones_out(self, end: _End) -> tuple[int, ...]:
        """Of ranks that wait for each other, the few that are elsewhere while most of a collective
        wait for them, and that wait for these in turn.

        Two that wait for each other are equal: one has left out what the other has added.
        """
        found = set()
        for op in end.nodes:
            if isinstance(op, int):
                continue
            here = frozenset(r for r in end.nodes if isinstance(r, int) and op in self.fronts[r])
            few = tuple(rank for rank in self.edges[op] if isinstance(rank, int))
            if len(few) < len(here) and all(self._waits_for(rank, here) for rank in few):
                found.add(few)
        return found.pop() if len(found) == 1 else ()

    def _waits_for(self, rank: int, others: frozenset[int]) -> bool:
        """Whether the operation that a rank waits in waits for one of the others."""
        return any(not others.isdisjoint(self.edges[op]) for op in self.fronts[rank])

    def _waited_in(self, rank: int, end: _End) -> Operation | None:
        """The oldest operation in which others wait for a rank."""
        if isinstance(end.nodes[0], Operation) and len(end.nodes) == 1:
            return end.nodes[0]
        found = [
            op
            for op, targets in self.edges.items()
            if isinstance(op, Operation) and rank in targets
        ]
        return min(found, key=self._created, default=None)

    def _created(self, op: Operation) -> int:
        """When the first rank came to an operation."""
        times = [
            entry.created_ns
            for fronts in self.fronts.values()
            for front, entry in fronts.items()
            if front == op and entry.created_ns is not None
        ]
        return min(times, default=1 << 62)


class _End(NamedTuple):
    """Nodes from which no chain leads away, and the ranks whose chains lead to them."""

    nodes: tuple[Node, ...]
    waiting: frozenset[int]


def minority(sides: Mapping[int, str]) -> tuple[int, ...]:
    """The ranks that are not on the largest side; nobody where that is not more than half."""
    members: dict[str, list[int]] = {}
    for rank, side in sides.items():
        members.setdefault(side, []).append(rank)
    largest = max(members.values(), key=len, default=[])
    if len(members) < 2 or 2 * len(largest) <= len(sides):
        return ()
    return tuple(sorted(rank for rank in sides if rank not in set(largest)))


def _reach(nodes: Iterable[Node], backwards: Mapping[Node, Sequence[Node]]) -> frozenset[int]:
    """The ranks from which chains lead to any of the nodes, these included."""
    seen: set[Node] = set(nodes)
    queue = deque(seen)
    while queue:
        for node in backwards.get(queue.popleft(), ()):
            if node not in seen:
                seen.add(node)
                queue.append(node)
    return frozenset(node for node in seen if isinstance(node, int))


def _components(edges: Mapping[Node, Sequence[Node]]) -> list[tuple[Node, ...]]:
    """Strongly connected components (Tarjan's algorithm, without recursion)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[tuple[Node, ...]] = []
    for root in edges:
        if root in index:
            continue
        work: list[tuple[Node, int]] = [(root, 0)]
        while work:
            node, place = work.pop()
            if place == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            targets = edges.get(node, ())
            if place:
                low[node] = min(low[node], low[targets[place - 1]])
            descended = False
            while place < len(targets):
                target = targets[place]
                place += 1
                if target not in index:
                    work += [(node, place), (target, 0)]
                    descended = True
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            if descended:
                continue
            if low[node] == index[node]:
                component: list[Node] = []
                while not component or component[-1] != node:
                    component.append(stack.pop())
                    on_stack.discard(component[-1])
                found.append(tuple(component))
    return found
