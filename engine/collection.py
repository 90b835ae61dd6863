"""One collection on this machine: samples taken now, on disk before anybody judges them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from whyhang.collectors.collect import take_sample
from whyhang.collectors.process_table import list_processes
from whyhang.collectors.procfs import read_environ
from whyhang.collectors.ranks import JobEnvironment, as_rank, job_environment
from whyhang.engine.checkpoint_inquiry import CheckpointInquiry
from whyhang.engine.comm_files import read_flight_dumps
from whyhang.engine.flight_pickup import FlightPickup
from whyhang.engine.node_sample import NodeSample, kernel_events
from whyhang.engine.ras_inquiry import RasInquiry
from whyhang.engine.store import IncidentWriter
from whyhang.engine.told_ranks import with_told_ranks
from whyhang.schemas.config import CheckpointConfig, CollectConfig, JobConfig
from whyhang.schemas.flight_recorder import FlightDump
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.process import Process
from whyhang.schemas.progress import LogEvent, Progress, ProgressEvent
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.words import NodeStatus, Trigger

SAMPLE_DEADLINE_SECONDS = 120.0
# Only of the trainers, to learn whether one of them is creating a communicator.
RAS_STACKS_SECONDS = 15.0
JOB_ID_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID")


def utc(nanoseconds: int) -> str:
    """A wall-clock time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=timezone.utc).isoformat()


class Collection:
    """Takes the samples of one incident.

    ``root`` is the job's first process (None: every rank of this host), ``marker`` what ``run``
    put into its environment. ``known`` are processes seen before: a rank that has gone since is
    then known to be missing. ``flight`` remembers where they leave flight recorder dumps.
    ``checkpoint`` says where the newest one is looked for. ``print_id`` is the time at which the
    collection began.
    """

    def __init__(
        self,
        *,
        config: CollectConfig,
        root: int | None = None,
        marker: str | None = None,
        exclude: Container[int] = (),
        known: Iterable[Process] = (),
        flight: FlightPickup | None = None,
        checkpoint: CheckpointConfig | None = None,
    ) -> None:
        self.started_ns = time.time_ns()
        self.print_id = f"{self.started_ns:019d}"
        self.node = platform.node() or "localhost"
        self.config = config
        self.samples: list[Snapshot] = []
        self.job = JobEnvironment()
        self._expected = RankSet()
        self._root = root
        self._marker = marker
        self._exclude = exclude
        self._known: tuple[Process, ...] = tuple(known)
        self._first = 0.0
        self._node_samples: list[NodeSample] = []
        self._ras = RasInquiry(policy=config.ras)
        self._flight = flight or FlightPickup()
        self._checkpoint = CheckpointInquiry(checkpoint)
        self._dumps: tuple[FlightDump, ...] = ()

    def find(self) -> tuple[Process, ...]:
        """The job's processes now, without stacks."""
        found = list_processes(
            node=self.node,
            root=self._root,
            exclude=self._exclude,
            marker=self._marker,
            known=self._known,
        )
        self._remember(found)
        return found

    def take(
        self, *, deep: bool, writer: IncidentWriter | None = None, stepped: bool = False
    ) -> Snapshot:
        """Take the next sample and write it; /proc of all processes comes before any stack.

        A deep sample has NCCL RAS asked before and after, where that is safe: ``stepped`` says
        that the job has made a step, before which it never is.
        """
        asked = deep and self._ask_first(writer, stepped=stepped)
        now = time.monotonic()
        if not self.samples:
            self._first = now
        at = utc(time.time_ns())
        found = self.find()
        index = len(self.samples)
        processes = take_sample(
            found, deep=deep, config=self.config, deadline_seconds=SAMPLE_DEADLINE_SECONDS
        )
        snapshot = Snapshot(
            index=index,
            at=at,
            monotonic_seconds=round(now - self._first, 3),
            processes=processes,
        )
        if writer is not None:
            writer.write_sample(snapshot.index, processes)
        self.samples.append(snapshot)
        if asked:
            self._ras.wait()
            self._ask(processes, stepped=stepped)
        self._checkpoint.start()
        # After the stacks, and not waited for: a sick driver may hold these reads for long.
        self._node_samples.append(
            NodeSample(
                node=self.node,
                at=at,
                processes=processes,
                gpu=self.config.gpu != "never",
                done=None if writer is None else _Record(writer, index, processes),
            )
        )
        return snapshot

    def pick_up_dumps(
        self, writer: IncidentWriter, *, stalled_seconds: float | None, may_ask: bool
    ) -> None:
        """Copy the flight recorder dumps of this hang, which began ``stalled_seconds`` before the
        collection; ``may_ask`` where the job opened a pipe for that.
        """
        since = None if stalled_seconds is None else self.started_ns / 1e9 - stalled_seconds
        before = len(self._flight.taken)
        self._flight.pick_up(writer.write_flight, since=since, may_ask=may_ask)
        if len(self._flight.taken) > before:
            self._dumps = read_flight_dumps(writer.directory, [])

    def _ask_first(self, writer: IncidentWriter | None, *, stepped: bool) -> bool:
        """Ask NCCL RAS before anything is stopped, by stacks read for this; whether it answered."""
        self._ras.write = None if writer is None else writer.write_ras
        trainers = _trainers(self.find())
        leads = 0 in self._expected or any(process.rank is None for process in trainers)
        if not self._ras.prospects(trainers, stepped=stepped, leads=leads):
            return False
        read = take_sample(
            trainers, deep=False, config=self.config, deadline_seconds=RAS_STACKS_SECONDS
        )
        return self._ask(read, stepped=stepped)

    def _ask(self, processes: tuple[Process, ...], *, stepped: bool) -> bool:
        return self._ras.ask(_trainers(processes), stepped=stepped, world_size=self.job.world_size)

    def incident(
        self,
        *,
        trigger: Trigger,
        progress: Progress,
        log: Source,
        job: JobConfig,
        history: Sequence[ProgressEvent] = (),
        events: Sequence[LogEvent] = (),
        log_excerpt: Sequence[str] = (),
        version: str | None = None,
    ) -> Incident:
        """Everything collected so far, as an incident."""
        facts = [sample.facts() for sample in self._node_samples]
        flight = self._flight.source
        self._checkpoint.start()
        checkpoint = self._checkpoint.checkpoint()
        saved = self._checkpoint.source
        incident = Incident(
            print_id=self.print_id,
            job_id=_resolve(job.id) or _job_id(),
            job_name=_resolve(job.name),
            framework=_framework(self.samples),
            taken_at=utc(self.started_ns),
            finished_at=utc(time.time_ns()),
            trigger=trigger,
            world_size=self.job.world_size,
            nodes=(self._node(),),
            samples=tuple(
                replace(sample, processes=node.processes(), facts={told.node: told})
                for sample, node, told in zip(self.samples, self._node_samples, facts, strict=True)
            ),
            progress=progress,
            checkpoint=checkpoint,
            sources={
                "stacks": _stack_source(self.samples),
                "io": Source(ok=bool(self.samples)),
                "log": log,
                "nccl_ras": self._ras.source,
                "node": _facts_source(facts),
                **({} if saved is None else {"checkpoint": saved}),
                **({} if flight is None else {"flight_recorder": flight}),
            },
            ras=tuple(self._ras.reports),
            flight=self._dumps,
            history=tuple(history),
            events=(*events, *(kernel_events(facts[-1]) if facts else ())),
            log_excerpt=tuple(log_excerpt),
            whyhang=version,
        )
        return with_told_ranks(incident)

    def _node(self) -> Node:
        if not self.samples:
            return Node(
                name=self.node,
                ranks=self._expected,
                status="not_collected",
                reason="no process of the job was left to sample",
            )
        last = self.samples[-1]
        unread = [
            (process.rank, process.threads.reason)
            for process in _trainers(last.processes)
            if isinstance(process.threads, Missing) and process.state not in ("Z", "X")
        ]
        ranks = RankSet(rank for rank, _ in unread if rank is not None)
        if any(rank is None for rank, _ in unread):
            # One whose rank could not be read either may be any of those that seem to have gone.
            seen = RankSet(p.rank for p in last.processes if p.rank is not None)
            ranks |= self._expected - seen
        status: NodeStatus = "partial" if unread else "ok"
        reason = unread[0][1].splitlines()[0] if unread else None
        return Node(
            name=self.node,
            ranks=self._expected,
            unread=ranks,
            status=status,
            reason=reason,
        )

    def _remember(self, found: tuple[Process, ...]) -> None:
        """Which ranks this machine should have: those seen, and those its launcher counts."""
        self._known = found or self._known
        self._flight.know(found)
        trainers = [p for p in self._known if p.kind == "trainer" and p.rank is not None]
        self._expected |= RankSet(p.rank for p in trainers if p.rank is not None)
        for process in trainers:
            job = job_environment(process.pid)
            if job.rank is None:
                continue
            self.job = job
            local_size = _local_world_size(process.pid)
            if local_size and job.local_rank is not None and job.local_rank < local_size:
                first = job.rank - job.local_rank
                self._expected |= RankSet(range(first, first + local_size))
            break


