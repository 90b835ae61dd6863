"""What each field of the rule language means on an incident: field name -> accessor.

An accessor answers with a value or with Missing(reason). Rates belong to the interval between two
samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from whyhang.engine.comm_facts import CommFacts
from whyhang.engine.facets import TRANSFERS, Classes, process_of, stack_of, tasks
from whyhang.engine.machine_fields import MACHINE_FIELDS, MachineReader
from whyhang.engine.pipeline import Pipeline
from whyhang.engine.positions import TRANSPARENT, Positions, is_user_code
from whyhang.engine.world import Subject, World
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import IoCounters, Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack

FactValue: TypeAlias = bool | int | float | str | Frame | Stack | tuple[Frame, ...]
Accessor: TypeAlias = Callable[["Facts", Subject, int], FactValue | Missing]

ONE_SAMPLE = Missing("only one sample was taken")
EVENT_PREFIX = "event."


@dataclass(slots=True)
class Facts:
    """The facts of one incident under one set of frame lists."""

    world: World
    positions: Positions
    classes: Classes = field(init=False)
    comms: CommFacts = field(init=False)
    pipeline: Pipeline = field(init=False)
    _peers: dict[int, tuple[Counter[object], Counter[object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.classes = Classes(self.world, self.positions)
        self.comms = CommFacts(self.world.incident)
        self.pipeline = Pipeline(self.world, self.positions, self.classes)
        self.classes.together[TRANSFERS] = self.pipeline.partition

    def get(self, name: str, subject: Subject, sample: int) -> FactValue | Missing:
        """The value of a field for a subject (an empty one for facts of the job)."""
        if name.startswith(EVENT_PREFIX):
            return _event(self, name.removeprefix(EVENT_PREFIX), subject)
        return ACCESSORS[name](self, subject, sample)

    def standing(self, subject: Subject, sample: int) -> object | None:
        """Where a rank stands: its position and the functions that led there; None if unread.

        Of lines only that of the caller counts, which tells two calls in one function apart, and
        where that caller is a helper of the user's, those of the user code that called it.
        Further out and in a model they are left out, so that two of its layers are the same place.
        """
        stack, top = main_stack(self, subject, sample), position(self, subject, sample)
        if isinstance(stack, Missing) or isinstance(top, Missing):
            return None
        inside = stack.python[stack.python.index(top) :]
        own = self.positions.claims(top) | {TRANSPARENT}
        callers = [f for f in inside[1:] if not self.positions.claims(f) & own]
        helpers = tuple(takewhile(_is_helper, callers)) or callers[:1]
        return tuple(frame.id for frame in inside), tuple(frame.line for frame in helpers)

    def peers(self, sample: int) -> tuple[Counter[object], Counter[object]]:
        """How many ranks of a stage stand at each place, and how many at a known one.

        Stages of a pipeline do different things by design. Without a topology all ranks are peers.
        """
        if sample not in self._peers:
            counts, known = Counter[object](), Counter[object]()
            classes = self.classes.of("rank", ("stack", "stage"), sample)
            for number, rank in enumerate(classes.representatives()):
                place = self.standing(self.world.ranks.subjects[rank], sample)
                if place is not None:
                    stage = self.world.stage_of(rank)
                    counts[stage, place] += classes.bitmap(number).bit_count()
                    known[stage] += classes.bitmap(number).bit_count()
            self._peers[sample] = counts, known
        return self._peers[sample]


def _is_helper(frame: Frame) -> bool:
    return is_user_code(frame) and frame.function != "forward"


def main_stack(facts: Facts, subject: Subject, sample: int) -> Stack | Missing:
    """The stack of the thread that matters."""
    return stack_of(facts.positions, subject, sample)


def position(facts: Facts, subject: Subject, sample: int) -> Frame | Missing:
    """The position of the thread that matters."""
    stack = main_stack(facts, subject, sample)
    return stack if isinstance(stack, Missing) else facts.positions.top(stack)


def status(facts: Facts, subject: Subject, sample: int) -> str | Missing:
    """running, stopped, zombie, exited or missing. An unread process is unknown."""
    process = process_of(subject, sample)
    if isinstance(process, Missing):
        return _absent_status(subject, sample, process)
    state = process.state
    if state in ("X", "x"):
        return "exited"
    if state == "Z":
        return "zombie"
    # A traced process whose tracer is gone by the time it is asked for was being read (by us).
    if state == "T" or (state == "t" and process.tracer_pid != 0):
        return "stopped"
    if state is None and isinstance(process.threads, Missing):
        return Missing(process.threads.reason)
    return "running"


def _absent_status(subject: Subject, sample: int, why: Missing) -> str | Missing:
    """No line: on an ok node the process has exited; on others nobody can tell.

    A child that no sample ever showed is none; one that an earlier sample showed has gone.
    """
    node = subject.node
    if node is None:
        return why
    if node.fell_silent:
        return "missing"
    unread = subject.rank is not None and subject.rank in node.unread
    if node.status == "ok" and not unread and subject.track:
        return "exited"
    return Missing(node.reason or why.reason)


def _native(facts: Facts, subject: Subject, sample: int) -> tuple[Frame, ...] | Missing:
    stack = main_stack(facts, subject, sample)
    if isinstance(stack, Missing):
        return stack
    process = process_of(subject, sample)
    dump = None if isinstance(process, Missing) else process.dump
    if stack.has_native or (dump is not None and dump.ok and dump.mode == "native"):
        return stack.native
    return Missing("its dump has no native frames")


def _top_part(part: Callable[[Frame], str | int | None]) -> Accessor:
    def get(facts: Facts, subject: Subject, sample: int) -> FactValue | Missing:
        top = position(facts, subject, sample)
        if isinstance(top, Missing):
            return top
        value = part(top)
        return Missing("its dump does not tell") if value is None else value

    return get


def _attribute(read: Callable[[Process], FactValue | None], what: str) -> Accessor:
    def get(facts: Facts, subject: Subject, sample: int) -> FactValue | Missing:
        process = process_of(subject, sample)
        if isinstance(process, Missing):
            return process
        value = read(process)
        return Missing(f"{what} was not read") if value is None else value

    return get


def _rate(read: Callable[[Process], float | None], what: str) -> Accessor:
    """Growth per second between two samples, the same at both ends."""

    def get(facts: Facts, subject: Subject, sample: int) -> FactValue | Missing:
        seconds = facts.world.seconds_between(sample)
        if seconds is None:
            return ONE_SAMPLE
        last = max(sample, 1)
        before, after = process_of(subject, last - 1), process_of(subject, last)
        if isinstance(before, Missing):
            return before
        if isinstance(after, Missing):
            return after
        first, second = read(before), read(after)
        if first is None or second is None or before.pid != after.pid:
            return Missing(f"{what} was not read in both samples")
        return max(0.0, second - first) / seconds

    return get


def _counter(name: str) -> Callable[[Process], float | None]:
    def read(process: Process) -> float | None:
        io: IoCounters | None = process.io
        value: int | None = None if io is None else getattr(io, name)
        return value

    return read


def _thread_count(process: Process) -> int | None:
    found = tasks(process)
    return None if found is None else found[0]


def _d_threads(process: Process) -> int | None:
    """Threads in uninterruptible sleep; the main thread's state alone proves only a presence."""
    found = tasks(process)
    if found is not None:
        return found[1]
    return 1 if process.state == "D" else None


