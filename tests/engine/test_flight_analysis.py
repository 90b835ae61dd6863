"""Who is missing, on dumps of small jobs that a simulator runs into a fault."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyhang.engine.flight_analysis import FlightAnalysis, analyse, minority
from whyhang.schemas.flight_recorder import FlightDump, FlightEntry, FlightGroup, GroupStatus
from whyhang.schemas.rankset import RankSet


@dataclass(frozen=True)
class Op:
    """An operation in a program: a collective of a group, or a transfer between two ranks."""

    name: str
    group: str
    ranks: tuple[int, ...]
    transfer: tuple[int, int] | None = None


@dataclass
class Job:
    """A job whose ranks run programs; a rank runs ahead of its GPU by a few operations."""

    programs: Mapping[int, Sequence[Op]]
    ahead: int = 4
    finished: dict[int, set[int]] = field(default_factory=dict)
    issued: dict[int, int] = field(default_factory=dict)

    def run(
        self,
        *,
        stop_at: Mapping[int, int],
        sick_at: Mapping[int, int] | None = None,
    ) -> None:
        """Run until nothing moves. A rank enqueues nothing from ``stop_at`` on, and finishes
        nothing from ``sick_at`` on, although its peers may.
        """
        sick = sick_at or {}
        self.issued = dict.fromkeys(self.programs, 0)
        self.finished = {rank: set() for rank in self.programs}
        moved = True
        while moved:
            moved = False
            for rank, program in self.programs.items():
                limit = min(len(program), stop_at.get(rank, len(program)))
                while self.issued[rank] < limit and (
                    self.issued[rank] - len(self.finished[rank]) < self.ahead
                ):
                    self.issued[rank] += 1
                    moved = True
            for rank, program in self.programs.items():
                for place in range(self.issued[rank]):
                    if place in self.finished[rank]:
                        continue
                    if place >= sick.get(rank, len(program)) or not self._met(rank, place, sick):
                        break  # one stream: what comes later waits
                    self.finished[rank].add(place)
                    moved = True

    def _met(self, rank: int, place: int, sick: Mapping[int, int]) -> bool:
        """Whether all partners have launched the operation: all before it is over there."""
        op = self.programs[rank][place]
        number = self._count(rank, place, op)
        for partner in op.transfer or op.ranks:
            there = self._place(partner, op, number)
            if there is None or there >= self.issued[partner]:
                return False
            done = self.finished[partner]
            before = sick.get(partner, 1 << 30)
            if any(p not in done and p < before for p in range(there)):
                return False
            if before <= there - 2:
                return False  # a sick GPU goes on for a moment unnoticed, not for ever
        return True

    def _count(self, rank: int, place: int, op: Op) -> int:
        return sum(_same(op, other) for other in self.programs[rank][:place])

    def _place(self, rank: int, op: Op, number: int) -> int | None:
        places = [p for p, other in enumerate(self.programs[rank]) if _same(op, other)]
        return places[number] if number < len(places) else None

    def dumps(self, *, active_only: bool = False, without: Sequence[int] = ()) -> list[FlightDump]:
        """What the ranks' flight recorders hold."""
        return [self._dump(rank, active_only) for rank in self.programs if rank not in without]

    def _dump(self, rank: int, active_only: bool) -> FlightDump:
        program = self.programs[rank][: self.issued[rank]]
        names = sorted({op.group for op in self.programs[rank]}, key=int)
        entries, enqueued, completed = [], {}, {}
        counts: dict[tuple[str, bool], int] = {}
        for place, op in enumerate(program):
            kind = op.group, op.transfer is not None
            counts[kind] = counts.get(kind, 0) + 1
            done = place in self.finished[rank]
            enqueued[op.group] = counts[kind]
            if done:
                completed[op.group] = counts[kind]
            entries.append(
                FlightEntry(
                    record=place,
                    group=op.group,
                    group_id=names.index(op.group),
                    op=f"nccl:{_spelled(op, rank)}",
                    seq=0 if op.transfer else counts[kind],
                    p2p_seq=counts[kind] if op.transfer else 0,
                    is_p2p=op.transfer is not None,
                    state="completed" if done else "scheduled",
                    retired=done,
                    created_ns=place,
                )
            )
        groups = {op.group: op.ranks for op in self.programs[rank]}
        return FlightDump(
            rank=rank,
            groups=tuple(FlightGroup(name=n, ranks=groups[n]) for n in names),
            status={
                names.index(n): GroupStatus(enqueued.get(n), None, completed.get(n)) for n in names
            },
            entries=tuple(e for e in entries if not (active_only and e.completed)),
        )