class _Record:
    """Writes the facts of a sample, and its processes again where they have got their GPUs."""

    def __init__(self, writer: IncidentWriter, index: int, processes: tuple[Process, ...]) -> None:
        self._writer = writer
        self._index = index
        self._written = processes

    def __call__(self, facts: NodeFacts, processes: tuple[Process, ...]) -> None:
        self._writer.write_facts(self._index, facts)
        if processes != self._written:
            self._writer.write_sample(self._index, processes)


def _trainers(processes: Iterable[Process]) -> tuple[Process, ...]:
    return tuple(process for process in processes if process.kind == "trainer")


def _local_world_size(pid: int) -> int | None:
    environ = read_environ(pid)
    return None if environ is None else as_rank(environ.get("LOCAL_WORLD_SIZE"))


def _resolve(value: str | None) -> str | None:
    """A configured text, or the environment variable that it names with a leading ``$``."""
    if value and value.startswith("$"):
        return os.environ.get(value[1:].strip("{}")) or None
    return value


def _job_id() -> str | None:
    """The scheduler's number of this job, where one stands in our own environment."""
    return next((os.environ[name] for name in JOB_ID_VARIABLES if os.environ.get(name)), None)


def _framework(samples: Sequence[Snapshot]) -> str | None:
    for sample in samples:
        for process in sample.processes:
            if isinstance(process.threads, Missing):
                continue
            for thread in process.threads:
                if any(f.module_name.startswith("torch.") for f in thread.stack.python):
                    return "pytorch"
    return None


def _stack_source(samples: Sequence[Snapshot]) -> Source:
    if not samples:
        return Source(ok=False, reason="no sample was taken")
    trainers = [p for p in samples[-1].processes if p.kind == "trainer"]
    unread = [p.threads.reason for p in trainers if isinstance(p.threads, Missing)]
    if not unread:
        return Source(ok=True)
    return Source(ok=len(unread) < len(trainers), reason=unread[0].splitlines()[0])


def _facts_source(facts: Sequence[NodeFacts]) -> Source:
    """Whether the node told of itself; a machine without a GPU or an adapter lacks nothing."""
    if not facts:
        return Source(ok=False, reason="no sample was taken")
    reason = facts[-1].unread.get("facts")
    return Source(ok=reason is None, reason=reason)
