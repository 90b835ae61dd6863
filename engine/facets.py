"""Facets: the raw facts that fields read together, and the classes of subjects equal in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias

from whyhang.engine.classes import Partition
from whyhang.engine.machine_fields import machine_facet
from whyhang.engine.positions import Positions
from whyhang.engine.world import NOBODY, ScopeName, Subject, World
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack

# A name in READERS, or a kind of members and one of their facets: ("child", "stack").
Facet: TypeAlias = "str | tuple[ScopeName, Facet]"
Reader: TypeAlias = Callable[[World, Positions, Subject, int], Hashable]

NOT_SEEN = Missing("it was not seen in this sample")
NO_FRAME = Missing("its dump shows no frame of the thread that matters")
NO_SAMPLE = Missing("no sample was taken")

# What `unchanged` reads beside the field: a new process that stands where the old one stood is new.
TIME_FACET = "restart"
# What ranks wait for along a pipeline: no fact of one rank alone.
TRANSFERS = "transfers"
# What each field reads. A field that is missing here is asked of every subject.
_FIELDS: dict[str, tuple[str, ...]] = {
    "status": ("state",),
    "unreadable": ("stack", "state"),
    "exit_code": ("events", "state"),
    "step_lag": ("step",),
    "alike": ("stack", "stage"),
    "pipeline.stage": ("stage",),
    "pipeline.awaited": (TRANSFERS,),
    "native": ("stack",),
    "stack": ("stack",),
    "cpu.rate": ("counters",),
    "proc.kind": ("kind",),
    "proc.state": ("state",),
    "proc.wchan": ("state", "tasks"),
    "proc.threads": ("tasks",),
    "proc.d_threads": ("state", "tasks"),
    "proc.kernel": ("state", "tasks"),
    "proc.traced": ("state",),
    "proc.run_queue": ("counters",),
    "proc.cpus": ("cpus",),
    "thread.name": ("thread",),
    "node.name": ("node",),
}
_FAMILIES: dict[str, tuple[str, ...]] = {
    "log": (),
    "job": (),
    "checkpoint": (),
    "top": ("stack",),
    "io": ("counters",),
    "disk": ("counters",),
    "event": ("events",),
    "ras": ("comms",),
    "fr": ("comms",),
    "gpu": ("gpu",),
    "tcp": ("tcp",),
    "node": ("machine",),
}


def facets_of(field: str) -> tuple[str, ...]:
    """The facets that a field reads."""
    found = _FIELDS.get(field)
    return _FAMILIES.get(field.partition(".")[0], ("self",)) if found is None else found


def process_of(subject: Subject, sample: int) -> Process | Missing:
    """The subject's process in a sample."""
    if not subject.track:
        return NO_SAMPLE
    process = subject.track[sample]
    return NOT_SEEN if process is None else process


def stack_of(positions: Positions, subject: Subject, sample: int) -> Stack | Missing:
    """The stack of the thread that matters; of a thread its own."""
    if subject.threads:
        own = subject.threads[sample]
        return NOT_SEEN if own is None else own.stack
    process = process_of(subject, sample)
    if isinstance(process, Missing):
        return process
    thread = positions.thread(process)
    if isinstance(thread, Missing):
        return thread
    return thread.stack if thread.stack.frames else NO_FRAME


class Classes:
    """The classes of an incident's subjects. Each is formed once, and only if it is asked for."""

    def __init__(self, world: World, positions: Positions) -> None:
        self._world = world
        self._positions = positions
        self._plain: dict[tuple[ScopeName, Facet, int], Partition] = {}
        self._joint: dict[tuple[ScopeName, frozenset[Facet], int, int], Partition] = {}
        # Facets of ranks that are worked out for all of them together.
        self.together: dict[str, Callable[[int], Partition]] = {}

    def of(
        self, scope: ScopeName, facets: Iterable[Facet], sample: int, since: int | None = None
    ) -> Partition:
        """The subjects of a scope that are equal in these facets at a sample.

        With ``since``, in all samples from that one on.
        """
        chosen, first = frozenset(facets), sample if since is None else since
        key = (scope, chosen, sample, first)
        if key not in self._joint:
            everybody = self._world.table(scope).members
            found = Partition((), (everybody,) if everybody else ())
            for facet in sorted(chosen, key=str):
                for each in range(first, sample + 1):
                    found = found & self.plain(scope, facet, each)
            self._joint[key] = found
        return self._joint[key]

    def plain(self, scope: ScopeName, facet: Facet, sample: int) -> Partition:
        """The classes by a single facet at a single sample."""
        key = (scope, facet, sample)
        if key not in self._plain:
            if isinstance(facet, tuple):
                kind, inner = facet
                members = self.plain(kind, inner, sample)
                if len(members) <= 1 and inner != "exists":
                    # Subjects differ at most in how many members they have.
                    return self.plain(scope, (kind, "exists"), sample)
                self._plain[key] = self.by_members(scope, kind, members)
            elif facet in self.together:
                self._plain[key] = self.together[facet](sample)
            else:
                read, world, positions = READERS[facet], self._world, self._positions
                self._plain[key] = Partition.by_key(
                    (bit, read(world, positions, subject, sample))
                    for bit, subject in world.table(scope).subjects.items()
                )
        return self._plain[key]

    def by_members(self, scope: ScopeName, kind: ScopeName, members: Partition) -> Partition:
        """The subjects whose members are, one after the other, of the same classes."""
        kin, subjects = self._world.kin(scope, kind), self._world.table(scope).subjects
        number = members.index().get
        return Partition.by_key(
            (bit, tuple([number(member) for member in kin.get(bit, NOBODY)])) for bit in subjects
        )