def _same(one: Op, other: Op) -> bool:
    """Whether two operations are of one sequence."""
    return (one.group, one.transfer) == (other.group, other.transfer)


def _spelled(op: Op, rank: int) -> str:
    if op.transfer is None:
        return op.name
    source, target = (op.ranks.index(each) for each in op.transfer)
    return f"send {source}->{target}" if rank == op.transfer[0] else f"recv {target}<-{source}"


def pipeline_job(stages: int, width: int, steps: int) -> dict[int, list[Op]]:
    """Tensor parallel groups in pipeline stages; all ranks meet once a step.

    Groups are named by number, as PyTorch names them.
    """
    size = stages * width
    programs: dict[int, list[Op]] = {rank: [] for rank in range(size)}
    everybody = tuple(range(size))
    for _ in range(steps):
        for stage in range(stages):
            tensor = tuple(range(stage * width, stage * width + width))
            for rank in tensor:
                column = tuple(rank % width + s * width for s in range(stages))
                name = str(100 + rank % width)
                if stage:
                    programs[rank].append(Op("", name, column, (rank - width, rank)))
                for kind in ("_all_gather_base", "_reduce_scatter_base"):
                    programs[rank].append(Op(kind, str(10 + stage), tensor))
                if stage + 1 < stages:
                    programs[rank].append(Op("", name, column, (rank, rank + width)))
        for rank in everybody:
            programs[rank].append(Op("all_reduce", "0", everybody))
    return programs


def named(found: FlightAnalysis) -> set[int]:
    """The suspects."""
    return {suspect.rank for suspect in found.suspects}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(1, 4), (2, 2), (4, 2), (4, 4)]),
    st.integers(0, 1 << 30),
    st.booleans(),
    st.integers(1, 6),
)
def test_a_rank_that_stops_enqueueing_is_named_alone(
    shape: tuple[int, int], seed: int, active_only: bool, ahead: int
) -> None:
    """Wherever one rank of a pipeline stops, it is named, and none of its many victims."""
    chance = random.Random(seed)
    job = Job(pipeline_job(*shape, steps=3), ahead=ahead)
    victim = chance.randrange(len(job.programs))
    job.run(stop_at={victim: chance.randrange(len(job.programs[victim]))})
    found = analyse(job.dumps(active_only=active_only))
    if not any(found.record.pending(rank) for rank in job.programs if rank != victim):
        return  # it stopped behind the last operation that anybody waits for
    assert named(found) == {victim}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(2, 2), (4, 2), (4, 4)]), st.integers(0, 1 << 30))
def test_a_rank_without_a_dump_is_named_only_alone(shape: tuple[int, int], seed: int) -> None:
    """A killed rank leaves no dump: it is named, if anybody is, and nobody for its sake."""
    chance = random.Random(seed)
    job = Job(pipeline_job(*shape, steps=3), ahead=3)
    victim = chance.randrange(len(job.programs))
    job.run(stop_at={victim: chance.randrange(len(job.programs[victim]) - 1)})
    found = analyse(job.dumps(without=[victim]))
    assert named(found) <= {victim}
    assert {suspect.reason for suspect in found.suspects} <= {"no_dump"}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30))
def test_hiding_a_dump_accuses_nobody_else(seed: int) -> None:
    """With any other dump lost the suspects stay a part of what they were."""
    chance = random.Random(seed)
    job = Job(pipeline_job(4, 2, steps=3))
    victim, lost = chance.sample(range(8), 2)
    job.run(stop_at={victim: chance.randrange(len(job.programs[victim]) - 1)})
    assert named(analyse(job.dumps(without=[lost]))) <= {victim, lost}
    whole = named(analyse(job.dumps()))
    if whole:
        assert named(analyse(job.dumps(without=[lost]))) <= whole | {lost}


def test_two_ranks_that_stop_are_both_named() -> None:
    """Each has ranks that wait for it alone."""
    job = Job(pipeline_job(2, 4, steps=2), ahead=8)
    job.run(stop_at={1: 3, 6: 1})
    found = analyse(job.dumps(active_only=True))
    assert named(found) == {1, 6}
    assert {suspect.reason for suspect in found.suspects} == {"missing"}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(2, 2), (4, 2), (4, 4)]), st.integers(0, 1 << 30), st.integers(3, 8))
