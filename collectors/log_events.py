"""Log lines that tell of a fault: a rank that died, a collective that timed out, a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from whyhang.collectors.log_patterns import match_line
from whyhang.collectors.normalise import split_prefixes
from whyhang.schemas.progress import LogEvent
from whyhang.schemas.rankset import RankSet

_MAX_LINE = 500
_MAX_EVENTS = 256
# Ranks beyond any job's size come from torn lines.
_MAX_RANK = 10_000_000

_GLOBAL_RANK = re.compile(r"\[rank(\d+)\]:")
_ELASTIC = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
_TRACEBACK = re.compile(r"(?:^|[\s:>])Traceback \(most recent call last\):")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*)$")

_BLOCK = re.compile(r"\bChildFailedError:")
_BLOCK_END = re.compile(r"^={20,}")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_FIELD = re.compile(r"^\s*(rank|exitcode|host|time|error_file)\s*: (.*)$")
# XLA's coordination service (coordination_service.cc) lists the processes that did not come to a
# barrier, one a line behind this; some releases write the line breaks as text.
_ABSENT = re.compile(r"\b[Tt]imed out task names:")
_TASK = re.compile(r"/job:jax_worker/replica:\d+/task:(\d{1,8})\b")
_BLOCK_LINES = 20_000
# Between the error's name and the double rule that opens the report there is at most a blank line.
_HEAD_LINES = 5
_SIGTERM = -15
# Horovod's stall inspector (horovod/common/stall_inspector.cc) opens a list with this line: a line
# for each rank that has not submitted what others wait for, `!` behind those that shut down.
_STALLED = "Stalled ranks:"
_STALLED_RANK = re.compile(r"^(?:\[\d+,\d+\]<std(?:err|out)>:)?(\d{1,8})!?: \[")


@dataclass(slots=True)
class _Report:
    """The failure report of torchrun while it is being read."""

    root: bool = False
    bars: int = 0
    lines: int = 0
    rank: int | None = None
    host: str | None = None
    at: str | None = None


@dataclass(slots=True)
class _Search:
    first_rank: int | None
    node: str | None = None
    events: list[LogEvent] = field(default_factory=list)
    # The reports that are being read, by the prefix of the node that prints them.
    reports: dict[str, _Report] = field(default_factory=dict)
    # Index of the event whose traceback is still being read, by the prefixes of its lines.
    tracebacks: dict[str, int] = field(default_factory=dict)
    # Indices of tracebacks of the launcher itself.
    dropped: set[int] = field(default_factory=set)
    seen: set[tuple[str, int, str | None, str | None]] = field(default_factory=set)
    # Whether the last line opened or went on with a list of absent processes.
    absent: bool = False
    # Horovod's list: whether one is being read, and the index of its event. The last list counts.
    listing: Literal["none", "open", "read"] = "none"
    listed: int | None = None

    def add(self, event: LogEvent) -> None:
        if len(self.events) < _MAX_EVENTS:
            self.events.append(event)

    def add_once(self, event: LogEvent) -> None:
        """Add what was not said yet of the same rank, node and device: such lines repeat."""
        key = (event.kind, event.ranks.bits, event.node, event.device)
        if key not in self.seen:
            self.seen.add(key)
            self.add(event)

    def list_rank(self, rank: int) -> None:
        """Take a rank into the list that is open; the first one replaces the list before."""
        if self.listed is None:
            self.listed = len(self.events)
            self.add(_event("op_not_submitted", _STALLED, RankSet()))
        if self.listed < len(self.events):
            event = self.events[self.listed]
            kept = event.ranks if self.listing == "read" else RankSet()
            self.events[self.listed] = replace(event, ranks=kept | _ranks(rank))
        self.listing = "read"


def find_events(
    lines: Iterable[str], *, first_rank: int | None = 0, node: str | None = None
) -> tuple[LogEvent, ...]:
    """The faults that the lines tell of, in their order; at most 256.

    Kinds: ``rank_failed`` (a rank ended by itself; ``exit_code`` is negative for a signal),
    ``traceback`` (its ``line`` is the exception), and those of
    :mod:`whyhang.collectors.log_patterns`, each once per rank, node and device. Ranks that the
    launcher itself ended by SIGTERM after the first failure are no events, nor is the launcher's
    own traceback. Lines may still carry prefixes such as ``[rank3]:``.

    ``first_rank`` is the global rank of local rank 0 where the lines were written, for those that
    name a local rank only; None if unknown. ``node`` is where they were written, if it was one
    node; a node that a line names goes before it.
    """
    search = _Search(first_rank=first_rank, node=node)
    for line in lines:
        _read(search, line.rstrip("\r\n"))
    kept = [event for n, event in enumerate(search.events) if n not in search.dropped]
    return _without_doubles(kept)


def _read(search: _Search, line: str) -> None:
    if search.reports and _read_report(search, line):
        return
    if _read_list(search, line):
        return
    if not line or line.isspace():
        return
    _read_absent(search, line)
    rank = _prefix_rank(line)
    if "ChildFailedError" in line and _BLOCK.search(line):
        source, _ = split_prefixes(line)
        search.reports[source] = _Report()
        # What came before was the traceback of the launcher itself.
        index = search.tracebacks.pop(source, None)
        if index is not None:
            search.dropped.add(index)
        return
    if "failed (exitcode" in line and (match := _ELASTIC.search(line)) is not None:
        code, local = int(match[1]), int(match[2])
        ranks = _ranks(None if search.first_rank is None else search.first_rank + local)
        if code != _SIGTERM:
            search.add(_event("rank_failed", line, ranks, exit_code=code))
        return
    told = tuple(match_line(line, rank, node=search.node))
    for event in told:
        search.add_once(event)
    if not search.tracebacks and (told or "Traceback" not in line):
        return
    source, bare = split_prefixes(line)
    if told and source not in search.tracebacks:
        return
    if _TRACEBACK.search(line):
        search.tracebacks[source] = len(search.events)
        search.add(_event("traceback", line, _ranks(rank)))
    elif source in search.tracebacks and _EXCEPTION.match(bare):
        index = search.tracebacks.pop(source)
        if index < len(search.events):
            search.events[index] = _event("traceback", bare, _ranks(rank))


def _read_absent(search: _Search, line: str) -> None:
    opener = _ABSENT.search(line) if "imed out task names" in line else None
    names = line[opener.end() :] if opener else line
    tasks = _TASK.findall(names) if search.absent or opener else ()
    search.absent = bool(opener or tasks)
    for task in tasks:
        search.add_once(_event("barrier_missed", line, _ranks(int(task))))


def _read_list(search: _Search, line: str) -> bool:
    """Whether the line opens Horovod's list of stalled ranks or belongs to it."""
    if line.rstrip().endswith(_STALLED):
        search.listing = "open"
        return True
    if search.listing == "none":
        return False
    match = _STALLED_RANK.match(line)
    if match is None:
        search.listing = "none"
        return False
    search.list_rank(int(match[1]))
    return True


