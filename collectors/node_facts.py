"""What the kernel tells of this node: pressure, disks, mounts, memory, InfiniBand, its own log.

Nothing here touches a mounted file system that could hang: mounts are listed, never asked for their
space. Only ``/dev/shm`` is, which is memory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

from whyhang.collectors.log_patterns import match_line
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import (
    DiskFacts,
    InfinibandFacts,
    KernelLine,
    MemoryFacts,
    MountFacts,
    PressureFacts,
    ShmFacts,
)

SECTOR_BYTES = 512
# Older lines belong to other jobs, or to hangs that are over.
KERNEL_WINDOW_SECONDS = 2 * 3600.0
_MAX_KERNEL_LINES = 200
_MAX_KMSG_RECORDS = 200_000
_MAX_MOUNTS = 500
_PARTITION = re.compile(
    r"(?:(?:nvme\d+(?:c\d+)?n|mmcblk|md|nbd)\d+p\d+|(?:sd|hd|vd|xvd)[a-z]+\d+)\Z"
)
_NO_DISK = ("loop", "ram", "zram", "sr", "fd")
# File systems that hold no files of users, or only memory.
_PSEUDO = re.compile(
    r"autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fusectl|hugetlbfs"
    r"|mqueue|nsfs|proc|pstore|ramfs|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tmpfs|tracefs"
)
# Of the many counters those that tell of errors, and the two that tell of traffic.
_IB_COUNTERS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
    "port_xmit_wait", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
    "port_rcv_data", "port_xmit_data",
)  # fmt: skip
_IB_HW_COUNTERS = (
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
    "req_cqe_error", "resp_cqe_error", "roce_adp_retrans", "rx_discards_phy",
)  # fmt: skip
_MEMORY = {
    "MemTotal": "total_bytes",
    "MemAvailable": "available_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
    "SwapTotal": "swap_total_bytes",
    "SwapFree": "swap_free_bytes",
}


def read_pressure(proc: Path = Path("/proc")) -> Mapping[str, PressureFacts] | Missing:
    """Pressure stall information of CPU, memory and I/O."""
    found = {}
    for resource in ("cpu", "io", "memory"):
        text = _read(proc / "pressure" / resource)
        if text is not None and (facts := parse_pressure(text)) is not None:
            found[resource] = facts
    return found or Missing("the kernel keeps no pressure information")


def parse_pressure(text: str) -> PressureFacts | None:
    """``some avg10=0.00 avg60=…``; None where no line is of that form."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        kind, *pairs = line.split() or ("",)
        for pair in pairs:
            name, _, value = pair.partition("=")
            key = f"{kind}_{name}"
            if key in PressureFacts.__slots__ and _is_number(value):
                values[key] = float(value)
    return PressureFacts(**values) if values else None


def read_disks(proc: Path = Path("/proc")) -> tuple[DiskFacts, ...] | Missing:
    """The counters of whole disks and device mappers; partitions and loop devices are left out."""
    text = _read(proc / "diskstats")
    return Missing("/proc/diskstats cannot be read") if text is None else parse_diskstats(text)


def parse_diskstats(text: str) -> tuple[DiskFacts, ...]:
    """The lines of ``/proc/diskstats``."""
    disks = []
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < 14 or not all(_is_count(cell) for cell in cells[3:14]):
            continue
        name, counts = cells[2], [int(cell) for cell in cells[3:14]]
        if _PARTITION.match(name) or name.startswith(_NO_DISK) or not any(counts):
            continue
        disks.append(
            DiskFacts(
                name=name,
                reads=counts[0],
                read_bytes=counts[2] * SECTOR_BYTES,
                writes=counts[4],
                write_bytes=counts[6] * SECTOR_BYTES,
                in_flight=counts[8],
                busy_seconds=counts[9] / 1000,
            )
        )
    return tuple(disks)


def read_mounts(
    proc: Path = Path("/proc"), pid: int | None = None
) -> tuple[MountFacts, ...] | Missing:
    """The file systems that a process sees (default: this one), listed without touching them."""
    text = _read(proc / ("self" if pid is None else str(pid)) / "mountinfo")
    return Missing("mountinfo cannot be read") if text is None else parse_mountinfo(text)


