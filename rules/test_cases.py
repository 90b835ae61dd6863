"""Tests of rules as they are written: small worlds and what must come out of them.

Durations and times are seconds, rates bytes per second, CPU and run-queue delay fractions of 1.
None stands for what a test does not say: it is unknown to the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whyhang.schemas.config import TopologyConfig
from whyhang.schemas.evidence import Span
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import Category, Confidence, VerdictKind
from whyhang.schemas.words import NodeStatus, Phase, ProcessKind, ProgressState, Trigger

Status = Literal["running", "stopped", "zombie", "exited", "missing"]
Result = Literal["fired", "not", "inconclusive", "suppressed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFacts:
    """A Python thread beside the main one."""

    name: str
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWords:
    """What a test says of a rank's GPU; shares are fractions of 1."""

    utilization: float | None = None
    memory: float | None = None
    power: float | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What a test says of one process; stacks are frames as written, outermost first.

    ``retransmits`` are by the node they were sent to, {} where everything was acknowledged.
    ``then`` is the stack in every sample but the first. ``native`` is None where it is unread,
    empty where there is none.
    """

    kind: ProcessKind = "trainer"
    stack: tuple[str, ...] | None = None
    then: tuple[str, ...] | None = None
    native: tuple[str, ...] | None = None
    unreadable: str | None = None
    unchanged_for: float | None = None
    status: Status | None = None
    state: str | None = None
    wchan: str | None = None
    kernel: tuple[str, ...] | None = None
    d_threads: int | None = None
    threads: int | None = None
    traced: bool | None = None
    exit_code: int | None = None
    read_rate: float | None = None
    write_rate: float | None = None
    disk_read_rate: float | None = None
    disk_write_rate: float | None = None
    cpu: float | None = None
    run_queue: float | None = None
    cpus: int | None = None
    step_lag: int | None = None
    gpu: GpuWords | None = None
    retransmits: Mapping[str, int] | None = None
    python_threads: tuple[ThreadFacts, ...] = ()
    children: tuple[ProcessFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClass:
    """Ranks that a test says the same of."""

    ranks: RankSet
    facts: ProcessFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the ranks do from a time on."""

    since: float
    classes: tuple[RankClass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What the log says at one moment; ``state`` is None where it follows from the stall."""

    state: ProgressState | None = None
    stalled_for: float | None = None
    threshold: float | None = None
    interval: float | None = None
    phase: Phase | None = None
    last_line: str | None = None
    iteration: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """The newest checkpoint."""

    age: float | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What was heard from a node; shares are fractions of 1."""

    status: NodeStatus = "ok"
    reason: str | None = None
    memory_free: float | None = None
    shm_free: float | None = None
    io_pressure: float | None = None
    cpu_pressure: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """A log or kernel line that tells of a fault."""

    kind: str
    ranks: RankSet
    node: str | None = None
    exit_code: int | None = None
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldFacts:
    """A described world. ``moments`` holds the times of the samples, ``log`` one entry for each.

    ``log`` has an entry even where no sample was taken.
    """

    nodes: int
    ranks_per_node: int
    size: int | None
    topology: TopologyConfig = TopologyConfig()
    moments: tuple[float, ...]
    log: tuple[LogFacts, ...]
    stages: tuple[Stage, ...]
    trigger: Trigger = "stall"
    heard: Mapping[str, NodeFacts]
    checkpoint: CheckpointFacts | None = None
    events: tuple[EventFacts, ...] = ()
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One entry of ``expect:``; None is not asserted. ``at`` is None for the end.

    ``rule`` and ``winner`` are names as written.
    """

    span: Span
    at: float | None = None
    rule: str | None = None
    result: Result | None = None
    because: tuple[str, ...] = ()
    suspects: RankSet | None = None
    verdict: VerdictKind | None = None
    category: Category | None = None
    confidence: Confidence | None = None
    winner: str | None = None
    message: str | None = None
    position: str | None = None
    groups: str | None = None
    none: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTest:
    """One test: a described world or the path of a recorded incident, and what must come out."""

    name: str
    span: Span
    world: WorldFacts | Path
    expect: tuple[Expectation, ...]
    todo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A mutant that may survive, and why."""

    mutant: str
    why: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTestFile:
    """A test file. ``rules`` is a path, or the name of a pack."""

    file: str
    rules: Path | str
    rules_span: Span
    tests: tuple[RuleTest, ...]
    accept: tuple[Accepted, ...] = ()
    lines: tuple[str, ...] = ()
