"""What the fields of GPUs, nodes and their network mean: field name -> reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from whyhang.engine.machines import Machines
from whyhang.engine.world import Subject, World
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts, NodeFacts, PressureFacts

Value: TypeAlias = bool | int | float | Missing
MachineReader: TypeAlias = Callable[[World, Subject, int], Value]
MachineFacet: TypeAlias = Callable[[World, Subject, int], tuple[Value, ...]]


def _gpu(read: Callable[[GpuFacts], bool | float | None]) -> MachineReader:
    def get(world: World, subject: Subject, sample: int) -> Value:
        process = subject.track[sample] if subject.track else None
        if process is None:
            return Missing("its process was not seen")
        gpu = world.machines.gpu(process, sample)
        if isinstance(gpu, Missing):
            return gpu
        value = read(gpu)
        return Missing("the driver does not tell") if value is None else value

    return get


def _node(part: str, read: Callable[[NodeFacts], float | None]) -> MachineReader:
    def get(world: World, subject: Subject, sample: int) -> Value:
        node = None if subject.node is None else subject.node.name
        return world.machines.ask(node, sample, part, read)

    return get


def _room(read: Callable[[Machines, str | None, int], float | Missing]) -> MachineReader:
    def get(world: World, subject: Subject, sample: int) -> Value:
        node = None if subject.node is None else subject.node.name
        return read(world.machines, node, sample)

    return get


def _pressure(resource: str, read: Callable[[PressureFacts], float | None]) -> MachineReader:
    def share(told: NodeFacts) -> float | None:
        facts = (told.pressure or {}).get(resource)
        percent = None if facts is None else read(facts)
        return None if percent is None else percent / 100

    return _node("pressure", share)


def _retransmits(world: World, subject: Subject, sample: int) -> Value:
    """Of a rank those of its own processes."""
    node = None if subject.node is None else subject.node.name
    if subject.rank is None:
        return world.machines.links.retransmits(node, sample)
    pids = world.pids_of(subject.rank, sample)
    return world.machines.links.retransmits(node, sample, pids)


def _cut_off(world: World, subject: Subject, sample: int) -> Value:
    node = None if subject.node is None else subject.node.name
    return world.machines.links.cut_off(node, sample)


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


MACHINE_FIELDS: dict[str, MachineReader] = {
    "gpu.utilization": _gpu(lambda gpu: _share(gpu.utilization_percent, 100)),
    "gpu.memory": _gpu(lambda gpu: _share(gpu.memory_used_bytes, gpu.memory_total_bytes)),
    "gpu.power": _gpu(lambda gpu: gpu.power_watts),
    "gpu.failed": _gpu(lambda gpu: gpu.fault is not None),
    "tcp.retransmits": _retransmits,
    "tcp.cut_off": _cut_off,
    "node.memory_free": _room(Machines.memory_free),
    "node.shm_free": _room(Machines.shm_free),
    "node.io_pressure": _pressure("io", lambda facts: facts.full_avg10),
    "node.cpu_pressure": _pressure("cpu", lambda facts: facts.some_avg10),
}


def machine_facet(family: str) -> MachineFacet:
    """What the fields of a family (``gpu``, ``tcp``, ``node``) tell subjects apart by."""
    readers = [read for name, read in MACHINE_FIELDS.items() if name.startswith(f"{family}.")]

    def read_all(world: World, subject: Subject, sample: int) -> tuple[Value, ...]:
        # Where nobody told anything one reason is as good as all.
        asked = readers[:1] if world.machines.is_silent else readers
        return tuple(read(world, subject, sample) for read in asked)

    return read_all
