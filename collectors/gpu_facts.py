"""The GPUs of this node, as ``nvidia-smi`` tells them; a lost one keeps what is known of it."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from whyhang.collectors.bounded_child import ChildRun, run_bounded
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import GpuFacts

QUERY = (
    "index", "uuid", "pci.bus_id", "name", "utilization.gpu", "memory.used", "memory.total",
    "power.draw", "temperature.gpu",
)  # fmt: skip
LIMIT_SECONDS = 10.0
_MEBIBYTE = 1 << 20
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")
_LOST = re.compile(
    r"Unable to determine the device handle for (?:GPU ?|gpu )?(?P<pci>[0-9A-Fa-f:.]{7,})",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Which GPUs a trainer may use: its local rank and its ``CUDA_VISIBLE_DEVICES`` (None: all)."""

    local_rank: int
    visible: str | None = None


def read_gpus(limit_seconds: float = LIMIT_SECONDS) -> tuple[GpuFacts, ...] | Missing:
    """Ask ``nvidia-smi``, which a sick driver can hold for ever: never longer than the limit."""
    binary = shutil.which("nvidia-smi")
    if binary is None:
        return Missing("nvidia-smi: not found")
    command = [binary, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    return parse_run(run_bounded(command, limit_seconds))


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
                gpus.append(GpuFacts(pci=_pci(lost["pci"].strip(":."))))
            continue
        gpu = _gpu(dict(zip(QUERY, cells, strict=True)))
        if gpu.index is not None or gpu.uuid is not None or gpu.pci is not None:
            gpus.append(gpu)
    return tuple(gpus)


def with_local_ranks(
    gpus: tuple[GpuFacts, ...], bindings: Iterable[Binding]
) -> tuple[GpuFacts, ...]:
    """The GPUs with the local rank that uses each, where ``CUDA_VISIBLE_DEVICES`` tells it.

    Without that variable, PyTorch programs take the GPU of their local rank.
    """
    owner: dict[int, int] = {}
    for binding in bindings:
        found = _position(gpus, binding)
        if found is not None:
            owner.setdefault(found, binding.local_rank)
    return tuple(
        replace(gpu, local_rank=owner.get(number, gpu.local_rank))
        for number, gpu in enumerate(gpus)
    )


def _position(gpus: tuple[GpuFacts, ...], binding: Binding) -> int | None:
    """Which of the GPUs a trainer uses."""
    if binding.visible is None:
        return _find(gpus, str(binding.local_rank))
    names = []
    for name in binding.visible.split(","):
        if name.strip() in ("", "-1"):
            break  # CUDA stops at the first one that is none
        names.append(name.strip())
    if not names:
        return None
    if len(names) == 1:
        return _find(gpus, names[0])
    return _find(gpus, names[binding.local_rank]) if binding.local_rank < len(names) else None


def _find(gpus: tuple[GpuFacts, ...], name: str) -> int | None:
    matches = [
        number
        for number, gpu in enumerate(gpus)
        if (name.isdecimal() and gpu.index == int(name[:9]))
        or (not name.isdecimal() and gpu.uuid is not None and gpu.uuid.startswith(name))
    ]
    return matches[0] if len(matches) == 1 else None


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
