"""What the nodes at fault told of themselves, in a line each: memory, pressure, GPUs, links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from whyhang.renderers.clean import one_line
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts, InfinibandFacts, NodeFacts
from whyhang.schemas.process import Process

SHOWN_NODES = 3
_SHOWN_LINES = 8
# Counters of traffic grow in health; all the others count errors.
_TRAFFIC = frozenset(("port_rcv_data", "port_xmit_data", "port_xmit_wait"))
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def machine_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Of the suspects' nodes all that is worth a look; without suspects what failed anywhere."""
    last = diagnosis.incident.last
    if last is None:
        return
    suspects = diagnosis.verdict.suspects
    for node in suspects.nodes[:SHOWN_NODES] or tuple(last.facts):
        told = last.facts.get(node)
        if isinstance(told, NodeFacts):
            lines = list(_lines(diagnosis, node, told, whole=bool(suspects.nodes)))
            yield from (f"{one_line(node)}: {line}" for line in lines[:_SHOWN_LINES])


def _lines(diagnosis: Diagnosis, node: str, told: NodeFacts, *, whole: bool) -> Iterator[str]:
    if whole:
        yield from filter(None, (", ".join(_rooms(told)),))
    ranks = diagnosis.verdict.suspects.ranks
    owners = _owners(diagnosis, node)
    for gpu in told.gpus or ():
        mine = owners.get(gpu.index) if gpu.index is not None else None
        if gpu.fault or (mine is not None and mine in ranks):
            yield _gpu(gpu, mine)
    before = _ports_before(diagnosis, node)
    for port in told.infiniband or ():
        yield from _port(port, before.get((port.device, port.port)))
    for entry in told.tcp or ():
        yield f"pid {entry.pid} sent to {one_line(entry.peer)} {entry.retransmits} times in vain"


def _rooms(told: NodeFacts) -> Iterator[str]:
    """Memory, shared memory and pressure."""
    if told.memory and told.memory.available_bytes is not None and told.memory.total_bytes:
        yield f"{_of(told.memory.available_bytes, told.memory.total_bytes)} of memory available"
    if told.shm and told.shm.free_bytes is not None and told.shm.total_bytes:
        yield f"{_of(told.shm.free_bytes, told.shm.total_bytes)} of /dev/shm free"
    for resource, facts in sorted((told.pressure or {}).items()):
        share = facts.some_avg10 if resource == "cpu" else facts.full_avg10
        if share is not None:
            yield f"{resource} pressure {share:.0f} %"


def _gpu(gpu: GpuFacts, rank: int | None) -> str:
    name = f"GPU {gpu.index}" if gpu.index is not None else f"GPU {one_line(gpu.pci or '')}"
    parts = [] if gpu.fault is None else [one_line(gpu.fault)]
    if gpu.utilization_percent is not None:
        parts.append(f"busy {gpu.utilization_percent:.0f} %")
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        parts.append(f"{_of(gpu.memory_used_bytes, gpu.memory_total_bytes)} used")
    if gpu.power_watts is not None:
        parts.append(f"{gpu.power_watts:.0f} W")
    if gpu.temperature_celsius is not None:
        parts.append(f"{gpu.temperature_celsius:.0f} °C")
    whose = "" if rank is None else f" of rank {rank}"
    return f"{name}{whose}: {', '.join(parts) or 'nothing told'}"


def _port(now: InfinibandFacts, before: InfinibandFacts | None) -> Iterator[str]:
    """A port whose errors grew between two samples; totals since it came up say little."""
    earlier = {} if before is None else before.counters
    grown = {name: n - earlier[name] for name, n in now.counters.items() if name in earlier}
    told = [
        f"{one_line(name)} +{count}"
        for name, count in grown.items()
        if count > 0 and name not in _TRAFFIC
    ]
    if told:
        state = f" {one_line(now.state)}" if now.state else ""
        yield f"{one_line(now.device)}/{now.port}{state}: {', '.join(told)}"


def _ports_before(diagnosis: Diagnosis, node: str) -> Mapping[tuple[str, int], InfinibandFacts]:
    samples = diagnosis.incident.samples
    told = samples[0].facts.get(node) if len(samples) > 1 else None
    if told is None or isinstance(told, Missing):
        return {}
    return {(port.device, port.port): port for port in told.infiniband or ()}


def _owners(diagnosis: Diagnosis, node: str) -> Mapping[int, int]:
    """The rank of each GPU of a node."""
    last = diagnosis.incident.last
    trainers: list[Process] = [
        process
        for process in (last.processes if last else ())
        if process.node == node and process.kind == "trainer"
    ]
    return {p.gpu_index: p.rank for p in trainers if p.gpu_index is not None and p.rank is not None}


def _of(part: int, whole: int) -> str:
    """``1.2 of 64 GiB``: both in the unit of the whole."""
    power = min((max(whole, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    scale = 1 << (10 * power)
    return f"{_short(part / scale)} of {_short(whole / scale)} {_UNITS[power]}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 100 else f"{number:.0f}"
