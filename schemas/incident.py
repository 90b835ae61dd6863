"""An incident: the evidence of one stall, before anybody has judged it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.flight_recorder import FlightDump
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.process import Process
from whyhang.schemas.progress import LogEvent, Progress, ProgressEvent
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.ras import RasReport
from whyhang.schemas.words import NodeStatus, Trigger

FORMAT = "whyhang.incident/1"


# What a reason says where our own part failed, so that nothing is known of the node itself.
_OUR_FAULT = re.compile(
    r"\b(watcher|whyhang|exchange)\b.*\b(gone|lost|ended|exited|crashed|killed|died|stuck|failed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine and what was heard from it.

    ``missing`` means that it had answered before, was asked and is silent, which is evidence;
    ``not_collected`` that it was never asked or never there, which is none.
    """

    name: str
    ranks: RankSet = NOBODY
    unread: RankSet = NOBODY
    status: NodeStatus = "ok"
    reason: str | None = None

    @property
    def was_asked(self) -> bool:
        """Whether its ranks take part in what rules count."""
        return self.status != "not_collected"

    @property
    def fell_silent(self) -> bool:
        """Whether its silence says something of the node, and not of our own watcher on it."""
        return self.status == "missing" and not _OUR_FAULT.search(self.reason or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Whether a source of evidence could be read, and why not."""

    ok: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every process that one sample saw, on all nodes, and what those nodes told of themselves.

    ``facts`` are by node. A node without an entry told nothing; Missing is a damaged document.
    """

    index: int
    at: str
    monotonic_seconds: float
    processes: tuple[Process, ...]
    facts: Mapping[str, NodeFacts | Missing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The whole evidence: the index, the samples in order of time, and what the log said.

    ``print_id`` is the nanosecond UTC time of the start of the collection as 19 digits, None for
    imported dumps. Times are ISO 8601.
    """

    print_id: str | None
    job_id: str | None = None
    job_name: str | None = None
    framework: str | None = None
    taken_at: str | None = None
    finished_at: str | None = None
    trigger: Trigger = "manual"
    world_size: int | None = None
    nodes: tuple[Node, ...] = ()
    samples: tuple[Snapshot, ...] = ()
    progress: Progress = field(default_factory=Progress)
    checkpoint: Checkpoint | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    history: tuple[ProgressEvent, ...] = ()
    events: tuple[LogEvent, ...] = ()
    log_excerpt: tuple[str, ...] = ()
    ras: tuple[RasReport, ...] = ()
    flight: tuple[FlightDump, ...] = ()
    whyhang: str | None = None

    @property
    def last(self) -> Snapshot | None:
        """The last sample, of which counts and graphs are made."""
        return self.samples[-1] if self.samples else None

    @property
    def unranked(self) -> tuple[Process, ...]:
        """The trainers of the last sample whose rank nobody told."""
        processes = self.last.processes if self.last else ()
        return tuple(p for p in processes if p.kind == "trainer" and p.rank is None)
