"""The node facts of a rule test's world, as a collection would have read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from whyhang.rules.test_cases import GpuWords, ProcessFacts, Stage
from whyhang.rules.test_cases import NodeFacts as NodeWords
from whyhang.schemas.incident import Node
from whyhang.schemas.node_facts import (
    GpuFacts,
    MemoryFacts,
    NodeFacts,
    PressureFacts,
    ShmFacts,
    TcpFacts,
)

PIDS_OF_A_RANK = 100
WHOLE = 1_000_000
PORT = 30_000


def node_facts(
    nodes: tuple[Node, ...], stage: Stage, heard: Mapping[str, NodeWords], per_node: int
) -> Mapping[str, NodeFacts]:
    """What the nodes that answered told; a node of which the test says nothing told nothing."""
    numbers = {node.name: number for number, node in enumerate(nodes)}
    found = {}
    for node in nodes:
        if node.status in ("missing", "not_collected"):
            continue
        words = heard.get(node.name, NodeWords())
        ranks = list(_ranks(node, stage))
        facts = NodeFacts(
            node=node.name,
            gpus=_gpus(ranks, per_node),
            tcp=_tcp(ranks, numbers),
            addresses=(_address(numbers[node.name]),) if _says_tcp(stage) else None,
            memory=_memory(words.memory_free),
            shm=_shm(words.shm_free),
            pressure=_pressure(words),
        )
        if facts != NodeFacts(node=node.name):
            found[node.name] = facts
    return found


def _ranks(node: Node, stage: Stage) -> Iterator[tuple[int, ProcessFacts]]:
    for one in stage.classes:
        for rank in one.ranks & node.ranks:
            yield rank, one.facts


def _says_tcp(stage: Stage) -> bool:
    return any(one.facts.retransmits is not None for one in stage.classes)


def _gpus(ranks: list[tuple[int, ProcessFacts]], per_node: int) -> tuple[GpuFacts, ...] | None:
    gpus = [_gpu(facts.gpu, rank % per_node) for rank, facts in ranks if facts.gpu is not None]
    return tuple(gpus) or None


def _gpu(words: GpuWords, number: int) -> GpuFacts:
    return GpuFacts(
        index=number,
        local_rank=number,
        utilization_percent=None if words.utilization is None else words.utilization * 100,
        memory_used_bytes=None if words.memory is None else round(words.memory * WHOLE),
        memory_total_bytes=WHOLE,
        power_watts=words.power,
        fault="GPU is lost" if words.failed else None,
    )


def _tcp(
    ranks: list[tuple[int, ProcessFacts]], numbers: Mapping[str, int]
) -> tuple[TcpFacts, ...] | None:
    told = [(rank, facts.retransmits) for rank, facts in ranks if facts.retransmits is not None]
    if not told:
        return None
    return tuple(
        TcpFacts(
            pid=(rank + 1) * PIDS_OF_A_RANK,
            # A peer that is no node of this world is somebody outside the job.
            peer=f"{_address(numbers.get(node, len(numbers)))}:{PORT}",
            retransmits=count,
        )
        for rank, peers in told
        for node, count in peers.items()
    )


def _address(number: int) -> str:
    return f"10.0.{number >> 8}.{number & 255}"


def _memory(free: float | None) -> MemoryFacts | None:
    if free is None:
        return None
    return MemoryFacts(total_bytes=WHOLE, available_bytes=round(free * WHOLE))


def _shm(free: float | None) -> ShmFacts | None:
    if free is None:
        return None
    return ShmFacts(total_bytes=WHOLE, free_bytes=round(free * WHOLE))


def _pressure(words: NodeWords) -> Mapping[str, PressureFacts] | None:
    found = {}
    if words.io_pressure is not None:
        found["io"] = PressureFacts(full_avg10=words.io_pressure * 100)
    if words.cpu_pressure is not None:
        found["cpu"] = PressureFacts(some_avg10=words.cpu_pressure * 100)
    return found or None
