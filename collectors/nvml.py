"""The process that asks NVIDIA's own library of the GPUs, where the extra ``nvml`` is installed.

It prints one JSON object a line, a GPU each, as soon as it knows it: a sick GPU holds this process
and nobody else, and costs only the GPUs after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from whyhang.schemas.node_facts import GpuFacts

LIBRARY = "pynvml"
# nvmlReturn_t: the device itself failed. Others only say that a value is not to be had.
_FAULTS = {15: "GPU is lost", 16: "GPU requires reset", 999: "Unknown Error"}


def is_installed() -> bool:
    """Whether the library's bindings are there; whether a driver is, only a call can tell."""
    return find_spec(LIBRARY) is not None


def main(arguments: Sequence[str]) -> int:
    """Print the GPUs; exit status 1, with the reason on stderr, where the driver tells nothing."""
    library = import_module(LIBRARY)
    try:
        for gpu in read_devices(library):
            sys.stdout.write(json.dumps(asdict(gpu)) + "\n")
            sys.stdout.flush()
    except library.NVMLError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def read_devices(library: Any) -> Iterator[GpuFacts]:
    """The GPUs that the library tells of. Raises its NVMLError where it tells of none."""
    library.nvmlInit()
    for index in range(library.nvmlDeviceGetCount()):
        yield _Reading(library, index).facts()


class _Reading:
    """What one GPU answers; the first fault that it reports is kept."""

    def __init__(self, library: Any, index: int) -> None:
        self.library = library
        self.index = index
        self.fault: str | None = None

    def facts(self) -> GpuFacts:
        library = self.library
        handle = self.ask(library.nvmlDeviceGetHandleByIndex, self.index)
        if handle is None:
            return GpuFacts(index=self.index, fault=self.fault)
        pci = self.ask(library.nvmlDeviceGetPciInfo, handle)
        use = self.ask(library.nvmlDeviceGetUtilizationRates, handle)
        memory = self.ask(library.nvmlDeviceGetMemoryInfo, handle)
        milliwatts = self.ask(library.nvmlDeviceGetPowerUsage, handle)
        heat = self.ask(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU)
        return GpuFacts(
            index=self.index,
            uuid=_text(self.ask(library.nvmlDeviceGetUUID, handle)),
            pci=None if pci is None else _text(pci.busId),
            name=_text(self.ask(library.nvmlDeviceGetName, handle)),
            utilization_percent=None if use is None else float(use.gpu),
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            power_watts=None if milliwatts is None else milliwatts / 1000,
            temperature_celsius=None if heat is None else float(heat),
            fault=self.fault,
        )

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of one call; None where the GPU does not tell."""
        try:
            return call(*arguments)
        except self.library.NVMLError as error:
            self.fault = self.fault or _FAULTS.get(error.value)
            return None


def _text(value: Any) -> str | None:
    """Older bindings answer in bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
