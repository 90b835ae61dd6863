"""GPUs as nvidia-smi tells them; the texts follow its documented CSV form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors import nvml
from whyhang.collectors.bounded_child import ChildRun
from whyhang.collectors.gpu_facts import parse_csv, parse_run, read_gpus
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts

MIB = 1 << 20
HEALTHY = """\
0, GPU-11111111-2222-3333-4444-555555555555, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, 100, 71680, 81559, 402.15, 61
1, GPU-aaaaaaaa-2222-3333-4444-555555555555, 00000000:43:00.0, NVIDIA H100 80GB HBM3, 0, 71680, 81559, 118.02, 38
"""  # noqa: E501
LOST = """\
0, GPU-11111111-2222-3333-4444-555555555555, 00000000:1B:00.0, NVIDIA A100-SXM4-80GB, 99, 1024, 81920, 300.00, 55
1, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]
Unable to determine the device handle for GPU 0000:9B:00.0: GPU is lost.  Reboot the system to recover this GPU
"""  # noqa: E501
UNSUPPORTED = """\
0, GPU-11111111-2222-3333-4444-555555555555, 00000000:1B:00.0, NVIDIA H100L-2-24C, [N/A], [Not Supported], 24576, [Unknown Error], ERR!
"""  # noqa: E501


def test_numbers_have_their_units() -> None:
    """Memory comes in MiB, the PCI address as the kernel writes it."""
    first, second = parse_csv(HEALTHY)
    assert first == GpuFacts(
        index=0,
        uuid="GPU-11111111-2222-3333-4444-555555555555",
        pci="0000:1b:00.0",
        name="NVIDIA H100 80GB HBM3",
        utilization_percent=100.0,
        memory_used_bytes=71680 * MIB,
        memory_total_bytes=81559 * MIB,
        power_watts=402.15,
        temperature_celsius=61.0,
    )
    assert (second.index, second.utilization_percent) == (1, 0.0)


def test_what_a_gpu_does_not_tell_is_unknown() -> None:
    """None of nvidia-smi's words for it becomes a zero."""
    (gpu,) = parse_csv(UNSUPPORTED)
    assert (gpu.utilization_percent, gpu.memory_used_bytes) == (None, None)
    assert (gpu.power_watts, gpu.temperature_celsius) == (None, None)
    assert gpu.memory_total_bytes == 24576 * MIB


def test_a_lost_gpu_keeps_what_is_known() -> None:
    """The GPU that fell off the bus is listed by index or by address, the others whole."""
    gpus = parse_csv(LOST)
    assert [(gpu.index, gpu.pci) for gpu in gpus] == [
        (0, "0000:1b:00.0"), (1, None), (None, "0000:9b:00.0"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (ChildRun(status=None, limit_seconds=8.0), "no answer within 8 s"),
        (
            ChildRun(
                status=9,
                stdout="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
                "driver. Make sure that the latest NVIDIA driver is installed and running.\n",
            ),
            "couldn't communicate",
        ),
        (ChildRun(status=6, stdout="No devices were found\n"), "No devices were found"),
        (ChildRun(status=127, stderr="could not start nvidia-smi: gone"), "could not start"),
        (ChildRun(status=14), "exit status 14"),
        (ChildRun(status=0), "named no GPU"),
    ],
)
def test_why_there_are_no_gpus(run: ChildRun, reason: str) -> None:
    """A failure says what nvidia-smi said, or that it hangs."""
    found = parse_run(run)
    assert isinstance(found, Missing)
    assert found.reason.startswith("nvidia-smi: ") and reason in found.reason


def test_lines_of_a_failed_call_still_count() -> None:
    """With one GPU lost nvidia-smi ends with an error after it told of the others."""
    found = parse_run(ChildRun(status=15, stdout=LOST))
    assert not isinstance(found, Missing) and len(found) == 3


def test_a_host_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No nvidia-smi means unknown, not no GPU."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(nvml, "is_installed", lambda: False)
    assert read_gpus() == Missing("nvidia-smi: not found")


ADDRESS_ONLY = """\
0, GPU-11111111-2222-3333-4444-555555555555, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, 99, 1024, 81559, 300.00, 55
Unable to determine the device handle for GPU1: 0000:43:00.0: Unknown Error
2, GPU-cccccccc-2222-3333-4444-555555555555, 00000000:9B:00.0, NVIDIA H100 80GB HBM3, 99, 1024, 81559, 300.00, 55
"""  # noqa: E501
RESET = """\
0, GPU-11111111-2222-3333-4444-555555555555, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, [GPU requires reset], [GPU requires reset], 81559, [GPU requires reset], 55
"""  # noqa: E501


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (HEALTHY, [None, None]),
        (UNSUPPORTED.replace("[Unknown Error]", "[N/A]").replace("ERR!", "N/A"), [None]),
        (UNSUPPORTED, ["Unknown Error"]),
        (UNSUPPORTED.replace("[Unknown Error]", "[Insufficient Permissions]"), ["ERR!"]),
        (LOST, [None, "GPU is lost", "GPU is lost"]),
        (ADDRESS_ONLY, [None, "Unknown Error", None]),
        (RESET, ["GPU requires reset"]),
    ],
)
def test_a_fault_is_told_apart_from_a_missing_sensor(text: str, faults: list[str | None]) -> None:
    """Only the words for a GPU that failed are a fault, not those for what it cannot measure."""
    assert [gpu.fault for gpu in parse_csv(text)] == faults


def test_a_gpu_that_is_named_by_address_alone_keeps_its_number() -> None:
    """The number that no other GPU has is its own, as long as only one is in doubt."""
    assert [gpu.index for gpu in parse_csv(ADDRESS_ONLY)] == [0, 1, 2]
    two = ADDRESS_ONLY.replace("2, GPU", "3, GPU") + ADDRESS_ONLY.splitlines()[1]
    assert [gpu.index for gpu in parse_csv(two)] == [0, None, 3, None]


@given(st.text(max_size=400))
def test_any_text_may_come(text: str) -> None:
    """Foreign output never raises."""
    parse_csv(text)