def _wchan(process: Process) -> str | None:
    """Where the process waits in the kernel; a thread in D counts before the main thread.

    The main thread may only be joining the one that sleeps.
    """
    found = None if process.state == "D" else tasks(process)
    return process.wchan if found is None or found[2] is None else found[2]


def _cpus(process: Process) -> int | None:
    """How many CPUs a list such as ``0-7,16`` allows."""
    try:
        return len(RankSet.parse(process.cpus_allowed or "")) or None
    except ValueError:
        return None


def _kernel(process: Process) -> tuple[Frame, ...] | None:
    """The kernel's stack; only root reads more of it than the function in which a process waits."""
    names, channel = process.kernel_stack, _wchan(process)
    if names is None and channel is None:
        return None
    if channel is not None and channel not in (names or ()):
        names = (channel, *(names or ()))
    # Compilers add to names (`.constprop.0`, `.isra.0`); a dot tells Python's names from these.
    return tuple(Frame(name.partition(".")[0], module="kernel") for name in names or ())


def _unreadable(facts: Facts, subject: Subject, sample: int) -> bool | Missing:
    """No stack, although the process may well be there."""
    if status(facts, subject, sample) in ("exited", "zombie", "missing"):
        return False
    return isinstance(main_stack(facts, subject, sample), Missing)


def _exit_code(facts: Facts, subject: Subject, sample: int) -> int | Missing:
    process = process_of(subject, sample)
    if not isinstance(process, Missing) and process.exit is not None:
        return process.exit
    for event in facts.world.incident.events:
        if event.exit_code is not None and subject.rank in event.ranks:
            return event.exit_code
    return Missing("no exit code is known")


def _alike(facts: Facts, subject: Subject, sample: int) -> float | Missing:
    place = facts.standing(subject, sample)
    if place is None:
        return Missing("its position is unread")
    counts, known = facts.peers(sample)
    stage = facts.world.stage_of(subject.rank)
    return counts[stage, place] / known[stage]


def _step_lag(facts: Facts, subject: Subject, sample: int) -> int | Missing:
    steps = facts.world.incident.progress.per_rank_step
    if subject.rank is None or subject.rank not in steps:
        return Missing("no log of this rank was read")
    return max(steps.values()) - steps[subject.rank]


def _event(facts: Facts, kind: str, subject: Subject) -> bool:
    """Whether a line of that kind names the rank, the node, or (for the job) anything."""
    for event in facts.world.incident.events:
        if event.kind != kind:
            continue
        if subject.rank is not None:
            if subject.rank in event.ranks:
                return True
        elif subject.node is None or event.node == subject.node.name:
            return True
    return False


