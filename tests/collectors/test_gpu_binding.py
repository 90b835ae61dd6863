"""Which process uses which of the GPUs that the driver tells of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whyhang.collectors.gpu_binding import bind_gpus, find_gpu
from whyhang.collectors.visible_devices import Device
from whyhang.schemas.node_facts import GpuFacts
from whyhang.schemas.process import Process

GPUS = (
    GpuFacts(index=0, uuid="GPU-1111-22", name="H100"),
    GpuFacts(index=1, uuid="GPU-aaaa-22", name="H100"),
)


def trainer(local_rank: int, **device: object) -> Process:
    """A trainer whose environment named a device, or none."""
    shown = Process(pid=100 + local_rank, node="a", kind="trainer", local_rank=local_rank)
    return replace(shown, **device)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "index"),
    [
        (Device(index=1), 1),
        (Device(index=7), None),
        (Device(uuid="GPU-aaaa"), 1),
        (Device(uuid="GPU-"), None),
        (Device(uuid="MIG-GPU-1111-22/3/0"), 0),
        (Device(uuid="MIG-5555"), None),
    ],
)
def test_a_device_is_found_by_number_or_uuid(device: Device, index: int | None) -> None:
    """A UUID may be cut as long as it is one GPU's; a slice of the older form names its GPU."""
    found = find_gpu(GPUS, device)
    assert (None if found is None else found.index) == index


def test_unequal_gpus_are_not_told_by_number() -> None:
    """CUDA counts the fastest first and the driver by address: only a UUID tells them apart."""
    mixed = (GPUS[0], replace(GPUS[1], name="A2"))
    assert find_gpu(mixed, Device(index=1)) is None
    assert find_gpu(mixed, Device(uuid="GPU-aaaa-22")) is mixed[1]


def test_processes_get_their_gpus_and_gpus_their_ranks() -> None:
    """What the environment named is completed; a list that shows nothing binds nothing."""
    named, cut = trainer(0, gpu_index=1), trainer(1, gpu_uuid="GPU-1111")
    hidden = trainer(2)
    gpus, processes = bind_gpus(GPUS, (named, cut, hidden), unlisted=())
    assert [(p.gpu_index, p.gpu_uuid) for p in processes] == [
        (1, "GPU-aaaa-22"), (0, "GPU-1111-22"), (None, None),
    ]  # fmt: skip
    assert [gpu.local_rank for gpu in gpus] == [1, 0]


def test_without_a_list_the_local_rank_counts() -> None:
    """That is what PyTorch programs do; a rank beyond the GPUs has none that we know."""
    first, beyond = trainer(0), trainer(5)
    _, processes = bind_gpus(GPUS, (first, beyond), unlisted=(first.pid, beyond.pid))
    assert [p.gpu_index for p in processes] == [0, None]


def test_a_slice_keeps_its_own_name() -> None:
    """Two ranks on slices of one GPU are not the same device."""
    slice_name = "MIG-GPU-1111-22/3/0"
    _, (process,) = bind_gpus(GPUS, (trainer(0, gpu_uuid=slice_name),), unlisted=())
    assert (process.gpu_index, process.gpu_uuid) == (0, slice_name)
