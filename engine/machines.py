"""What nodes told of themselves and of their GPUs; Missing where they told nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from whyhang.engine.links import Links
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts, NodeFacts
from whyhang.schemas.process import Process

T = TypeVar("T")

NOTHING_TOLD = Missing("its node told nothing of itself")
NO_GPU_TOLD = Missing("its GPU is not known")


@dataclass(frozen=True)
class Machines:
    """The node facts of one incident."""

    incident: Incident

    @cached_property
    def links(self) -> Links:
        """The connections between nodes."""
        return Links(self.incident)

    @property
    def is_silent(self) -> bool:
        """Whether no node told anything, so that nobody is told apart by it."""
        return not any(sample.facts for sample in self.incident.samples)

    def told(self, node: str | None, sample: int) -> NodeFacts | Missing:
        """All that a node told."""
        if node is None or not 0 <= sample < len(self.incident.samples):
            return NOTHING_TOLD
        return self.incident.samples[sample].facts.get(node, NOTHING_TOLD)

    def ask(
        self, node: str | None, sample: int, part: str, read: Callable[[NodeFacts], T | None]
    ) -> T | Missing:
        """One thing that a node told; the reason why it is unread goes by its part."""
        told = self.told(node, sample)
        if isinstance(told, Missing):
            return told
        value = read(told)
        return Missing(told.unread.get(part, f"{part} was not read")) if value is None else value

    def memory_free(self, node: str | None, sample: int) -> float | Missing:
        """The share of main memory that is available."""

        def read(told: NodeFacts) -> float | None:
            memory = told.memory
            return None if memory is None else _share(memory.available_bytes, memory.total_bytes)

        return self.ask(node, sample, "memory", read)

    def shm_free(self, node: str | None, sample: int) -> float | Missing:
        """The share of ``/dev/shm`` that is free."""

        def read(told: NodeFacts) -> float | None:
            return None if told.shm is None else _share(told.shm.free_bytes, told.shm.total_bytes)

        return self.ask(node, sample, "shm", read)

    def gpu(self, process: Process, sample: int) -> GpuFacts | Missing:
        """The GPU that a process is bound to, else that of its local rank."""
        gpus = self.ask(process.node, sample, "gpus", lambda told: told.gpus)
        if isinstance(gpus, Missing):
            return gpus
        return next((gpu for gpu in gpus if _is_of(gpu, process)), NO_GPU_TOLD)


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _is_of(gpu: GpuFacts, process: Process) -> bool:
    if process.gpu_uuid is not None and gpu.uuid is not None:
        return gpu.uuid == process.gpu_uuid
    if process.gpu_index is not None and gpu.index is not None:
        return gpu.index == process.gpu_index
    return gpu.local_rank is not None and gpu.local_rank == process.local_rank
