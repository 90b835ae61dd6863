"""The lines by which PyTorch, NCCL, HCCL and the kernel tell of a fault, one pattern each.

Every pattern has a literal that its lines hold: a line is only searched where that stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.progress import LogEvent
from whyhang.schemas.rankset import MAX_RANK, RankSet

# Whom the line accuses: the rank that printed it, the rank or ranks that it names, or nobody.
Whose = Literal["printer", "named", "nobody"]
_MAX_LINE = 500
_SEARCHED = 4096

# What may begin anywhere is tried where its run of characters begins only: else a long word costs
# the square of its length.
_NCCL_PREFIX = re.compile(r"(?<![^\s:\[\]])(?P<host>[^\s:\[\]]+):\d+:\d+ \[(?P<dev>-?\d+)\]")
_GROUP_RANK = re.compile(r"\bRank (?P<rank>\d{1,8})\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePattern:
    """One shape of line.

    Groups of the pattern: ``ranks`` (a list of them), ``node`` and ``device``. Where it has no
    ``node``, the host in the prefix of NCCL's own lines is it.
    """

    kind: str
    literal: str
    regex: re.Pattern[str]
    whose: Whose = "nobody"
    source: Literal["log", "kernel"] = "log"
    # Whether the printer's own number in `Rank 3]` may stand in where no prefix gives the global.
    by_group_rank: bool = False


def _p(
    kind: str,
    literal: str,
    regex: str,
    whose: Whose = "nobody",
    *,
    source: Literal["log", "kernel"] = "log",
    by_group_rank: bool = False,
) -> LinePattern:
    return LinePattern(
        kind=kind,
        literal=literal,
        regex=re.compile(regex),
        whose=whose,
        source=source,
        by_group_rank=by_group_rank,
    )


def _k(kind: str, literal: str, regex: str) -> LinePattern:
    return _p(kind, literal, regex, source="kernel")


_HOST = r"(?P<node>[^\s<>]+?)<\d+>"

# In this order; the first of a group of alternatives that matches ends the search.
PATTERNS: tuple[LinePattern, ...] = (
    _p(
        "watchdog_timeout",
        "Watchdog caught collective operation",
        r"Watchdog caught collective operation timeout",
        "printer",
        by_group_rank=True,
    ),
    _p(
        "watchdog_stuck",
        "watchdog got stuck",
        r"ProcessGroup\w+'s watchdog got stuck for",
        "printer",
        by_group_rank=True,
    ),
    _p(
        "watchdog_status",
        "detected by watchdog at work",
        r"\[PG (?:ID )?\S+ (?:PG GUID \S+ )?Rank \d+\] +(?:failf?ure|Exception .*?) ?detected by"
        r" watchdog at work",
        "printer",
        by_group_rank=True,
    ),
    _p(
        "dump_signal",
        "dump signal",
        r"Received a dump signal due to a collective timeout from +(?:this local rank|rank \d+)"
        r"|Observed flight recorder dump signal from another rank",
        "printer",
        by_group_rank=True,
    ),
    _p(
        "dump_signal",
        "First PG on this rank",
        r"\[PG ID \S+ PG GUID \S+ Rank \d+\] First PG on this rank to signal dumping",
        "printer",
        by_group_rank=True,
    ),
    _p("flight_recorder_off", "FlightRecorder is disabled", r"potentially because FlightRecorder"),
    _p(
        "process_abort",
        "taking the entire process down",
        r"To avoid data inconsistency, we are taking the entire process down",
        "printer",
        by_group_rank=True,
    ),
    _p(
        "store_timeout",
        "ncclUniqueId",
        r"\[\d+\] is setting up NCCL communicator and retr[ei]+ving ncclUniqueId from"
        r" \[(?P<ranks>\d{1,8})\]",
        "named",
    ),
    _p("store_timeout", "wait timeout after", r"\bwait timeout after \d+ms, keys: \S"),
    _p(
        "store_absent",
        "clients joined",
        r"Timed out after \d+ seconds waiting for clients\. \d+/\d+ clients joined",
    ),
    _p(
        "store_timeout",
        "store based barrier",
        r"Timed out initializing process group in store based barrier on rank",
    ),
    _p(
        "barrier_missed",
        "monitoredBarrier",
        r"Ranks? (?P<ranks>[\d, ]{1,2000}) failed to pass monitoredBarrier",
        "named",
    ),
    _p(
        "store_waiting",
        "Waiting in store based barrier",
        r"Waiting in store based barrier to initialize process group for (?:\d+ )?rank: "
        r"(?P<ranks>\d{1,8}),.*world_size=\d+, worker_count=\d+",
        "named",
    ),
    # Horovod names one side or the other; progress bars may stand before it on the line.
    _p("op_submitted", "[ready ranks:", r"\[ready ranks: (?P<ranks>[\d, ]{1,2000})\]", "named"),
    _p(
        "op_not_submitted",
        "[missing ranks:",
        r"\[missing ranks: (?P<ranks>[\d, ]{1,2000})\]",
        "named",
    ),
    _p(
        "store_lost",
        "recvValueWithTimeout",
        r"\[c10d\] recvValueWithTimeout failed on SocketImpl\(.{0,300}?remote=\[(?P<node>[^\]]+)\]",
    ),
    _p(
        "worker_died",
        "DataLoader worker",
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal|exited unexpectedly)",
        "printer",
    ),
    _p(
        "dataloader_timeout",
        "DataLoader timed out",
        r"DataLoader timed out after \d",
        "printer",
    ),
    _p(
        "no_space",
        "No space left on device",
        r"(?:\bErrno 28\b|\bENOSPC\b|: |\b)No space left on device",
        "printer",
    ),
    _p("no_space", "quota exceeded", r"Disk quota exceeded", "printer"),
    # -- NCCL -----------------------------------------------------------------------------------
    _p(
        "ib_error",
        "Got completion from peer",
        r"NET/IBP? ?:\s?Got completion from peer \S+?<\d+> with (?:status=|error )"
        r"(?:.*?\bhca (?P<device>[\w-]+))?",
    ),
    _p(
        "ib_port_error",
        "NET/IB : ",
        r"NET/IB : (?:(?P<device>[\w-]+):\d+ )?(?:Got (?:async event|async error event"
        r"|non-fatal async event) ?: |async fatal event(?: on (?:QP|CQ|SRQ)[^:]*)?: )",
    ),
    _p(
        "peer_lost",
        "closed by remote peer",
        rf"Connection closed by remote peer {_HOST}",
    ),
    _p(
        "peer_lost",
        "Call to ",
        rf"Call to (?:recv from|send to) {_HOST} failed",
    ),
    _p(
        "connect_failed",
        "connect to ",
        rf"(?<!\w)\w+: connect to {_HOST} (?:failed : |returned )",
    ),
    _p(
        "connect_failed",
        "Call to ",
        r"NCCL WARN .*?Call to (?:connect|bind|accept)\b.*?(?:failed|timeout|returned)",
    ),
    _p(
        "proxy_failed",
        "Failed to execute operation",
        r"\[Proxy Service(?: \d+)?\] Failed to execute operation \w+ from rank \d+",
    ),
    _p("proxy_failed", "Proxy Call to rank", r"Proxy Call to rank \d+ failed"),
    _p("cuda_error", "Cuda failure", r"Cuda failure (?:\d+ )?'[^']+'"),
    _p("cuda_error", "HIP failure", r"HIP failure (?:\d+ )?'[^']+'"),
    _p("ras_dead", "RAS declaring peer", rf"RAS declaring peer {_HOST} as DEAD"),
    _p(
        "ras_silent",
        "socket connection with",
        r"RAS (?:keep-alive timeout (?:warning|error)|connect (?:retry timeout|timeout warning))"
        rf" \(\d+s\) on socket connection with {_HOST}",
    ),
    _p(
        "nccl_error",
        "NCCL error",
        r"NCCL error(?: in)?: .+?, NCCL version \d+\.\d+\.\d+",
        "printer",
    ),
    # Each word by itself: `nccl` alone stands in many ordinary lines.
    *(
        _p("nccl_error", f"{word}: ", rf"(?:^|[\]:] ){word}: ", "printer")
        for word in (
            "ncclSystemError",
            "ncclInternalError",
            "ncclRemoteError",
            "ncclUnhandledCudaError",
            "ncclInvalidUsage",
            "ncclInvalidArgument",
        )
    ),
    _p("nccl_warn", "NCCL WARN", r"\[-?\d+\] (?:\S+?:\d+(?: \(\w+\))? )?NCCL WARN ."),
    # -- HCCL (Ascend) --------------------------------------------------------------------------
    _p(
        "hccl_stuck",
        "EI000",
        r"\bEI000[26]\b",
        "printer",
    ),
    _p(
        "hccl_stuck",
        "HCCL",
        r"\bHCCL\b.{0,300}?(?:\bstuck\b|\btim(?:ed?|es) ?-?out\b)",
        "printer",
        by_group_rank=True,
    ),
    _p("hccl_error", "hccl api", r"call hccl api failed", "printer"),
    # -- the kernel -----------------------------------------------------------------------------
    _k("xid", "NVRM: Xid", r"NVRM: Xid \(PCI:(?P<device>[0-9A-Fa-f:.]+)(?: GPU-I:\d+)?\): \d+"),
    _k(
        "xid",
        "fallen off the bus",
        r"NVRM: (?:GPU (?P<device>[0-9A-Fa-f]{4,}:[0-9A-Fa-f:.]+?):? )?.{0,80}?fallen off the bus",
    ),
    _k("sxid", "SXid", r"nvidia-nvswitch\d+: SXid \(PCI:(?P<device>[0-9A-Fa-f:.]+)\): \d+"),
    # AMD: amdgpu_job.c and amdgpu_device.c of the driver, and what its runtime (ROCr) says.
    _k(
        "gpu_reset",
        "amdgpu",
        r"amdgpu_job_timedout.{0,40}ring \S+ timeout"
        r"|amdgpu (?P<device>[0-9a-f]{4}:[0-9a-f:.]+): (?:amdgpu: )?GPU reset begin!",
    ),
    _p(
        "gpu_reset",
        "HW Exception by GPU",
        r"HW Exception by GPU node-\d+ .{0,60}reason ?: ?GPU Hang",
    ),
    _k("hung_task", "blocked for more than", r"INFO: task .+?:\d+ blocked for more than \d+ sec"),
    _k("oom_kill", "ut of memory: Kill", r"[Oo]ut of memory: Kill(?:ed)? process \d+"),
    _k("oom_kill", "oom-kill:", r"\boom-kill:"),
    _k("storage_lost", "not responding", r"nfs: server (?P<device>\S+) not responding"),
    _k(
        "storage_lost",
        "Lustre",
        r"LustreError: |Lustre: .*(?:Request sent has (?:timed out|failed)|Connection to"
        r" (?P<device>\S+) \(at \S+\) was lost)",
    ),
    _k(
        "link_down",
        "mlx5_core",
        r"mlx5_core (?P<pci>[^\s:]+:[^\s]+?)(?: (?P<device>[^\s:]+))?:"
        r" (?:Port: \d+ Link DOWN|Link down)",
    ),
    _k("soft_lockup", "soft lockup", r"watchdog: BUG: soft lockup - CPU#\d+ stuck for \d+s"),
    _k("segfault", "segfault at", r"(?<!\S)\S+\[\d+\]: segfault at [0-9a-f]+ ip [0-9a-f]+"),
    _k(
        "io_error",
        "I/O error",
        r"I/O error, dev (?P<device>\w+)|Buffer I/O error|XFS .{0,80}?I/O error",
    ),
    # -- the scheduler --------------------------------------------------------------------------
    _p(
        "oom_kill",
        "Out Of Memory",
        r"srun: error: (?P<node>[^\s:]+): tasks? [\d,-]+: Out Of Memory",
    ),
    _p("oom_kill", "oom_kill event", r"\boom_kill event", "printer"),
    _p("oom_kill", "slurmstepd: error: Detected", r"error: Detected \d+ oom", "printer"),
    _p("oom_kill", "killed by the OOM killer", r"killed by the OOM killer", "printer"),
)  # fmt: skip

KINDS = tuple(dict.fromkeys(pattern.kind for pattern in PATTERNS))
_OF_PEERS = frozenset(("peer_lost", "connect_failed", "ras_dead", "ras_silent", "store_lost"))
_OF_ADAPTERS = frozenset(("ib_error", "ib_port_error"))
# A line that accuses the printer's peer besides the link: with these the peer did not answer.
_UNANSWERED = re.compile(
    rf"Got completion from peer {_HOST} with (?:status=(?:\w+\()?1[23]\b|error 1[23]\b)"
)


def match_line(line: str, rank: int | None, *, node: str | None = None) -> Iterator[LogEvent]:
    """The events that one line tells of.

    ``rank`` is the one of the line's prefix, ``node`` where the line was printed, if known.
    """
    searched = line[:_SEARCHED]
    for pattern in PATTERNS:
        if pattern.literal not in searched:
            continue
        match = pattern.regex.search(searched)
        if match is None:
            continue
        yield _event(pattern, match, searched, rank, node)
        if pattern.kind == "ib_error":
            peer = _UNANSWERED.search(searched)
            if peer is not None:
                yield LogEvent(kind="peer_lost", line=_shown(line), node=peer["node"])
        return


def _event(
    pattern: LinePattern, match: re.Match[str], line: str, rank: int | None, node: str | None
) -> LogEvent:
    found = match.groupdict()
    device = found.get("device") or (found.get("pci") if pattern.kind == "link_down" else None)
    named = found.get("node")
    if named is None and pattern.kind in _OF_PEERS:
        # Who could not reach an unnamed peer is not accused itself.
        node = None
    elif named is None and "NCCL" in line and (prefix := _NCCL_PREFIX.search(line)) is not None:
        named = prefix["host"]
        is_gpu = pattern.kind not in _OF_ADAPTERS and not prefix["dev"].startswith("-")
        device = device or (prefix["dev"] if is_gpu else None)
    return LogEvent(
        kind=pattern.kind,
        line=_shown(line),
        source=pattern.source,
        ranks=_ranks(pattern, found.get("ranks"), line, rank),
        node=named if named is not None else node,
        device=device,
    )


def _ranks(pattern: LinePattern, named: str | None, line: str, rank: int | None) -> RankSet:
    if pattern.whose == "named":
        numbers = (int(text) for text in re.findall(r"\d{1,8}", named or ""))
        return RankSet(number for number in numbers if number <= MAX_RANK)
    if pattern.whose == "nobody":
        return RankSet()
    if rank is None and pattern.by_group_rank:
        # Within the process group: the best there is where the line has no prefix.
        inner = _GROUP_RANK.search(line)
        rank = None if inner is None else int(inner["rank"])
    return RankSet() if rank is None or rank > MAX_RANK else RankSet((rank,))


def _shown(line: str) -> str:
    return line.strip()[:_MAX_LINE]
