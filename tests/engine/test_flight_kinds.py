"""Every kind of fault in jobs of many shapes: nobody but the planted ranks is ever named."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.engine.flight_jobs import Job, Op, Programs, Recorder, Shape, changed, without
from whyhang.engine.flight_analysis import analyse

pytestmark = pytest.mark.long
SHAPES = (
    Shape(1, 8, 1),
    Shape(2, 2, 2),
    Shape(2, 2, 2, plain=True),
    Shape(1, 2, 4),
    Shape(2, 2, 4),
    Shape(4, 2, 2, experts=True),
    Shape(4, 4, 1, experts=True),
    Shape(2, 4, 4, experts=True, plain=True),
    Shape(8, 2, 2),
    Shape(4, 4, 4, experts=True),
)
SEEDS = range(3)


@dataclass
class Incident:
    """A job that was run into its fault, the ranks with the fault, and how it was recorded."""

    job: Job
    guilty: set[int]
    recorder: Recorder = field(default_factory=Recorder)


Plant = Callable[[random.Random, Programs], Incident]


def place(
    chance: random.Random, programs: Programs, fits: Callable[[Op], bool] = lambda op: True
) -> tuple[int, int]:
    """A rank and one of its operations, not among the first and the last."""
    found = [
        (rank, number)
        for rank, program in programs.items()
        for number, op in enumerate(program)
        if 3 <= number < len(program) - 2 and fits(op)
    ]
    return chance.choice(found)


def is_collective(op: Op) -> bool:
    """Whether more than two ranks are in it, so that most of them can agree."""
    return op.transfer is None and len(op.ranks) > 2 and op.name != "all_to_all"


def stops(chance: random.Random, programs: Programs) -> Incident:
    """A host that issues nothing more: it sleeps, computes, or a thread keeps the GIL."""
    rank, at = place(chance, programs)
    return Incident(Job(programs, ahead=chance.randint(1, 8), stop={rank: at}), {rank})


def recorded(**settings: object) -> Plant:
    """The same, recorded in another way."""

    def plant(chance: random.Random, programs: Programs) -> Incident:
        incident = stops(chance, programs)
        incident.recorder = Recorder(**settings)  # type: ignore[arg-type]
        return incident

    return plant


def two_stop(chance: random.Random, programs: Programs) -> Incident:
    """Two hosts that stop at different places."""
    (one, at), (other, there) = place(chance, programs), place(chance, programs)
    job = Job(programs, ahead=chance.randint(1, 8), stop={one: at, other: there})
    return Incident(job, {one, other})


def node_stops(chance: random.Random, programs: Programs) -> Incident:
    """All ranks of a node of two stop together."""
    rank, at = place(chance, programs)
    node = {rank, rank ^ 1}
    return Incident(Job(programs, ahead=chance.randint(1, 8), stop=dict.fromkeys(node, at)), node)


def dies(chance: random.Random, programs: Programs) -> Incident:
    """A process that is killed leaves no dump."""
    incident = stops(chance, programs)
    incident.recorder = Recorder(lost=frozenset(incident.guilty))
    return incident


def node_dies(chance: random.Random, programs: Programs) -> Incident:
    """A node that is lost leaves none of its dumps."""
    incident = node_stops(chance, programs)
    incident.recorder = Recorder(lost=frozenset(incident.guilty))
    return incident


def dumps_are_lost(chance: random.Random, programs: Programs) -> Incident:
    """Of two ranks without a fault the dumps were not gathered."""
    incident = stops(chance, programs)
    others = sorted(set(programs) - incident.guilty)
    incident.recorder = Recorder(lost=frozenset(chance.sample(others, 2)))
    return incident


def gpu_sleeps(chance: random.Random, programs: Programs) -> Incident:
    """A GPU does nothing more while its host issues on; starts of kernels are recorded."""
    rank, at = place(chance, programs)
    job = Job(programs, ahead=chance.randint(2, 8), sleep={rank: at})
    return Incident(job, {rank}, Recorder(timed=True))


def gpu_sleeps_untimed(chance: random.Random, programs: Programs) -> Incident:
    """The same where nobody records starts: all have come, and no rank can be told apart."""
    incident = gpu_sleeps(chance, programs)
    incident.recorder = Recorder()
    return incident


def gpu_fails(chance: random.Random, programs: Programs) -> Incident:
    """A GPU whose host learns of no end any more, although peers are over the next operations."""
    rank, at = place(chance, programs)
    return Incident(Job(programs, ahead=chance.randint(3, 8), blind={rank: at}), {rank})


def gpu_fails_active(chance: random.Random, programs: Programs) -> Incident:
    """The same in dumps of unfinished operations only."""
    incident = gpu_fails(chance, programs)
    incident.recorder = Recorder(active_only=True)
    return incident


def other_size(chance: random.Random, programs: Programs) -> Incident:
    """One rank brings another size."""
    rank, at = place(chance, programs, is_collective)
    return Incident(Job(changed(programs, rank, at, size=65)), {rank})


def other_operation(chance: random.Random, programs: Programs) -> Incident:
    """One rank calls another collective."""
    rank, at = place(chance, programs, is_collective)
    return Incident(Job(changed(programs, rank, at, name="broadcast")), {rank})


def leaves_out(chance: random.Random, programs: Programs) -> Incident:
    """One rank leaves a collective of a group out and goes on."""
    rank, at = place(chance, programs, is_collective)
    return Incident(Job(without(programs, rank, at), ahead=chance.randint(1, 8)), {rank})


def leaves_out_in_a_pair(chance: random.Random, programs: Programs) -> Incident:
    """One rank leaves any operation out, also where only one other rank takes part."""
    rank, at = place(chance, programs)
    return Incident(Job(without(programs, rank, at), ahead=chance.randint(1, 8)), {rank})


# The second value: whether a rank with the fault is named in every case; elsewhere the records
# may show the same for another rank.
KINDS: dict[str, tuple[Plant, bool]] = {
    "stops": (stops, True),
    "two stop": (two_stop, True),
    "a node stops": (node_stops, True),
    "dies": (dies, True),
    "a node dies": (node_dies, True),
    "dumps are lost": (dumps_are_lost, True),
    "unfinished records only": (recorded(active_only=True), True),
    "aborted by the watchdog": (recorded(aborted=True), True),
    "coalesced": (recorded(split=3), True),
    "in batches": (recorded(batches=True), True),
    "in batches, unfinished only": (recorded(batches=True, active_only=True), True),
    "in batches, early records lost": (recorded(batches=True, ring=9), True),
    "other backends between": (recorded(id_step=3, active_only=True), True),
    "json": (recorded(as_json=True), True),
    "early records lost": (recorded(ring=9), True),
    "nearly all records lost": (recorded(ring=3), False),
    "gpu sleeps": (gpu_sleeps, True),
    "gpu sleeps untimed": (gpu_sleeps_untimed, False),
    "gpu fails": (gpu_fails, False),
    "gpu fails, unfinished only": (gpu_fails_active, False),
    "other size": (other_size, True),
    "other operation": (other_operation, True),
    "leaves out": (leaves_out, False),
    "leaves out in a pair": (leaves_out_in_a_pair, False),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_only_ranks_with_the_fault_are_named(kind: str, seed: int) -> None:
    """Of all ranks that look stuck none is accused for another's fault."""
    plant, certain = KINDS[kind]
    chance = random.Random(f"{kind} {seed}")
    incident = plant(chance, chance.choice(SHAPES).programs(3))
    incident.job.run()
    named = {suspect.rank for suspect in analyse(incident.recorder.dumps(incident.job)).suspects}
    assert named <= incident.guilty
    assert named or not certain


