"""Topologies: the groups of each dimension, their names and their cost."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.topology import DIMENSIONS, RANK_ORDERS, Topology

sizes = st.integers(1, 5)
DENSE = [dimension for dimension in DIMENSIONS if dimension != "expert"]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any arrangement that fits its world; experts are a part of the ranks of a stage."""
    tensor, context, data, pipeline = (draw(sizes) for _ in range(4))
    order = draw(st.sampled_from(RANK_ORDERS))
    room = context * (data if order == RANK_ORDERS[0] else 1)
    expert = draw(st.sampled_from([n for n in range(1, room + 1) if room % n == 0]))
    return Topology(
        world_size=tensor * context * data * pipeline,
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        expert=expert,
        order=order,
    )


@given(topologies())
def test_groups_partition_the_world(topology: Topology) -> None:
    """In every dimension each rank is in exactly one group, of the dimension's size."""
    for dimension in DIMENSIONS:
        groups = list(topology.groups(dimension))
        assert {len(group) for group in groups} == {topology.size(dimension)}
        assert sum(map(len, groups)) == topology.world_size
        for number, group in enumerate(groups):
            for rank in group:
                assert topology.group(dimension, rank) == group
                assert topology.number(dimension, rank) == number


@given(topologies())
def test_slices_partition_the_world(topology: Topology) -> None:
    """Each rank is in the slice of its own coordinate and in no other."""
    for dimension in DIMENSIONS:
        slices = [topology.slice(dimension, n) for n in range(topology.size(dimension))]
        assert sum(map(len, slices)) == topology.world_size
        for coordinate, ranks in enumerate(slices):
            assert all(topology.coordinate(rank, dimension) == coordinate for rank in ranks)


@given(topologies())
def test_sizes_make_up_the_world(topology: Topology) -> None:
    """The sizes of all dimensions but the experts' multiply to the number of ranks."""
    assert prod(topology.size(dimension) for dimension in DENSE) == topology.world_size


@given(topologies())
def test_coordinates_round_trip(topology: Topology) -> None:
    """A rank is found again at its coordinates."""
    for rank in range(topology.world_size):
        assert topology.rank_at(topology.coordinates(rank)) == rank


@given(topologies(), st.data())
def test_neighbours_share_all_other_coordinates(topology: Topology, data: st.DataObject) -> None:
    """The neighbour of a rank is a stage further on in the same pipeline, and back again."""
    rank = data.draw(st.integers(0, topology.world_size - 1))
    step = data.draw(st.sampled_from([-1, 1]))
    (other,) = topology.beside(RankSet([rank]), step)
    here, there = topology.coordinates(rank), topology.coordinates(other)
    assert there["pipeline"] == (here["pipeline"] + step) % topology.pipeline
    assert all(here[name] == there[name] for name in ("tensor", "context", "data"))
    assert topology.beside(RankSet([other]), -step) == RankSet([rank])


@given(topologies())
def test_a_rank_is_in_every_group_that_is_named_for_it(topology: Topology) -> None:
    """Names of a rank's groups differ from each other, and each group holds the rank."""
    for rank in range(topology.world_size):
        named = list(topology.named(rank))
        assert len({name for name, _ in named}) == len(named)
        assert all(rank in ranks for _, ranks in named)


def test_megatron_fills_tensor_then_data_then_pipeline() -> None:
    """The groups of 16 ranks in 2 x 2 x 4 are those that Megatron itself makes."""
    topology = Topology(world_size=16, tensor=2, pipeline=4, expert=4, expert_tensor=1)
    assert str(topology.group("tensor", 5)) == "4-5"
    assert str(topology.group("data", 5)) == "5/7"
    assert str(topology.group("pipeline", 5)) == "1/5/9/13"
    assert str(topology.group("expert", 5)) == "4-7"
    assert str(topology.slice("pipeline", 2)) == "8-11"
    assert str(topology) == "tp 2 x dp 2 x pp 4, ep 4"


def test_pipelines_may_lie_within_a_replica() -> None:
    """With the other order a pipeline's ranks stand together."""
    topology = Topology(world_size=16, tensor=2, pipeline=4, order="tp-cp-ep-pp-dp")
    assert str(topology.group("pipeline", 5)) == "1/3/5/7"
    assert str(topology.group("data", 5)) == "5/13"
    assert [name for name, _ in topology.named(5)][:3] == [
        "pp stage 2",
        "dp 0",
        "pp stage 2 of dp 0",
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tensor": 3}, "tensor 3 does not divide the world of 16 ranks"),
        (
            {"tensor": 4, "pipeline": 3},
            "tensor 4 x pipeline 3 makes 12, which does not divide the world of 16 ranks",
        ),
        ({"pipeline": 4, "expert": 3}, "expert 3 does not divide the 4 ranks of a stage"),
        ({"tensor": 0}, "a group has at least one rank"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, int], why: str) -> None:
    """Sizes that do not make up the world are no topology, and the reason says which."""
    with pytest.raises(ValueError, match=why):
        Topology(world_size=16, **given)  # type: ignore[arg-type]


def test_a_world_without_groups_names_none() -> None:
    """Where all ranks are replicas, each of them alone is no group worth a name."""
    topology = Topology(world_size=8)
    assert [name for name, _ in topology.named(3)] == ["dp group 0"]
    assert str(topology) == "dp 8"
    assert topology.beside(NOBODY, 1) == NOBODY