def parse_mountinfo(text: str) -> tuple[MountFacts, ...]:
    """The lines of ``mountinfo``; each path once, the last mount over it."""
    mounts: dict[str, MountFacts] = {}
    for line in text.splitlines():
        head, dash, tail = line.partition(" - ")
        place, rest = head.split(), tail.split()
        if not dash or len(place) < 5 or len(rest) < 2 or _PSEUDO.fullmatch(rest[0]):
            continue
        path = _unescape(place[4])
        mounts.pop(path, None)
        source = re.sub(r"//[^/@\s]*@", "//***@", _unescape(rest[1]))
        mounts[path] = MountFacts(path=path, type=rest[0], source=source)
    return tuple(mounts.values())[:_MAX_MOUNTS]


def read_shm(path: str = "/dev/shm") -> ShmFacts | Missing:
    """The size of the shared memory and what is free of it."""
    try:
        status = os.statvfs(path)
    except OSError as error:
        return Missing(f"{path}: {error.strerror}")
    return ShmFacts(
        total_bytes=status.f_blocks * status.f_frsize, free_bytes=status.f_bavail * status.f_frsize
    )


def read_memory(proc: Path = Path("/proc")) -> MemoryFacts | Missing:
    """Main memory, from ``/proc/meminfo``."""
    text = _read(proc / "meminfo")
    return Missing("/proc/meminfo cannot be read") if text is None else parse_meminfo(text)


def parse_meminfo(text: str) -> MemoryFacts:
    """The lines of ``/proc/meminfo``, which are in KiB."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        amount = rest.split()
        if name in _MEMORY and amount and _is_count(amount[0]):
            values[_MEMORY[name]] = int(amount[0]) * 1024
    return MemoryFacts(**values)


def read_infiniband(
    root: Path = Path("/sys/class/infiniband"),
) -> tuple[InfinibandFacts, ...] | Missing:
    """The ports of all adapters. A sick adapter can hold these reads for long."""
    try:
        ports = sorted(port for device in root.iterdir() for port in (device / "ports").iterdir())
    except OSError:
        return Missing("there is no InfiniBand adapter")
    return tuple(_port(path) for path in ports if path.name.isdecimal())


def _port(path: Path) -> InfinibandFacts:
    counters = dict(_counters(path / "counters", _IB_COUNTERS))
    counters.update(_counters(path / "hw_counters", _IB_HW_COUNTERS))
    return InfinibandFacts(
        device=path.parent.parent.name,
        port=int(path.name),
        state=_state(_read(path / "state")),
        physical_state=_state(_read(path / "phys_state")),
        rate=(_read(path / "rate") or "").strip() or None,
        counters=counters,
    )


def read_kernel_log(
    path: str = "/dev/kmsg", *, window_seconds: float = KERNEL_WINDOW_SECONDS
) -> tuple[KernelLine, ...] | Missing:
    """The lines of the last hours that tell of a fault; it takes rights to read that log."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Missing(f"{path}: {error.strerror}")
    try:
        records = list(_records(fd))
    finally:
        os.close(fd)
    uptime = time.clock_gettime(time.CLOCK_MONOTONIC)
    booted = time.time() - uptime
    return parse_kmsg(records, booted=booted, since=uptime - window_seconds)


def parse_kmsg(records: Iterable[bytes], *, booted: float, since: float) -> tuple[KernelLine, ...]:
    """Records of ``/dev/kmsg`` newer than ``since`` (seconds after boot) that tell of a fault.

    ``booted`` is the time of the boot in seconds since 1970.
    """
    lines = []
    for record in records:
        head, semicolon, message = record.decode("utf-8", "replace").partition(";")
        fields = head.split(",")
        if not semicolon or len(fields) < 3 or not _is_count(fields[2]):
            continue
        seconds = int(fields[2]) / 1e6
        text = message.split("\n", 1)[0]
        if seconds < since or not any(e.source == "kernel" for e in match_line(text, None)):
            continue
        at = datetime.fromtimestamp(booted + seconds, tz=timezone.utc).isoformat("T", "seconds")
        lines.append(KernelLine(line=text[:500], at=at))
    return tuple(lines[-_MAX_KERNEL_LINES:])


def _records(fd: int) -> Iterator[bytes]:
    for _ in range(_MAX_KMSG_RECORDS):
        try:
            record = os.read(fd, 8192)
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue  # overwritten while we read: the next one is there
        except OSError:
            return
        if not record:
            return
        yield record


def _counters(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        text = (_read(folder / name) or "").strip()
        if _is_count(text):
            yield name, int(text)


def _state(text: str | None) -> str | None:
    """``4: ACTIVE`` as ``ACTIVE``."""
    return None if text is None else text.strip().rpartition(": ")[2] or None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return None


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= 20


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", text) is not None


def _unescape(text: str) -> str:
    """``\\040`` and the like, as mountinfo writes blanks."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
