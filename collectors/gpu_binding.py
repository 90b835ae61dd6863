"""Which GPU each process uses: what its environment says, matched with what the driver tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from whyhang.collectors.visible_devices import NO_DEVICE, Device
from whyhang.schemas.node_facts import GpuFacts
from whyhang.schemas.process import Process

# `MIG-GPU-<uuid>/<instance>/<instance>`: the older form of a slice names its GPU.
_OLD_SLICE = "MIG-GPU-"


def find_gpu(gpus: tuple[GpuFacts, ...], device: Device) -> GpuFacts | None:
    """The GPU that a device names; None where none or several could be meant."""
    matches = [gpu for gpu in gpus if _is_named(gpu, device)]
    if len(matches) != 1:
        return None
    if device.uuid is None and len({gpu.name for gpu in gpus if gpu.name is not None}) > 1:
        # CUDA counts the fastest first, the driver by address: the same only among equals.
        return None
    return matches[0]


def bind_gpus(
    gpus: tuple[GpuFacts, ...], processes: Iterable[Process], unlisted: Iterable[int]
) -> tuple[tuple[GpuFacts, ...], tuple[Process, ...]]:
    """The GPUs with the local ranks of their trainers, and the processes with their GPUs.

    ``unlisted`` are the processes whose environment shows them every GPU: PyTorch programs take
    that of their local rank then.
    """
    free = frozenset(unlisted)
    found = [(process, _gpu_of(gpus, process, process.pid in free)) for process in processes]
    owners: dict[int, int] = {}
    for process, gpu in found:
        if gpu is not None and process.kind == "trainer" and process.local_rank is not None:
            owners.setdefault(gpus.index(gpu), process.local_rank)
    return _with_owners(gpus, owners), tuple(_with_gpu(process, gpu) for process, gpu in found)


def _gpu_of(gpus: tuple[GpuFacts, ...], process: Process, sees_all: bool) -> GpuFacts | None:
    device = Device(index=process.gpu_index, uuid=process.gpu_uuid)
    if device == NO_DEVICE and sees_all:
        device = Device(index=process.local_rank)
    return None if device == NO_DEVICE else find_gpu(gpus, device)


def _is_named(gpu: GpuFacts, device: Device) -> bool:
    if device.uuid is None:
        return gpu.index is not None and gpu.index == device.index
    name = device.uuid.removeprefix("MIG-") if device.uuid.startswith(_OLD_SLICE) else device.uuid
    return gpu.uuid is not None and gpu.uuid.startswith(name.partition("/")[0])


def _with_owners(gpus: tuple[GpuFacts, ...], owners: Mapping[int, int]) -> tuple[GpuFacts, ...]:
    return tuple(
        replace(gpu, local_rank=owners.get(number, gpu.local_rank))
        for number, gpu in enumerate(gpus)
    )


def _with_gpu(process: Process, gpu: GpuFacts | None) -> Process:
    """A slice keeps its own UUID, which tells more than that of its GPU."""
    if gpu is None:
        return process
    is_slice = (process.gpu_uuid or "").startswith("MIG-")
    return replace(
        process, gpu_index=gpu.index, gpu_uuid=process.gpu_uuid if is_slice else gpu.uuid
    )
