"""Small jobs that run into a planted fault, and the flight recorder dumps that they leave.

A rank's host issues its program ahead of its GPU. Each group has a stream of its own; an operation
also waits for the computation before it. A collective ends when all its ranks have come to it with
the same operation and size. What is left when nothing moves any more is dumped.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from whyhang.collectors.flight_recorder import parse_dump
from whyhang.schemas.flight_recorder import FlightDump

Key = tuple[str, tuple[int, ...], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Op:
    """A collective of a group, or a transfer between two of its ranks; by their numbers in the job.

    What is ``aside`` runs beside the computation, which does not wait for it.
    """

    name: str
    group: str
    ranks: tuple[int, ...]
    transfer: tuple[int, int] | None = None
    size: int = 64
    aside: bool = False

    @property
    def key(self) -> Key:
        """What counts the operation: its group, or the pair that transfers."""
        return self.group, self.ranks, self.transfer


Programs = dict[int, list[Op]]


@dataclass(frozen=True, slots=True)
class Shape:
    """Tensor, data and pipeline parallel sizes; ``experts`` adds all-to-alls in the data group.

    ``plain`` names groups by what they are, the same on disjoint ranks, else by number.
    """

    tensor: int
    data: int
    stages: int
    experts: bool = False
    plain: bool = False

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.tensor * self.data * self.stages

    def programs(self, steps: int) -> Programs:
        """What every rank does in a few steps of training."""
        return {rank: self._program(rank, steps) for rank in range(self.world)}

    def _program(self, rank: int, steps: int) -> list[Op]:
        width = self.tensor * self.data
        stage, place = divmod(rank, width)
        tensor = tuple(r for r in range(self.world) if r // self.tensor == rank // self.tensor)
        same = rank % self.tensor
        data = tuple(
            r for r in range(stage * width, (stage + 1) * width) if r % self.tensor == same
        )
        column = tuple(range(place, self.world, width))
        names = (
            ("tp", "dp", "pp")
            if self.plain
            else (f"{100 + tensor[0]}", f"{300 + data[0]}", f"{500 + place}")
        )
        layer = [
            Op(kind, names[0], tensor) for kind in ("_all_gather_base", "_reduce_scatter_base")
        ]
        if self.experts:
            layer.insert(1, Op("all_to_all", names[1], data))
        layer = [op for op in layer if len(op.ranks) > 1]
        forth, back = [*layer], [*reversed(layer)]
        if stage:
            pair = (rank - width, rank)
            forth.insert(0, Op("", names[2], column, pair))
            back.append(Op("", names[2], column, pair[::-1]))
        if stage + 1 < self.stages:
            pair = (rank, rank + width)
            forth.append(Op("", names[2], column, pair))
            back.insert(0, Op("", names[2], column, pair[::-1]))
        end = [Op("_reduce_scatter_base", names[1], data, aside=True)] if self.data > 1 else []
        everybody = tuple(range(self.world))
        return [*forth, *forth, *back, *back, *end, Op("all_reduce", "0", everybody)] * steps


@dataclass
class Job:
    """One run. ``stop``: from where on a rank's host issues nothing. ``sleep``: from where on its
    GPU does nothing. ``blind``: from where on the host sees no end of what its GPU still does for
    the next ``blind_for`` operations.
    """

    programs: Programs
    ahead: int = 4
    stop: Mapping[int, int] = field(default_factory=dict)
    sleep: Mapping[int, int] = field(default_factory=dict)
    blind: Mapping[int, int] = field(default_factory=dict)
    blind_for: int = 2
    issued: dict[int, int] = field(default_factory=dict)
    over: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.numbers = {rank: _numbers(program) for rank, program in self.programs.items()}
        self._at = {
            rank: {
                (op.key, n): place
                for place, (op, n) in enumerate(zip(program, numbers, strict=True))
            }
            for (rank, program), numbers in zip(
                self.programs.items(), self.numbers.values(), strict=True
            )
        }

    def run(self) -> Job:
        """Run until nothing moves."""
        self.issued = dict.fromkeys(self.programs, 0)
        self.over = {rank: set() for rank in self.programs}
        self._first = dict.fromkeys(self.programs, 0)
        moved = True
        while moved:
            # Every rank has its turn: a sum, since `any` would stop at the first that moves.
            moved = sum(self._issue(rank) + self._compute(rank) for rank in self.programs) > 0
        return self

    def seen(self, rank: int, place: int) -> bool:
        """Whether the host knows that an operation is over."""
        return place in self.over[rank] and place < self.blind.get(rank, 1 << 30)

    def runs(self, rank: int, place: int) -> bool:
        """Whether the operation's kernel runs: it was issued, and nothing before it is left."""
        end = min(self.sleep.get(rank, 1 << 30), self.blind.get(rank, 1 << 30) + self.blind_for)
        if place >= min(self.issued[rank], end):
            return False
        program, group = self.programs[rank], self.programs[rank][place].group
        return all(
            before in self.over[rank] or (program[before].aside and program[before].group != group)
            for before in range(self._first[rank], place)
        )

    def _issue(self, rank: int) -> bool:
        program, before = self.programs[rank], self.issued[rank]
        unseen = sum(not self.seen(rank, p) for p in range(self._first[rank], before))
        if rank in self.blind:
            unseen += max(0, self._first[rank] - self.blind[rank])
        end = min(len(program), self.stop.get(rank, len(program)), before + self.ahead - unseen)
        self.issued[rank] = max(before, end)
        return end > before

    def _compute(self, rank: int) -> bool:
        moved = False
        for place in range(self._first[rank], self.issued[rank]):
            if place in self.over[rank] or not self.runs(rank, place):
                continue
            partners = self._partners(rank, place)
            if partners is not None and all(self.runs(r, p) for r, p in partners.items()):
                for partner, there in partners.items():
                    self._end(partner, there)
                moved = True
        return moved

    def _end(self, rank: int, place: int) -> None:
        self.over[rank].add(place)
        while self._first[rank] in self.over[rank]:
            self._first[rank] += 1

    def _partners(self, rank: int, place: int) -> dict[int, int] | None:
        """Where the operation stands with all who take part in it; None if that never meets."""
        op = self.programs[rank][place]
        found = {}
        for partner in op.transfer or op.ranks:
            there = self._at[partner].get((op.key, self.numbers[rank][place]))
            if there is None or not _fit(op, self.programs[partner][there]):
                return None
            found[partner] = there
        return found


