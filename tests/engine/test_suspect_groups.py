"""Suspects in groups: exact ones, the one that all share, and none where none says anything."""

from __future__ import annotations

import pytest

from whyhang.engine.suspect_groups import exact_groups, shared_group
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import Topology

# Ranks 0-7 are tensor groups 0 and 1 of stage 0, which are its replicas 0 and 1.
CUBE = Topology(world_size=16, tensor=4, pipeline=2)


@pytest.mark.parametrize(
    ("topology", "ranks", "exact", "shared"),
    [
        (CUBE, "8-15", ("pp stage 1",), "pp stage 1"),
        (CUBE, "4-7/12-15", ("dp 1",), "dp 1"),
        (CUBE, "12-15", ("pp stage 1 of dp 1",), "pp stage 1 of dp 1"),
        (CUBE, "0-3/12-15", ("pp stage 0 of dp 0", "pp stage 1 of dp 1"), None),
        (CUBE, "3/7", ("dp group 3",), "dp group 3"),
        (CUBE, "1/9", ("pp group 1",), "pp group 1"),
        (CUBE, "13-14", (), "pp stage 1 of dp 1"),
        (CUBE, "9/14", (), "pp stage 1"),
        (CUBE, "13", (), "pp stage 1 of dp 1"),
        (CUBE, "0-7/9", (), None),
        (CUBE, "0-15", (), None),
        (CUBE, "0/20", (), None),
        (CUBE, "", (), None),
        (Topology(world_size=16, tensor=4), "4-7", ("dp 1",), "dp 1"),
        (Topology(world_size=8, pipeline=4), "2-3", ("pp stage 1",), "pp stage 1"),
        (Topology(world_size=8, pipeline=4), "3", ("pp stage 1 of dp 1",), "pp stage 1 of dp 1"),
        (Topology(world_size=16, tensor=2, context=2), "4-5", ("tp group 2",), "tp group 2"),
        (Topology(world_size=16, expert=4), "5-6", (), "ep group 1"),
        (Topology(world_size=8), "3", (), None),
        (Missing("nobody tells"), "3", (), None),
    ],
)
def test_suspects_are_named_by_their_groups(
    topology: Topology | Missing, ranks: str, exact: tuple[str, ...], shared: str | None
) -> None:
    """Whole groups by the fewest names; else the smallest that holds them, half the job at most."""
    suspects = RankSet.parse(ranks)
    assert exact_groups(topology, suspects) == exact
    assert shared_group(topology, suspects) == ((shared,) if shared else ())


def test_many_groups_share_something_else() -> None:
    """A suspect in each of many groups is no list of groups."""
    topology = Topology(world_size=64, tensor=2)
    assert exact_groups(topology, RankSet(range(8))) == ("dp 0", "dp 1", "dp 2", "dp 3")
    assert exact_groups(topology, RankSet(range(10))) == ()