@pytest.mark.parametrize("seed", range(12))
def test_an_old_dump_accuses_nobody(seed: int) -> None:
    """A dump that an earlier moment has left shows its rank behind all others, and is not used."""
    chance = random.Random(f"old {seed}")
    programs = chance.choice(SHAPES).programs(3)
    incident = stops(chance, programs)
    innocent = chance.choice(sorted(set(programs) - incident.guilty))
    early = Job(programs, stop=dict.fromkeys(programs, 2)).run()
    incident.job.run()
    dumps = {dump.rank: dump for dump in incident.recorder.dumps(incident.job)}
    dumps[innocent] = {dump.rank: dump for dump in incident.recorder.dumps(early)}[innocent]
    found = analyse(list(dumps.values()))
    assert set(found.ranks) == incident.guilty
    assert set(found.stale) <= {innocent}


@pytest.mark.parametrize("kind", ["gpu fails", "leaves out", "nearly all records lost"])
def test_most_are_named_where_records_may_be_alike(kind: str) -> None:
    """Not naming anybody is for the rare case in which nothing tells the ranks apart."""
    named = 0
    for seed in range(8):
        chance = random.Random(seed)
        incident = KINDS[kind][0](chance, Shape(4, 2, 2, experts=True).programs(3))
        incident.job.run()
        named += bool(analyse(incident.recorder.dumps(incident.job)).suspects)
    assert named >= 6