def test_a_sick_gpu_lags_behind_its_peers(shape: tuple[int, int], seed: int, ahead: int) -> None:
    """It enqueues on and finishes nothing, while a peer is over the same collectives."""
    chance = random.Random(seed)
    job = Job(pipeline_job(*shape, steps=3), ahead=ahead)
    victim = chance.randrange(len(job.programs))
    job.run(stop_at={}, sick_at={victim: chance.randrange(2, len(job.programs[victim]) - 3)})
    found = analyse(job.dumps())
    assert named(found) == {victim}
    assert found.suspects[0].waiting


def world_op(
    rank: int,
    op: str = "nccl:all_reduce",
    size: int = 4,
    seq: int = 1,
    state: str = "scheduled",
) -> FlightDump:
    """A dump with one unfinished collective of all four ranks."""
    return FlightDump(
        rank=rank,
        groups=(FlightGroup(name="0", description="default_pg", ranks=(0, 1, 2, 3)),),
        entries=(
            FlightEntry(
                record=0,
                group="0",
                op=op,
                seq=seq,
                state=state,
                input_sizes=((size, 2),),
                dtypes=("Float", "Float"),
                created_ns=rank,
            ),
        ),
    )


def test_another_operation_is_odd() -> None:
    """The one rank that runs another collective at the same number is named."""
    found = analyse([*map(world_op, range(3)), world_op(3, "nccl:broadcast")])
    assert [(s.rank, s.reason) for s in found.suspects] == [(3, "odd")]


def test_other_sizes_are_odd() -> None:
    """So is one that brings another size; the analysis says which."""
    found = analyse([*map(world_op, range(3)), world_op(3, size=5)])
    assert [(s.rank, s.reason) for s in found.suspects] == [(3, "odd")]
    (brought,) = found.sizes.values()
    assert brought[3] == "all_reduce 10 Float"


def test_half_against_half_names_nobody() -> None:
    """Where neither side is the larger one, both are shown and nobody is named."""
    found = analyse([world_op(rank, size=4 + rank % 2) for rank in range(4)])
    assert found.suspects == ()
    assert len(found.sizes) == 1


@pytest.mark.parametrize("op", ["nccl:all_to_all", "nccl:all_gather", "nccl:gather"])
def test_sizes_that_may_differ(op: str) -> None:
    """All-to-all and gathers with uneven shares are no fault: experts get unequal work."""
    found = analyse([world_op(rank, op, size=4 + rank) for rank in range(4)])
    assert (found.suspects, dict(found.sizes)) == ((), {})


def test_all_came_and_it_does_not_end() -> None:
    """No rank can be told apart: GPUs or network; the operation is named, no rank."""
    found = analyse([world_op(rank) for rank in range(4)])
    assert found.suspects == ()
    assert len(found.stuck) == 1


def test_a_kernel_that_did_not_start() -> None:
    """Where the others' kernels have started, the one that has not is named."""
    dumps = [world_op(rank, state="scheduled" if rank == 1 else "started") for rank in range(4)]
    assert [(s.rank, s.reason) for s in analyse(dumps).suspects] == [(1, "not_started")]


def test_few_dumps_prove_nothing() -> None:
    """The dumps of one node of four do not accuse the ranks of the others."""
    assert analyse([world_op(0)]).suspects == ()


def test_crossed_collectives_name_the_smaller_side() -> None:
    """One rank waits in a group whose other ranks wait for it elsewhere."""
    other = FlightGroup(name="5", ranks=(0, 1, 2, 3))

    def with_other(dump: FlightDump) -> FlightDump:
        return replace(dump, groups=(*dump.groups, other))

    odd = replace(world_op(3), entries=(replace(world_op(3).entries[0], group="5"),), status={})
    found = analyse([*(with_other(world_op(rank)) for rank in range(3)), with_other(odd)])
    assert [(s.rank, s.reason) for s in found.suspects] == [(3, "crossed")]


def gloo(rank: int, *retired: bool, status: int) -> FlightDump:
    """gloo: no members of groups, numbers that count transfers too, retired as the only sign."""
    return FlightDump(
        rank=rank,
        status={0: GroupStatus(status, None, status - 1)},
        entries=tuple(
            FlightEntry(
                record=place,
                group="0",
                group_id=0,
                op="gloo:all_reduce",
                seq=place + 1,
                retired=over,
            )
            for place, over in enumerate(retired)
        ),
    )


