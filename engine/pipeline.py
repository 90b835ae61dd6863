"""Who is waited for along a pipeline: from the functions in which ranks wait, and the topology.

A stage that waits for its neighbour is held up itself; the stage that is waited for and does not
wait so is where the chain ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whyhang.engine.classes import Partition
from whyhang.engine.facets import Classes, stack_of
from whyhang.engine.positions import Positions
from whyhang.engine.world import World
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stack import Stack
from whyhang.schemas.topology import Topology

# Lists of the rules: functions that wait for a neighbour, and of unknown direction.
BEFORE = "stage_before"
AFTER = "stage_after"
EITHER = "point_to_point"

UNREAD_NEIGHBOUR = "a neighbouring stage was not read"
NO_DIRECTION = "a neighbouring stage waits, but its stack does not show for which side"
NOT_IN_WORLD = "the topology does not hold this rank"


@dataclass(frozen=True, slots=True)
class Transfers:
    """The ranks that wait in transfers of one sample, by the side that they wait for."""

    before: RankSet = NOBODY
    after: RankSet = NOBODY
    either: RankSet = NOBODY
    unread: RankSet = NOBODY


@dataclass(frozen=True, slots=True)
class Awaited:
    """The ranks that a neighbour waits for, those that none does, and those it is unknown of."""

    yes: RankSet
    no: RankSet
    unknown: dict[str, RankSet]


@dataclass(slots=True)
class Pipeline:
    """The waits along the pipelines of one incident, each sample worked out once."""

    world: World
    positions: Positions
    classes: Classes
    _known: dict[int, Awaited] = field(default_factory=dict)

    def is_awaited(self, rank: int | None, sample: int) -> bool | Missing:
        """Whether a neighbouring stage waits for a rank in a transfer."""
        found = self._awaited(sample)
        if rank in found.yes or rank in found.no:
            return rank in found.yes
        for reason, ranks in found.unknown.items():
            if rank in ranks:
                return Missing(reason)
        return Missing(NOT_IN_WORLD)

    def partition(self, sample: int) -> Partition:
        """The ranks by the answer."""
        found = self._awaited(sample)
        return Partition(
            (), tuple(s.bits for s in (found.yes, found.no, *found.unknown.values()) if s)
        )

    def _awaited(self, sample: int) -> Awaited:
        if sample not in self._known:
            everybody = RankSet.from_bits(self.world.ranks.members)
            topology = self.world.topology
            if isinstance(topology, Missing):
                self._known[sample] = Awaited(NOBODY, NOBODY, {topology.reason: everybody})
            else:
                self._known[sample] = await_of(topology, self._transfers(sample), everybody)
        return self._known[sample]

    def _transfers(self, sample: int) -> Transfers:
        sides: dict[str, RankSet] = {}
        classes = self.classes.of("rank", ("stack",), sample)
        for number, rank in enumerate(classes.representatives()):
            stack = stack_of(self.positions, self.world.ranks.subjects[rank], sample)
            side = "unread" if isinstance(stack, Missing) else self._side(stack)
            if side:
                sides[side] = sides.get(side, NOBODY) | RankSet.from_bits(classes.bitmap(number))
        return Transfers(**sides)

    def _side(self, stack: Stack) -> str:
        """The side that a stack waits for: the innermost function that tells decides."""
        is_transfer = False
        for frame in stack.python:
            claims = self.positions.claims(frame)
            is_transfer |= EITHER in claims
            if BEFORE in claims or AFTER in claims:
                return "before" if BEFORE in claims else "after"
        return "either" if is_transfer else ""


def await_of(topology: Topology, transfers: Transfers, everybody: RankSet) -> Awaited:
    """Who is waited for. A transfer of unknown direction tells where one rank alone is left."""

    def next_to(ranks: RankSet) -> RankSet:
        return topology.beside(ranks, -1) | topology.beside(ranks, 1)

    inside = everybody & RankSet.from_bits((1 << topology.world_size) - 1)
    if topology.pipeline == 1:
        return Awaited(NOBODY, inside, {NOT_IN_WORLD: everybody - inside})
    waits = transfers.before | transfers.after | transfers.either
    yes = topology.beside(transfers.before, -1) | topology.beside(transfers.after, 1)
    if transfers.either:
        alone = inside - waits - transfers.unread
        for step in range(1, topology.pipeline):
            alone = alone & topology.beside(waits, step)
        yes = yes | alone & next_to(transfers.either)
    yes = yes & inside
    blind = (next_to(transfers.unread) & inside) - yes
    vague = (next_to(transfers.either) & inside) - yes - blind
    no = inside - yes - blind - vague
    unknown = {UNREAD_NEIGHBOUR: blind, NO_DIRECTION: vague, NOT_IN_WORLD: everybody - inside}
    return Awaited(yes, no, unknown)