def _numbers(program: Sequence[Op]) -> list[int]:
    """Which of its kind each operation is, from 1."""
    counts: dict[Key, int] = {}
    found = []
    for op in program:
        counts[op.key] = counts.get(op.key, 0) + 1
        found.append(counts[op.key])
    return found


def _fit(one: Op, other: Op) -> bool:
    return (one.name, one.size) == (other.name, other.size)


@dataclass(frozen=True, slots=True)
class Recorder:
    """How dumps are written: what PyTorch releases, settings and the end of a job make different.

    ``ring`` is how many records a rank keeps, ``lost`` are ranks without a dump. ``aborted``: the
    watchdog has retired everything. ``timed``: starts of kernels are recorded. ``split``: one
    operation in so many stands in two records of one number, as coalesced ones do. ``id_step``:
    groups of other backends lie between the numbers of the groups. ``batches``: every transfer goes
    in a batch of its own, whose member is never marked and whose end is.
    """

    active_only: bool = False
    ring: int = 1 << 20
    lost: frozenset[int] = frozenset()
    aborted: bool = False
    timed: bool = False
    split: int = 0
    as_json: bool = False
    id_step: int = 1
    batches: bool = False

    def dumps(self, job: Job) -> list[FlightDump]:
        """Every rank's dump, written out and read back."""
        found = []
        for rank in job.programs:
            if rank not in self.lost:
                document = self._document(job, rank)
                data = json.dumps(document).encode() if self.as_json else pickle.dumps(document, 2)
                dump = parse_dump(data, rank)
                assert isinstance(dump, FlightDump)
                found.append(dump)
        return found

    def _document(self, job: Job, rank: int) -> dict[str, Any]:
        program = job.programs[rank]
        groups = {op.group: op.ranks for op in program}
        names = sorted(groups)
        counts: dict[tuple[str, bool], int] = {}
        status = {name: {"enqueued": 0, "started": -1, "completed": 0} for name in names}
        entries = []
        for place, op in enumerate(program[: job.issued[rank]]):
            kind = op.group, op.transfer is not None
            counts[kind] = counts.get(kind, 0) + 1
            over = job.seen(rank, place)
            status[op.group]["enqueued"] = counts[kind]
            if over:
                status[op.group]["completed"] = counts[kind]
            entry = self._entry(
                job, rank, place, counts[kind], self.id_step * names.index(op.group)
            )
            if self.batches and op.transfer is not None:
                entries += self._batch(entry, counts[kind], over)
            elif not (self.active_only and over):
                entries.append(entry)
                if self.split and place % self.split == 1 and op.transfer is None:
                    entries.append({**entry, "profiling_name": "nccl:coalesced"})
        for number, entry in enumerate(entries):
            if not self.active_only:
                entry["record_id"] = number
        kept = entries[-self.ring :]
        return {
            "version": "2.9",
            "nccl_version": "2.27.5",
            "pg_config": {
                name: {"name": name, "desc": "", "ranks": str(list(groups[name]))} for name in names
            },
            "pg_status": {
                str(self.id_step * number): {
                    f"last_{k}_collective": v for k, v in status[name].items()
                }
                for number, name in enumerate(names)
            },
            "entries": kept,
        }

    def _batch(self, entry: dict[str, Any], number: int, over: bool) -> list[dict[str, Any]]:
        """The records of a transfer that goes in a batch of its own."""
        numbers = {"collective_seq_id": number, "p2p_seq_id": 0}
        unmarked = {"state": "scheduled", "retired": False, "time_discovered_completed_ns": None}
        nothing = {"profiling_name": "nccl:coalesced", "input_sizes": [], "output_sizes": []}
        end = {**entry, **numbers, **nothing}
        return [{**entry, **numbers, **unmarked}, *([] if self.active_only and over else [end])]

    def _entry(self, job: Job, rank: int, place: int, number: int, group: int) -> dict[str, Any]:
        op, over = job.programs[rank][place], job.seen(rank, place)
        moment = 1_000_000 + place * 1000 + rank
        started = over or (self.timed and job.runs(rank, place))
        return {
            "record_id": place,
            "pg_id": group,
            "process_group": (op.group, ""),
            "collective_seq_id": 0 if op.transfer else number,
            "p2p_seq_id": number if op.transfer else 0,
            "profiling_name": f"nccl:{_spelled(op, rank)}",
            "is_p2p": op.transfer is not None,
            "state": "completed" if over else "started" if started else "scheduled",
            "retired": over or self.aborted,
            "input_sizes": [[op.size]],
            "output_sizes": [[op.size]],
            "input_dtypes": ["Float"],
            "output_dtypes": ["Float"],
            "time_created_ns": moment,
            "time_discovered_completed_ns": moment + 500 if over else None,
        }


def _spelled(op: Op, rank: int) -> str:
    if op.transfer is None:
        return op.name
    source, target = (op.ranks.index(each) for each in op.transfer)
    return f"send {source}->{target}" if rank == op.transfer[0] else f"recv {target}<-{source}"


def without(programs: Programs, rank: int, place: int) -> Programs:
    """A rank that leaves an operation out."""
    return {**programs, rank: programs[rank][:place] + programs[rank][place + 1 :]}


def changed(programs: Programs, rank: int, place: int, **changes: Any) -> Programs:
    """A rank that brings something else to an operation."""
    program = list(programs[rank])
    program[place] = replace(program[place], **changes)
    return {**programs, rank: program}
