"""Who is waited for along a pipeline, against a walk along each chain."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from whyhang.engine.pipeline import Transfers, await_of
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import RANK_ORDERS, Topology

SIDES = ("before", "after", "either", "unread", "elsewhere")


@st.composite
def standings(draw: st.DrawFn) -> tuple[Topology, Mapping[int, str]]:
    """A small job with pipelines, and how each of its ranks waits."""
    tensor, data = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    pipeline = draw(st.integers(1, 5))
    topology = Topology(
        world_size=tensor * data * pipeline,
        tensor=tensor,
        pipeline=pipeline,
        order=draw(st.sampled_from(RANK_ORDERS)),
    )
    ranks = range(topology.world_size)
    return topology, {rank: draw(st.sampled_from(SIDES)) for rank in ranks}


def walked(topology: Topology, sides: Mapping[int, str], rank: int) -> bool | None:
    """Whether a neighbour waits for a rank; None where nobody can tell."""
    if topology.pipeline == 1:
        return False

    def at(step: int) -> int:
        stage = topology.coordinate(rank, "pipeline") + step
        return topology.rank_at(
            {**topology.coordinates(rank), "pipeline": stage % topology.pipeline}
        )

    before, after = sides[at(-1)], sides[at(1)]
    if after == "before" or before == "after":
        return True
    chain = [sides[at(step)] for step in range(1, topology.pipeline)]
    alone = sides[rank] == "elsewhere" and not {"elsewhere", "unread"} & set(chain)
    if "either" in (before, after) and alone:
        return True
    return None if {"either", "unread"} & {before, after} else False


@given(standings())
def test_it_is_as_if_every_chain_had_been_walked(
    case: tuple[Topology, Mapping[int, str]],
) -> None:
    """A directed wait tells, an undirected one where one rank alone is left, an unread never."""
    topology, sides = case
    ranks = {side: RankSet(r for r, own in sides.items() if own == side) for side in SIDES}
    everybody = RankSet(range(topology.world_size + 2))
    transfers = Transfers(
        before=ranks["before"],
        after=ranks["after"],
        either=ranks["either"],
        unread=ranks["unread"],
    )
    found = await_of(topology, transfers, everybody)
    for rank in range(topology.world_size):
        answer = True if rank in found.yes else False if rank in found.no else None
        assert answer is walked(topology, sides, rank)
    known = found.yes | found.no
    unknown = [set(members) for members in found.unknown.values()]
    assert sorted([*known, *(rank for part in unknown for rank in part)]) == list(everybody)
