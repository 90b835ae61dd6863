"""GPUs through NVML: a stand-in for the bindings that has the real ones' names and errors."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whyhang.collectors import nvml
from whyhang.collectors.gpu_facts import read_gpus
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts

FAKE = """
import time
from types import SimpleNamespace

NVML_TEMPERATURE_GPU = 0


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value


def nvmlInit():
    {init}


def nvmlDeviceGetCount():
    return 3


def nvmlDeviceGetHandleByIndex(index):
    if index == 2:
        {third}
    return index


def nvmlDeviceGetUUID(handle):
    return f"GPU-{{handle}}".encode() if handle else "GPU-0"


def nvmlDeviceGetPciInfo(handle):
    return SimpleNamespace(busId=b"00000000:1B:00.0")


def nvmlDeviceGetName(handle):
    return "NVIDIA H100 80GB HBM3"


def nvmlDeviceGetUtilizationRates(handle):
    if handle == 1:
        raise NVMLError(3)
    return SimpleNamespace(gpu=100, memory=7)


def nvmlDeviceGetMemoryInfo(handle, version=None):
    return SimpleNamespace(total=1000, free=400, used=600)


def nvmlDeviceGetPowerUsage(handle):
    if handle == 1:
        raise NVMLError(999)
    return 402150


def nvmlDeviceGetTemperature(handle, sensor):
    assert sensor == NVML_TEMPERATURE_GPU
    return 61
"""
FIRST = GpuFacts(
    index=0,
    uuid="GPU-0",
    pci="0000:1b:00.0",
    name="NVIDIA H100 80GB HBM3",
    utilization_percent=100.0,
    memory_used_bytes=600,
    memory_total_bytes=1000,
    power_watts=402.15,
    temperature_celsius=61.0,
)
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts the stand-in where the real bindings would be, in front of everything else."""

    def put(*, init: str = "pass", third: str = "raise NVMLError(15)") -> None:
        (tmp_path / "pynvml.py").write_text(FAKE.format(init=init, third=third))
        monkeypatch.syspath_prepend(str(tmp_path))

    return put


@pytest.fixture(autouse=True)
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No nvidia-smi to fall back to."""
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.integration
def test_what_nvml_tells(install: Install) -> None:
    """Units are ours; a value that is not supported is unknown, a failed GPU has a fault."""
    install()
    found = read_gpus(20)
    assert not isinstance(found, Missing)
    first, second, third = found
    assert first == FIRST
    assert (second.uuid, second.utilization_percent, second.power_watts) == ("GPU-1", None, None)
    assert second.fault == "Unknown Error"
    assert third == GpuFacts(index=2, fault="GPU is lost")


@pytest.mark.integration
def test_a_gpu_that_does_not_answer_costs_only_itself(install: Install) -> None:
    """What was told before the driver hung is kept, and nobody waits longer than the limit."""
    install(third="time.sleep(600)")
    started = time.monotonic()
    found = read_gpus(6)
    assert time.monotonic() - started < 15
    assert not isinstance(found, Missing) and [gpu.index for gpu in found] == [0, 1]


@pytest.mark.integration
@pytest.mark.parametrize("init", ["raise NVMLError(9)", "raise ImportError('odd')"])
def test_without_a_driver_the_program_is_asked(init: str, install: Install) -> None:
    """Bindings alone are no driver: what nvidia-smi says counts then."""
    install(init=init)
    assert read_gpus(20) == Missing("nvidia-smi: not found")


def test_the_stand_in_has_the_names_of_the_real_bindings() -> None:
    """A name that NVIDIA's module does not have would be asked for in vain."""
    real = pytest.importorskip("pynvml", reason="needs the extra `nvml`")
    fake = types.ModuleType("fake")
    exec(FAKE.format(init="pass", third="pass"), fake.__dict__)
    names = {name for name in vars(fake) if name.lower().startswith("nvml")}
    assert names <= set(vars(real))
    assert fake.NVML_TEMPERATURE_GPU == real.NVML_TEMPERATURE_GPU
    codes = (real.NVML_ERROR_GPU_IS_LOST, real.NVML_ERROR_RESET_REQUIRED, real.NVML_ERROR_UNKNOWN)
    assert set(nvml._FAULTS) == set(codes)
    error: Any = real.NVMLError(real.NVML_ERROR_GPU_IS_LOST)
    assert error.value == 15
    assert "pynvml" in sys.modules
