"""What rules may ask of GPUs and nodes: a value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from whyhang.engine.facets import facets_of
from whyhang.engine.facts import Facts
from whyhang.engine.machine_fields import MACHINE_FIELDS
from whyhang.engine.positions import Positions
from whyhang.engine.world import ScopeName, World
from whyhang.rules.fields import FIELDS
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import (
    GpuFacts,
    MemoryFacts,
    NodeFacts,
    PressureFacts,
    ShmFacts,
    TcpFacts,
)
from whyhang.schemas.rankset import RankSet

Build = Callable[[Mapping[str, Any]], Incident]
PACK = load_ruleset()
GPUS = (
    GpuFacts(index=0, uuid="GPU-a", utilization_percent=100.0, power_watts=400.0),
    GpuFacts(index=1, uuid="GPU-b", local_rank=1, fault="GPU is lost"),
    GpuFacts(index=2, uuid="GPU-c", memory_used_bytes=30, memory_total_bytes=40),
)
TOLD = NodeFacts(
    node="node0",
    gpus=GPUS,
    memory=MemoryFacts(total_bytes=100, available_bytes=25),
    shm=ShmFacts(total_bytes=0, free_bytes=0),
    pressure={"io": PressureFacts(some_avg10=90.0, full_avg10=80.0), "cpu": PressureFacts()},
    tcp=(TcpFacts(pid=1002, peer="10.0.0.9:1", retransmits=5),),
    addresses=("10.0.0.1",),
)


def facts_of(build: Build, told: NodeFacts | Missing) -> Facts:
    """Four ranks of one node: GPUs by number, by UUID and by local rank, and none."""
    made = build({"trainers": {"*": "backward"}})
    bound: dict[int, dict[str, Any]] = {
        0: {"gpu_index": 0}, 1: {"local_rank": 1}, 2: {"gpu_index": 7, "gpu_uuid": "GPU-c"}, 3: {},
    }  # fmt: skip
    samples = tuple(
        replace(
            sample,
            processes=tuple(replace(p, **bound[p.rank or 0]) for p in sample.processes),
            facts={"node0": told},
        )
        for sample in made.samples
    )
    return Facts(World(replace(made, samples=samples)), Positions(PACK.lists))


@pytest.mark.parametrize(
    ("field", "rank", "value"),
    [
        ("gpu.utilization", 0, 1.0),
        ("gpu.power", 0, 400.0),
        ("gpu.failed", 0, False),
        ("gpu.failed", 1, True),
        ("gpu.utilization", 1, Missing("the driver does not tell")),
        ("gpu.memory", 2, 0.75),
        ("gpu.failed", 3, Missing("its GPU is not known")),
        ("node.memory_free", 0, 0.25),
        ("node.shm_free", 0, Missing("shm was not read")),
        ("node.io_pressure", 0, 0.8),
        ("node.cpu_pressure", 0, Missing("pressure was not read")),
        ("tcp.retransmits", 0, 0),
    ],
)
def test_values_and_reasons(field: str, rank: int, value: object, build_incident: Build) -> None:
    """Shares are fractions of one, and what is not told is never a zero."""
    facts = facts_of(build_incident, TOLD)
    assert facts.get(field, facts.world.ranks.subjects[rank], 1) == value


def test_a_peer_of_nobody_is_unknown(build_incident: Build) -> None:
    """A rank that sends again to an address outside the job is no witness of a link."""
    facts = facts_of(build_incident, TOLD)
    found = facts.get("tcp.retransmits", facts.world.ranks.subjects[2], 1)
    assert isinstance(found, Missing) and "address" in found.reason


@pytest.mark.parametrize("told", [NodeFacts(unread={"gpus": "no answer"}), Missing("torn file")])
def test_the_reason_is_the_node_s_own(told: NodeFacts | Missing, build_incident: Build) -> None:
    """What the collector said, or what is wrong with its file, is what the report says."""
    facts = facts_of(build_incident, told)
    reason = "torn file" if isinstance(told, Missing) else "no answer"
    assert facts.get("gpu.failed", facts.world.ranks.subjects[0], 1) == Missing(reason)


@pytest.mark.parametrize("scope", ["rank", "node"])
@pytest.mark.parametrize("told", [TOLD, Missing("torn file"), NodeFacts()])
def test_a_class_shares_its_facts(
    told: NodeFacts | Missing, scope: ScopeName, build_incident: Build
) -> None:
    """Whoever is in one class by a field's facets has the same value of it."""
    facts = facts_of(build_incident, told)
    subjects = facts.world.table(scope).subjects
    for name in MACHINE_FIELDS:
        if scope not in FIELDS[name].scopes:
            continue
        partition = facts.classes.of(scope, facets_of(name), 1)
        for number in range(len(partition)):
            members = RankSet.from_bits(partition.bitmap(number))
            assert len({facts.get(name, subjects[bit], 1) for bit in members}) == 1, name