def _read_report(search: _Search, line: str) -> bool:
    """Whether the line belongs to a report; ends the report behind its last line."""
    source, bare = split_prefixes(line)
    report = search.reports.get(source)
    if report is None:
        return False
    report.lines += 1
    if _BLOCK_END.match(bare.strip()):
        report.bars += 1
        if report.bars == 2:
            del search.reports[source]
        return True
    if _ROOT.search(bare):
        report.root = True
        return True
    match = _FIELD.match(bare)
    if match is None or not report.root:
        if report.lines > (_BLOCK_LINES if report.bars else _HEAD_LINES):
            del search.reports[source]
        return report.bars > 0
    name, value = match[1], match[2].strip()
    if name == "time":
        report.at = value
    elif name == "host":
        report.host = value
    elif name == "rank":
        report.rank = _int(value.split(" ", 1)[0])
    elif name == "exitcode":
        code = re.match(r"-?\d+", value)
        search.add(
            LogEvent(
                kind="rank_failed",
                line=f"rank {report.rank} exitcode {value}",
                ranks=_ranks(report.rank),
                node=report.host,
                exit_code=None if code is None else int(code[0]),
                at=report.at,
            )
        )
        report.root = False
    return True


def _without_doubles(events: list[LogEvent]) -> tuple[LogEvent, ...]:
    """Drop the agent's short note where its report says the same better."""
    reported = {
        event.exit_code for event in events if event.kind == "rank_failed" and event.at is not None
    }
    kept: list[LogEvent] = []
    for event in events:
        note = event.kind == "rank_failed" and event.at is None
        if note and event.exit_code in reported:
            continue
        kept.append(event)
    return tuple(kept)


def _event(kind: str, line: str, ranks: RankSet, *, exit_code: int | None = None) -> LogEvent:
    return LogEvent(kind=kind, line=line.strip()[:_MAX_LINE], ranks=ranks, exit_code=exit_code)


def _prefix_rank(line: str) -> int | None:
    match = _GLOBAL_RANK.search(line[:200]) if "[rank" in line else None
    return None if match is None else _int(match[1])


def _ranks(rank: int | None) -> RankSet:
    return RankSet() if rank is None or rank > _MAX_RANK else RankSet([rank])


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and len(text) <= 9 else None