def _stack(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    stack = stack_of(positions, subject, sample)
    if isinstance(stack, Missing):
        return stack.reason
    process = process_of(subject, sample)
    dump = None if isinstance(process, Missing) else process.dump
    # Equal stacks are the same object: the reader interns them.
    return id(stack), dump is not None and dump.ok and dump.mode == "native"


def _state(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    process = process_of(subject, sample)
    if isinstance(process, Missing):
        node = subject.node
        unread = node is not None and subject.rank is not None and subject.rank in node.unread
        return id(node), unread, bool(subject.track)
    threads, tracer = process.threads, process.tracer_pid
    return (
        process.state,
        process.wchan,
        process.kernel_stack,
        process.exit,
        tracer is None or tracer > 0,
        tracer is None,
        threads.reason if isinstance(threads, Missing) else None,
    )


def _kind(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    process = process_of(subject, sample)
    return None if isinstance(process, Missing) else process.kind


def tasks(process: Process) -> tuple[int, int, str | None] | None:
    """How many threads there are, how many in D, and where the first of those waits."""
    if process.os_threads is None:
        return None
    asleep = [thread for thread in process.os_threads if thread.state == "D"]
    channel = next((thread.wchan for thread in asleep if thread.wchan), None)
    return len(process.os_threads), len(asleep), channel


def _cpus(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    process = process_of(subject, sample)
    return "" if isinstance(process, Missing) else process.cpus_allowed


def _tasks(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    process = process_of(subject, sample)
    return "" if isinstance(process, Missing) else tasks(process)


def _counters(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    """Both ends of the interval that rates belong to."""
    last = max(sample, 1)
    ends = subject.track[last - 1 : last + 1]
    return tuple(
        [None if end is None else (end.io, end.cpu_seconds, end.run_queue_seconds) for end in ends]
    ), len({end.pid for end in ends if end is not None})


def is_restarted(subject: Subject, sample: int) -> bool:
    """Whether another process has taken the place of the one in the sample before."""
    if not 0 < sample < len(subject.track):
        return False
    before, now = subject.track[sample - 1], subject.track[sample]
    return before is not None and now is not None and before.pid != now.pid


def _restart(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    return is_restarted(subject, sample)


def _events(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    """The lines that name the subject."""
    events = world.incident.events
    if not events:
        return None
    rank, node = subject.rank, subject.node
    if rank is not None:
        return tuple(n for n, event in enumerate(events) if rank in event.ranks)
    name = None if node is None else node.name
    return tuple(n for n, event in enumerate(events) if name in (None, event.node))


def _comms(world: World, positions: Positions, subject: Subject, sample: int) -> Hashable:
    """What communicators tell of a subject; without RAS and recorder they tell nobody apart."""
    return id(subject) if world.incident.ras or world.incident.flight else None


def _machine(family: str) -> Reader:
    read = machine_facet(family)
    return lambda world, positions, subject, sample: read(world, subject, sample)


READERS: dict[str, Reader] = {
    "stack": _stack,
    "state": _state,
    "tasks": _tasks,
    "cpus": _cpus,
    "restart": _restart,
    "counters": _counters,
    "comms": _comms,
    "events": _events,
    "gpu": _machine("gpu"),
    "tcp": _machine("tcp"),
    "machine": _machine("node"),
    "exists": lambda world, positions, subject, sample: None,
    "kind": _kind,
    "node": lambda world, positions, subject, sample: id(subject.node),
    "stage": lambda world, positions, subject, sample: world.stage_of(subject.rank),
    "step": lambda world, positions, subject, sample: world.incident.progress.per_rank_step.get(
        -1 if subject.rank is None else subject.rank
    ),
    "self": lambda world, positions, subject, sample: id(subject),
    "thread": lambda world, positions, subject, sample: (
        None if not subject.threads or subject.threads[-1] is None else subject.threads[-1].name
    ),
}
