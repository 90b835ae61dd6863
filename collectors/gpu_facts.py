"""The GPUs of this node, from NVML or ``nvidia-smi``; a lost one keeps what is known of it."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace

from whyhang.collectors import nvml
from whyhang.collectors.bounded_child import ChildRun, run_bounded
from whyhang.collectors.own_module import module_command
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts
from whyhang.schemas.node_facts_codec import facts_from_json

QUERY = (
    "index", "uuid", "pci.bus_id", "name", "utilization.gpu", "memory.used", "memory.total",
    "power.draw", "temperature.gpu",
)  # fmt: skip
LIMIT_SECONDS = 10.0
_MEBIBYTE = 1 << 20
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")
_LOST = re.compile(
    r"Unable to determine the device handle for (?:GPU ?)?(?:\d+: )?(?P<pci>[0-9A-Fa-f:.]{7,})"
    r"(?P<said>.*)",
    re.IGNORECASE,
)
# What stands in the place of a value when the GPU has failed, not when it has no such sensor.
_FAULT = re.compile(r"GPU is lost|GPU requires reset|Unknown Error|ERR!", re.IGNORECASE)
_NVML = "whyhang.collectors.nvml"


def read_gpus(limit_seconds: float = LIMIT_SECONDS) -> tuple[GpuFacts, ...] | Missing:
    """Ask NVML where its bindings are installed, else ``nvidia-smi``.

    A sick driver can hold either for ever: each is a process of its own and gets half the time.
    """
    if nvml.is_installed():
        gpus = parse_lines(run_bounded(module_command(_NVML), limit_seconds / 2).stdout)
        if gpus:
            return gpus
        limit_seconds /= 2
    binary = shutil.which("nvidia-smi")
    if binary is None:
        return Missing("nvidia-smi: not found")
    command = [binary, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    return parse_run(run_bounded(command, limit_seconds))


def parse_lines(text: str) -> tuple[GpuFacts, ...]:
    """The GPUs of the NVML process, one JSON object a line; a torn line is left out."""
    gpus: tuple[GpuFacts, ...] = ()
    for line in text.splitlines():
        try:
            gpus += facts_from_json({"gpus": [json.loads(line)]}).gpus or ()
        except ValueError:
            continue
    return tuple(gpu if gpu.pci is None else replace(gpu, pci=_pci(gpu.pci)) for gpu in gpus)


def parse_run(run: ChildRun) -> tuple[GpuFacts, ...] | Missing:
    """What one call of ``nvidia-smi`` tells; a failed one still counts for the lines it gave."""
    gpus = parse_csv(run.stdout)
    if gpus:
        return gpus
    if run.status is None:
        return Missing(f"nvidia-smi: no answer within {run.limit_seconds:g} s: a sick driver?")
    said = " ".join((run.stderr or run.stdout).split())[:200]
    if run.status == 0 and not said:
        return Missing("nvidia-smi: it named no GPU")
    return Missing(f"nvidia-smi: {said or f'exit status {run.status}'}")


def parse_csv(text: str) -> tuple[GpuFacts, ...]:
    """The lines of ``--format=csv,noheader,nounits``; other lines name lost GPUs or nothing."""
    gpus = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        cells = [cell.strip() for cell in row]
        if len(cells) != len(QUERY):
            lost = _LOST.search(",".join(row))
            if lost is not None:
                fault = _FAULT.search(lost["said"])
                said = fault[0] if fault else "no device handle"
                gpus.append(GpuFacts(pci=_pci(lost["pci"].strip(":.")), fault=said))
            continue
        gpu = _gpu(dict(zip(QUERY, cells, strict=True)))
        if gpu.index is not None or gpu.uuid is not None or gpu.pci is not None:
            gpus.append(gpu)
    return _numbered(tuple(gpus))


def _numbered(gpus: tuple[GpuFacts, ...]) -> tuple[GpuFacts, ...]:
    """A lost GPU that is named by its address alone keeps its number: the one that is absent."""
    absent = set(range(len(gpus))) - {gpu.index for gpu in gpus}
    unnumbered = [gpu for gpu in gpus if gpu.index is None]
    # A second fault may be the same GPU, told of once more by its number.
    if len(unnumbered) != 1 or len(absent) != 1 or sum(gpu.fault is not None for gpu in gpus) != 1:
        return gpus
    (index,) = absent
    return tuple(replace(gpu, index=index) if gpu.index is None else gpu for gpu in gpus)


def _gpu(cells: Mapping[str, str]) -> GpuFacts:
    index = _number(cells["index"])
    return GpuFacts(
        index=None if index is None else int(index),
        uuid=_text(cells["uuid"]),
        pci=None if _text(cells["pci.bus_id"]) is None else _pci(cells["pci.bus_id"]),
        name=_text(cells["name"]),
        utilization_percent=_number(cells["utilization.gpu"]),
        memory_used_bytes=_bytes(cells["memory.used"]),
        memory_total_bytes=_bytes(cells["memory.total"]),
        power_watts=_number(cells["power.draw"]),
        temperature_celsius=_number(cells["temperature.gpu"]),
        fault=next((m[0] for cell in cells.values() if (m := _FAULT.search(cell))), None),
    )


def _text(cell: str) -> str | None:
    """A value; ``[N/A]``, ``[Not Supported]``, ``[GPU is lost]`` and the like are none."""
    unknown = not cell or cell.startswith("[") or cell in ("N/A", "ERR!", "Unknown Error", "-")
    return None if unknown else cell


def _number(cell: str) -> float | None:
    text = _text(cell)
    return float(text) if text is not None and _NUMBER.match(text) and len(text) < 20 else None


def _bytes(cell: str) -> int | None:
    mebibytes = _number(cell)
    return None if mebibytes is None else int(mebibytes * _MEBIBYTE)


def _pci(address: str) -> str:
    """``0000:44:00.0`` as the kernel's own lines write it: nvidia-smi gives the domain 8 digits."""
    domain, colon, rest = address.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}" if len(domain) > 4 else address.lower()
