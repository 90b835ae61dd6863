"""The parallel groups that suspects make up, or the one that holds them."""

from __future__ import annotations

from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import Topology

# Suspects that make up more groups than this share something else.
GROUPS_NAMED = 4
# A group that holds more of the job than this says nothing of those in it.
LARGEST_SHARE = 0.5


def exact_groups(topology: Topology | Missing, ranks: RankSet) -> tuple[str, ...]:
    """The groups of one kind, a few at most, of which the suspects are all the ranks."""
    if isinstance(topology, Missing) or not _is_small(topology, ranks):
        return ()
    kinds = [len(members) for _, members in topology.named(_first(ranks))]
    # The largest groups need the fewest names; of equal ones the first has the better name.
    for kind in sorted(range(len(kinds)), key=lambda kind: -kinds[kind]):
        names = _cover(topology, ranks, kind)
        if names:
            return names
    return ()


def shared_group(topology: Topology | Missing, ranks: RankSet) -> tuple[str, ...]:
    """The smallest group that holds all suspects and others; none where it is most of the job.

    One alone is in a communicator of every dimension: its stage and replica say where it is.
    """
    if isinstance(topology, Missing) or not _is_small(topology, ranks):
        return ()
    holding = [
        (len(ranks) == 1 and " group " in name, len(members), name)
        for name, members in topology.named(_first(ranks))
        if not ranks - members and len(members) <= LARGEST_SHARE * topology.world_size
    ]
    return (min(holding, key=lambda found: found[:2])[2],) if holding else ()


def _cover(topology: Topology, ranks: RankSet, kind: int) -> tuple[str, ...]:
    """The groups of a kind that the ranks are made of; none where one is not complete."""
    names: list[str] = []
    rest = ranks
    while rest:
        name, members = list(topology.named(_first(rest)))[kind]
        if members - ranks or len(names) == GROUPS_NAMED:
            return ()
        names.append(name)
        rest = rest - members
    return tuple(names)


def _is_small(topology: Topology, ranks: RankSet) -> bool:
    return 0 < len(ranks) < topology.world_size and ranks.bits < 1 << topology.world_size


def _first(ranks: RankSet) -> int:
    return next(iter(ranks))
