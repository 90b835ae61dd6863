"""What a node and its GPUs looked like at the moment of a sample. None means unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU. ``local_rank`` is that of the trainer which is bound to it, as far as known.

    ``fault`` is what the driver said in the place of a value (``GPU is lost``).
    """

    index: int | None = None
    uuid: str | None = None
    pci: str | None = None
    local_rank: int | None = None
    name: str | None = None
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureFacts:
    """Share of time (percent) in which some, or all, tasks waited for a resource (PSI)."""

    some_avg10: float | None = None
    some_avg60: float | None = None
    full_avg10: float | None = None
    full_avg60: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """Counters of a block device since boot; ``in_flight`` is now."""

    name: str
    reads: int | None = None
    read_bytes: int | None = None
    writes: int | None = None
    write_bytes: int | None = None
    in_flight: int | None = None
    busy_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountFacts:
    """A mounted file system that holds files of users; ``type`` such as ``nfs4`` or ``lustre``."""

    path: str
    type: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShmFacts:
    """``/dev/shm``, through which dataloader workers and NCCL pass their data."""

    total_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """Main memory; dirty pages wait to be written, writeback ones are being written."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    dirty_bytes: int | None = None
    writeback_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandFacts:
    """A port of an InfiniBand or RoCE adapter, with the kernel's counters since it came up."""

    device: str
    port: int
    state: str | None = None
    physical_state: str | None = None
    rate: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpFacts:
    """Segments a process sent to a peer (``address:port``) again and again, without an answer."""

    pid: int
    peer: str
    retransmits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A line of the kernel's log; ``at`` is ISO 8601."""

    line: str
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """``<node>.facts.json``. What could not be read is None; ``unread`` may say why.

    ``tcp`` lists only what was sent again; ``addresses`` are the node's own at which the job's
    sockets are bound, so that a peer can be told to be this node.
    """

    node: str = ""
    at: str | None = None
    gpus: tuple[GpuFacts, ...] | None = None
    pressure: Mapping[str, PressureFacts] | None = None
    disks: tuple[DiskFacts, ...] | None = None
    mounts: tuple[MountFacts, ...] | None = None
    shm: ShmFacts | None = None
    memory: MemoryFacts | None = None
    infiniband: tuple[InfinibandFacts, ...] | None = None
    tcp: tuple[TcpFacts, ...] | None = None
    addresses: tuple[str, ...] | None = None
    kernel: tuple[KernelLine, ...] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
