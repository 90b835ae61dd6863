"""What must not change a verdict, and whom it must never name, on random small worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.accuracy.changes import CHANGES, Change, each_process, hide_dump
from tests.accuracy.invariance import conclusion
from whyhang.engine.judge import judge
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import CONFIDENCES

Build = Callable[[Mapping[str, Any]], Incident]
WAITING = ("backward", "all_reduce")
OUTSIDE = ("data", "user_sleep", "user_lock_plain", "saving", "compiling")
UNREAD: Mapping[str, Any] = {"state": "S", "unread": "py-spy: permission denied"}
UNASKED: Mapping[str, Any] = {"unread": "not reached within 120 s"}
ASLEEP: Mapping[str, Any] = {"state": "D", "wchan": "nfs_wait", "unread": "timed out"}
STOPPED: Mapping[str, Any] = {"stack": "backward", "state": "T"}
GONE: Mapping[str, Any] = {"stack": "backward", "gone_after": 1}
ZOMBIE: Mapping[str, Any] = {"state": "Z", "unread": "it has no stack"}
MOVING: Mapping[str, Any] = {"stack": "@train.py:7 loop", "then": "@train.py:9 loop"}
BUSY: Mapping[str, Any] = {"stack": "saving", "io": 900, "writes": 5_000_000}
WITHOUT_EVIDENCE = (UNREAD, UNASKED)
ODD = (*OUTSIDE, *WAITING, UNREAD, UNASKED, ASLEEP, STOPPED, GONE, ZOMBIE, MOVING, BUSY)

quickly = settings(
    max_examples=12,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@lru_cache(maxsize=1)
def built_in() -> Ruleset:
    """The built-in pack; no fixture, because its description of 100 kB stands in every failure."""
    return load_ruleset()


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A job of which most ranks wait in one call, a few do something else or were not read."""
    ranks = draw(st.integers(min_value=1, max_value=24))
    odd = draw(st.sets(st.integers(0, ranks - 1), max_size=max(1, ranks // 3)))
    kinds = st.sampled_from(ODD)
    common = draw(st.sampled_from((*WAITING, "data", "user_sleep")))
    trainers: dict[Any, Any] = {"*": common}
    trainers.update({rank: draw(kinds) for rank in sorted(odd)})
    state = draw(st.sampled_from(("stalled", "stalled", "unknown", "advancing")))
    return {
        "ranks": ranks,
        "trainers": trainers,
        "workers": {"*": draw(st.sampled_from(("worker_idle", "worker_blocked")))},
        "log": {"state": state, "stalled_seconds": 400.0 if state == "stalled" else None},
    }


def many_nodes(incident: Incident) -> Incident:
    """Every rank has a node of its own, listed in another order."""
    home = incident.nodes[0]
    nodes = (
        Node(
            name=f"node{rank}",
            ranks=RankSet([rank]),
            unread=home.unread & RankSet([rank]),
            # On a partial node nobody counts as exited, read or not.
            status=home.status,
        )
        for rank in home.ranks
    )
    moved = each_process(incident, lambda line: replace(line, node=f"node{line.rank}"))
    return replace(moved, nodes=tuple(reversed(tuple(nodes))))


@pytest.mark.parametrize("change", (*CHANGES, many_nodes), ids=lambda change: change.__name__)
@quickly
@given(case=cases())
def test_what_changes_nothing(
    change: Change, case: Mapping[str, Any], build_incident: Build
) -> None:
    """Names, numbers and order that carry no meaning leave the conclusion as it is."""
    incident = build_incident(case)
    assert conclusion(judge(built_in(), change(incident))) == conclusion(
        judge(built_in(), incident)
    )


@quickly
@given(case=cases(), data=st.data())
def test_ranks_are_only_numbers(
    case: Mapping[str, Any], data: st.DataObject, build_incident: Build
) -> None:
    """Ranks that trade their numbers trade their part in the verdict, nothing else."""
    order = data.draw(st.permutations(range(case["ranks"])))
    incident = build_incident(case)
    moved = replace(
        each_process(
            incident,
            lambda line: replace(line, rank=None if line.rank is None else order[line.rank]),
        ),
        nodes=tuple(
            replace(node, unread=RankSet(order[rank] for rank in node.unread))
            for node in incident.nodes
        ),
    )
    before, after = judge(built_in(), incident), judge(built_in(), moved)
    assert conclusion(after)[:-1] == conclusion(before)[:-1]
    assert after.suspects.ranks == RankSet(order[rank] for rank in before.suspects.ranks)


@quickly
@given(case=cases())
def test_nobody_is_named_without_evidence(case: Mapping[str, Any], build_incident: Build) -> None:
    """An unread rank is named only where something else than its stack speaks against it."""
    verdict = judge(built_in(), build_incident(case))
    trainers = case["trainers"]
    for rank in verdict.suspects.ranks:
        assert trainers.get(rank, trainers["*"]) not in WITHOUT_EVIDENCE


@quickly
@given(case=cases())
def test_a_waiting_rank_is_not_outside(case: Mapping[str, Any], build_incident: Build) -> None:
    """A local hang names no rank that waits for the others, and never most of the job."""
    verdict = judge(built_in(), build_incident(case))
    if verdict.verdict != "local_hang":
        return
    trainers = case["trainers"]
    for rank in verdict.suspects.ranks:
        assert trainers.get(rank, trainers["*"]) not in WAITING
    assert case["ranks"] == 1 or 2 * len(verdict.suspects.ranks) <= case["ranks"]


@quickly
@given(case=cases(), data=st.data())
def test_less_evidence_accuses_nobody_else(
    case: Mapping[str, Any], data: st.DataObject, build_incident: Build
) -> None:
    """Hiding one dump never adds a suspect, and never makes the same verdict surer."""
    incident = build_incident(case)
    before = judge(built_in(), incident)
    named = before.suspects.ranks or incident.nodes[0].ranks
    hidden = data.draw(st.sampled_from(tuple(named)))
    after = judge(built_in(), hide_dump(incident, hidden))
    assert not after.suspects.ranks - before.suspects.ranks
    if after.verdict == before.verdict:
        assert CONFIDENCES.index(after.confidence) >= CONFIDENCES.index(before.confidence)