def _state_is(state: str) -> Accessor:
    def get(facts: Facts, subject: Subject, sample: int) -> bool | Missing:
        progress = facts.world.incident.progress
        if progress.state != "unknown":
            return progress.state == state
        # While a log is watched for its first step, the time since its start is known.
        seen = progress.stalled_seconds is not None
        return Missing("no step has been seen yet" if seen else "no log was read")

    return get


def _progress(name: str) -> Accessor:
    def get(facts: Facts, subject: Subject, sample: int) -> FactValue | Missing:
        value: FactValue | None = getattr(facts.world.incident.progress, name)
        return Missing("the log does not tell") if value is None else value

    return get


def _checkpoint(name: str) -> Accessor:
    def get(facts: Facts, subject: Subject, sample: int) -> FactValue | Missing:
        found = facts.world.incident.checkpoint
        value: FactValue | None = None if found is None else getattr(found, name)
        return Missing("no checkpoint tells") if value is None else value

    return get


def _world_size(facts: Facts, subject: Subject, sample: int) -> int | Missing:
    size = facts.world.incident.world_size
    return Missing("the world size is not known") if size is None else size


def _thread_name(facts: Facts, subject: Subject, sample: int) -> str | Missing:
    thread = subject.threads[-1] if subject.threads else None
    name = None if thread is None else thread.name
    return Missing("the thread has no name") if name is None else name


def _node_name(facts: Facts, subject: Subject, sample: int) -> str | Missing:
    return Missing("its node is not known") if subject.node is None else subject.node.name


def _ended(facts: Facts, subject: Subject, sample: int) -> bool:
    """The command has returned: nothing is left that could hang."""
    return facts.world.incident.trigger == "exit"


def _machine(read: MachineReader) -> Accessor:
    return lambda facts, subject, sample: read(facts.world, subject, sample)


ACCESSORS: dict[str, Accessor] = {
    "log.stalled": _state_is("stalled"),
    "log.progressing": _state_is("advancing"),
    "log.slow": _state_is("slow"),
    "log.stalled_for": _progress("stalled_seconds"),
    "log.interval": _progress("median_interval_seconds"),
    "log.phase": _progress("phase"),
    "log.last_line": _progress("last_line"),
    "log.iteration": _progress("step"),
    "checkpoint.age": _checkpoint("age_seconds"),
    "checkpoint.step": _checkpoint("step"),
    "job.world_size": _world_size,
    "job.nodes": lambda facts, subject, sample: len(facts.world.nodes),
    "job.ended": _ended,
    "job.trigger": lambda facts, subject, sample: facts.world.incident.trigger,
    "ras": lambda facts, subject, sample: facts.comms.ras_known(),
    "ras.mismatch": lambda facts, subject, sample: facts.comms.ras_mismatch(),
    "ras.missing": lambda facts, subject, sample: facts.comms.ras_missing(),
    "ras.behind": lambda facts, subject, sample: facts.comms.ras_behind(subject.rank),
    "fr.behind": lambda facts, subject, sample: facts.comms.fr_behind(subject.rank),
    "fr.sizes_differ": lambda facts, subject, sample: facts.comms.fr_sizes_differ(subject.rank),
    "top": position,
    "top.function": _top_part(lambda frame: frame.function),
    "top.file": _top_part(lambda frame: frame.short_filename or frame.filename),
    "top.line": _top_part(lambda frame: frame.line or None),
    "stack": main_stack,
    "native": _native,
    "status": status,
    "exit_code": _exit_code,
    "unreadable": _unreadable,
    "proc.kind": _attribute(lambda process: process.kind, "its kind"),
    "proc.state": _attribute(lambda process: process.state, "its state"),
    "proc.wchan": _attribute(_wchan, "its wait channel"),
    "proc.threads": _attribute(_thread_count, "its list of threads"),
    "proc.d_threads": _attribute(_d_threads, "the state of its threads"),
    "proc.kernel": _attribute(_kernel, "its kernel stack"),
    "proc.traced": _attribute(
        lambda process: None if process.tracer_pid is None else process.tracer_pid > 0,
        "its tracer",
    ),
    "proc.rank": _attribute(lambda process: process.rank, "its rank"),
    "proc.cpus": _attribute(_cpus, "its CPU affinity"),
    "proc.run_queue": _rate(lambda process: process.run_queue_seconds, "its run-queue delay"),
    "io.read_rate": _rate(_counter("rchar"), "its I/O"),
    "io.write_rate": _rate(_counter("wchar"), "its I/O"),
    "disk.read_rate": _rate(_counter("read_bytes"), "its I/O"),
    "disk.write_rate": _rate(_counter("write_bytes"), "its I/O"),
    "cpu.rate": _rate(lambda process: process.cpu_seconds, "its CPU time"),
    "pipeline.stage": lambda facts, subject, sample: facts.world.stage_of(subject.rank),
    "pipeline.awaited": lambda facts, subject, sample: facts.pipeline.is_awaited(
        subject.rank, sample
    ),
    "step_lag": _step_lag,
    "alike": _alike,
    "thread.name": _thread_name,
    "node.name": _node_name,
    **{name: _machine(read) for name, read in MACHINE_FIELDS.items()},
}
