"""The worlds of rule tests: facts as a test states them -> an incident as a collection makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path

from whyhang.engine.incidents import read_evidence
from whyhang.engine.rule_frames import build_stack
from whyhang.engine.rule_machines import PIDS_OF_A_RANK, node_facts
from whyhang.rules.test_cases import LogFacts, NodeFacts, ProcessFacts, Stage, WorldFacts
from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.config import DetectConfig, TopologyConfig
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, IoCounters, OsThread, Process
from whyhang.schemas.progress import LogEvent, Progress
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.topology import RANK_ORDERS
from whyhang.schemas.words import NodeStatus, ProgressState

PRINT_ID = "1780890495107774003"
START = datetime(2026, 6, 8, 3, 48, 15, tzinfo=timezone.utc)
UNDESCRIBED = "the test says nothing of it"
# What the counters show at the first sample.
BEFORE = 1_000_000

_stack = lru_cache(maxsize=4096)(build_stack)


def build_incident(
    world: WorldFacts | Path, *, at: float | None = None, detect: DetectConfig | None = None
) -> Incident:
    """The incident of a world as it stands at a time (its end by default).

    ``detect`` says from when on a stall is one, where the test gives a time without a state.
    Raises UsageError or FormatError for a recorded incident that cannot be read.
    """
    if isinstance(world, Path):
        return read_evidence(world)
    moments = [moment for moment in world.moments if at is None or moment <= at]
    nodes = tuple(_nodes(world))
    return Incident(
        print_id=PRINT_ID,
        trigger=world.trigger,
        world_size=world.size,
        nodes=nodes,
        samples=tuple(_samples(world, moments, nodes)),
        progress=_progress(world, max(len(moments) - 1, 0), detect or DetectConfig()),
        checkpoint=None
        if world.checkpoint is None
        else Checkpoint(age_seconds=world.checkpoint.age, step=world.checkpoint.step),
        sources={
            name: Source(ok=text == "ok", reason=None if text == "ok" else text)
            for name, text in world.sources.items()
        },
        events=tuple(
            LogEvent(
                kind=event.kind,
                line=event.line,
                ranks=event.ranks,
                node=event.node,
                exit_code=event.exit_code,
            )
            for event in world.events
        ),
    )


def _progress(world: WorldFacts, number: int, detect: DetectConfig) -> Progress:
    log = world.log[number]
    threshold = log.threshold
    if threshold is None:
        threshold = detect.floor if detect.stall is None else detect.stall
    last = world.stages[-1]
    return Progress(
        state=log.state or _state(log, threshold),
        stalled_seconds=log.stalled_for,
        threshold_seconds=log.threshold,
        median_interval_seconds=log.interval,
        phase=log.phase,
        last_line=log.last_line,
        step=log.iteration,
        total=log.total,
        per_rank_step=_steps(last, log.iteration or 1_000_000),
    )


def _state(log: LogFacts, threshold: float) -> ProgressState:
    if log.stalled_for is None:
        return "unknown"
    return "stalled" if log.stalled_for >= threshold else "advancing"


def _steps(stage: Stage, foremost: int) -> dict[int, int]:
    return {
        rank: foremost - one.facts.step_lag
        for one in stage.classes
        if one.facts.step_lag is not None
        for rank in one.ranks
    }


def _nodes(world: WorldFacts) -> Iterator[Node]:
    """The nodes; ranks that no line describes or whose stack is unreadable are unread."""
    last = world.stages[-1]
    described, unread, missing = NOBODY, NOBODY, NOBODY
    for one in last.classes:
        described = described | one.ranks
        if one.facts.unreadable is not None and one.facts.status is None:
            unread = unread | one.ranks
        if one.facts.status == "missing":
            missing = missing | one.ranks
    for number in range(world.nodes):
        first = number * world.ranks_per_node
        ranks = RankSet(range(first, first + world.ranks_per_node))
        name = f"node{number}"
        heard = world.heard.get(name, NodeFacts(status="ok"))
        status: NodeStatus = heard.status
        reason = heard.reason
        if status == "ok" and ranks & missing:
            status, reason = "missing", reason or "no answer"
        unseen = (ranks & unread) | (ranks - described)
        if status == "ok" and unseen:
            status = "partial"
            reason = reason or (UNDESCRIBED if ranks - described else None)
        unseen = unseen if status == "partial" else NOBODY
        yield Node(name=name, ranks=ranks, unread=unseen, status=status, reason=reason)


def _samples(
    world: WorldFacts, moments: list[float], nodes: tuple[Node, ...]
) -> Iterator[Snapshot]:
    counters: dict[tuple[int, str], float] = {}
    before = 0.0
    cmdline = _cmdline(world.topology)
    for number, moment in enumerate(moments):
        stage = [stage for stage in world.stages if stage.since <= moment][-1]
        builder = _Sample(
            counters=counters,
            elapsed=moment - before,
            number=number,
            age=moments[-1] - moment,
            is_last=number == len(moments) - 1,
            cmdline=cmdline,
        )
        yield Snapshot(
            index=number,
            at=(START + timedelta(seconds=moment)).isoformat(),
            monotonic_seconds=moment,
            processes=tuple(builder.processes(stage, nodes, world.ranks_per_node)),
            facts=node_facts(nodes, stage, world.heard, world.ranks_per_node),
        )
        before = moment


def _cmdline(topology: TopologyConfig) -> tuple[str, ...] | None:
    """What starts trainers in such groups; None where a test says nothing of them."""
    sizes = {
        "--tensor-model-parallel-size": topology.tensor,
        "--pipeline-model-parallel-size": topology.pipeline,
        "--context-parallel-size": topology.context,
        "--expert-model-parallel-size": topology.expert,
    }
    words = [word for name, size in sizes.items() if size for word in (name, str(size))]
    if topology.order == RANK_ORDERS[1]:
        words.append("--use-tp-pp-dp-mapping")
    return ("python3", "train.py", *words) if words else None


class _Sample:
    """Builds the processes of one sample. ``age`` is how long before the last sample it was."""

    def __init__(
        self,
        *,
        counters: dict[tuple[int, str], float],
        elapsed: float,
        number: int,
        age: float,
        is_last: bool,
        cmdline: tuple[str, ...] | None,
    ) -> None:
        self.counters = counters
        self.elapsed = elapsed
        self.number = number
        self.age = age
        self.is_last = is_last
        self.cmdline = cmdline

    def processes(self, stage: Stage, nodes: tuple[Node, ...], per_node: int) -> Iterator[Process]:
        for one in stage.classes:
            for rank in one.ranks:
                node = nodes[rank // per_node]
                if node.status in ("missing", "not_collected"):
                    continue
                pid = (rank + 1) * PIDS_OF_A_RANK
                for offset, facts in enumerate((one.facts, *one.facts.children)):
                    if facts.status == "exited" and self.is_last and node.status == "ok":
                        # On a node that was read, what has no line has exited.
                        continue
                    made = self.process(
                        facts, rank, node.name, pid + offset, offset, per_node=per_node
                    )
                    yield made if offset else replace(made, cmdline=self.cmdline)

    def process(
        self, facts: ProcessFacts, rank: int, node: str, pid: int, worker: int, *, per_node: int
    ) -> Process:
        state = self.state(facts)
        threads = self.threads(facts, pid)
        os_threads = _os_threads(facts, state, pid)
        cpu = self.grown(pid, "cpu", facts.cpu)
        delayed = self.grown(pid, "run_queue", facts.run_queue)
        return Process(
            pid=pid,
            node=node,
            kind=facts.kind,
            rank=rank,
            local_rank=None if facts.gpu is None else rank % per_node,
            worker=worker - 1 if worker else None,
            state=state,
            wchan=facts.wchan,
            kernel_stack=facts.kernel,
            cpu_seconds=cpu,
            io=self.io(facts, pid),
            exit=facts.exit_code,
            tracer_pid=None if facts.traced is None else int(facts.traced),
            run_queue_seconds=delayed,
            cpus_allowed=None if facts.cpus is None else f"0-{facts.cpus - 1}",
            os_threads=os_threads,
            dump=Dump(
                ok=not isinstance(threads, Missing),
                mode="native" if facts.native is not None else "python",
                error=facts.unreadable,
            ),
            threads=threads,
        )

    def state(self, facts: ProcessFacts) -> str | None:
        ended = {"zombie": "Z", "exited": "X" if self.is_last else None}
        if facts.status in ended:
            return ended[facts.status]
        if facts.status == "stopped":
            return "T"
        return facts.state or ("S" if facts.status == "running" else None)

    def threads(self, facts: ProcessFacts, pid: int) -> tuple[Thread, ...] | Missing:
        shown = facts.then if self.number and facts.then is not None else facts.stack
        if facts.status in ("zombie", "exited") and (self.is_last or shown is None):
            return Missing("it has ended")
        if facts.unreadable is not None:
            return Missing(facts.unreadable)
        if shown is None:
            return Missing("no dump was taken")
        moved = facts.unchanged_for is not None and self.age > facts.unchanged_for
        main: Stack = _stack(shown, facts.native or (), self.number + 1 if moved else 0)
        others = (
            Thread(name=thread.name, stack=_stack(thread.stack, ()), tid=pid + 50 + number)
            for number, thread in enumerate(facts.python_threads)
        )
        return (Thread(name="MainThread", stack=main, tid=pid), *others)

    def io(self, facts: ProcessFacts, pid: int) -> IoCounters | None:
        rates = (
            facts.read_rate,
            facts.write_rate,
            facts.disk_read_rate,
            facts.disk_write_rate,
        )
        if rates == (None, None, None, None):
            return None
        names = ("rchar", "wchar", "read_bytes", "write_bytes")
        grown = [self.grown(pid, name, rate) for name, rate in zip(names, rates, strict=True)]
        whole = [None if value is None else BEFORE + round(value) for value in grown]
        return IoCounters(rchar=whole[0], wchar=whole[1], read_bytes=whole[2], write_bytes=whole[3])

    def grown(self, pid: int, name: str, rate: float | None) -> float | None:
        """A counter that has grown at a rate since the sample before; None where it is unread."""
        if rate is None:
            return None
        key = pid, name
        self.counters[key] = self.counters.get(key, 0.0) + rate * self.elapsed
        return self.counters[key]


def _os_threads(facts: ProcessFacts, state: str | None, pid: int) -> tuple[OsThread, ...] | None:
    """The kernel's threads; the process's own is the first."""
    if facts.d_threads is None and facts.threads is None:
        return None
    asleep = facts.d_threads or 0
    count = max(facts.threads or 1, asleep + (0 if state == "D" else 1), 1)
    states = [state or "S"] + ["D"] * (asleep - (state == "D"))
    states += ["S"] * (count - len(states))
    return tuple(
        OsThread(tid=pid + offset, state=one, wchan=facts.wchan if one == "D" else None)
        for offset, one in enumerate(states[:count])
    )