def test_gloo_numbers_are_not_compared() -> None:
    """A rank whose number is lower because it transferred nothing has not missed anything."""
    found = analyse(
        [gloo(0, True, True, False, status=9), gloo(1, True, True, False, status=8),
         gloo(2, True, True, status=2)]
    )  # fmt: skip
    assert [(s.rank, s.reason) for s in found.suspects] == [(2, "missing")]
    assert found.suspects[0].waiting == RankSet([0, 1])


def test_a_batch_of_transfers_is_one_wait() -> None:
    """In a ring exchange each rank waits in two transfers at once; the absent rank is named."""
    group = FlightGroup(name="9", ranks=(0, 1, 2, 3))

    def ring(rank: int) -> FlightDump:
        after, before = (rank + 1) % 4, (rank - 1) % 4
        ops = (f"nccl:send {rank}->{after}", f"nccl:recv {rank}<-{before}")
        return FlightDump(
            rank=rank,
            groups=(group,),
            status={0: GroupStatus(7, None, 6)},
            entries=tuple(
                FlightEntry(record=n, group="9", op=op, p2p_seq=7, is_p2p=True)
                for n, op in enumerate(ops)
            ),
        )

    absent = FlightDump(rank=2, groups=(group,), status={0: GroupStatus(6, None, 6)})
    assert named(analyse([ring(0), ring(1), absent, ring(3)])) == {2}


def transfers(rank: int, *ops: str, seq: int = 0, p2p_seq: int = 1) -> FlightDump:
    """A rank of a pipeline of four with unfinished transfers."""
    return FlightDump(
        rank=rank,
        groups=(FlightGroup(name="9", ranks=(0, 1, 2, 3)),),
        entries=tuple(
            FlightEntry(record=n + 5, group="9", op=op, seq=seq, p2p_seq=p2p_seq, is_p2p=True)
            for n, op in enumerate(ops)
        ),
    )


def over(rank: int) -> FlightDump:
    """The same of a rank whose transfers are over."""
    dump = transfers(rank, "nccl:send 0->1")
    entries = tuple(replace(entry, state="completed") for entry in dump.entries)
    return replace(dump, entries=entries)


def test_a_lost_dump_is_not_blamed_beside_an_idle_rank() -> None:
    """Where a rank that was read waits for nothing, it may be that which all others wait for."""
    waiting = [transfers(2, "nccl:recv 2<-1"), transfers(3, "nccl:recv 3<-2")]
    assert named(analyse([over(0), *waiting])) == set()
    waiting.append(transfers(0, "nccl:recv 0<-1"))
    assert named(analyse(waiting)) == {1}


def test_a_batch_whose_members_are_lost_hides_what_its_rank_waits_for() -> None:
    """Of an overwritten batch only the end is left: the rank waits, nobody knows for whom."""
    rest = [transfers(2, "nccl:recv 2<-1"), transfers(3, "nccl:recv 3<-2"), over(0)]
    assert named(analyse([transfers(1, "nccl:coalesced", seq=7, p2p_seq=0), *rest])) == set()
    whole = transfers(1, "nccl:recv 1<-0", "nccl:coalesced", seq=7, p2p_seq=0)
    assert named(analyse([whole, *rest])) == {0}


def test_transfers_of_several_batches_are_several_waits() -> None:
    """Batches have one number of transfers; a rank waits in the first of them only."""
    first = transfers(1, "nccl:send 1->0", "nccl:coalesced", seq=7, p2p_seq=0)
    second = transfers(1, "nccl:recv 1<-2", "nccl:coalesced", seq=8, p2p_seq=0)
    both = replace(first, entries=first.entries + second.entries)
    rest = [transfers(2, "nccl:send 2->1"), transfers(3, "nccl:send 3->2")]
    assert named(analyse([both, *rest, over(0)])) == {0}


def test_no_dumps() -> None:
    """Nothing is known of nothing."""
    assert analyse([]).suspects == ()


def test_minority() -> None:
    """The largest side must be more than half to make the others odd."""
    assert minority({0: "a", 1: "a", 2: "b"}) == (2,)
    assert minority({0: "a", 1: "b"}) == ()
    assert minority({0: "a", 1: "a"}) == ()
