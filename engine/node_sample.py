"""Node and GPU facts of a sample, read beside the stacks, never waited for too long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from whyhang.collectors.bounded_child import run_bounded
from whyhang.collectors.facts_child import NO_GPU, PIDS, join_parts
from whyhang.collectors.gpu_binding import bind_gpus
from whyhang.collectors.log_events import find_events
from whyhang.collectors.own_module import module_command
from whyhang.collectors.procfs import read_environ
from whyhang.collectors.visible_devices import visible_devices
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.process import Process
from whyhang.schemas.progress import LogEvent

LIMIT_SECONDS = 12.0
_SLACK_SECONDS = 2.0
_MOST_KERNEL_LINES = 50
# Of whose sockets are looked at; trainers come first.
_MOST_PIDS = 4096
_MODULE = "whyhang.collectors.facts_child"


class NodeSample:
    """Reads the facts in a thread that is started at once.

    ``at`` is when the sample was taken, ISO 8601. ``processes`` are its processes, which get their
    GPUs. ``done`` is called with both, in that thread; an OSError of it is dropped.
    """

    def __init__(
        self,
        *,
        node: str,
        at: str,
        processes: Iterable[Process] = (),
        gpu: bool = True,
        limit_seconds: float = LIMIT_SECONDS,
        command: Sequence[str] | None = None,
        done: Callable[[NodeFacts, tuple[Process, ...]], None] | None = None,
    ) -> None:
        self._facts = NodeFacts(node=node, at=at, unread={"facts": "they were not read in time"})
        self._limit_seconds = limit_seconds
        self._processes = tuple(processes)
        self._command = list(command or _command(self._processes, gpu=gpu))
        self._see_all = tuple(_see_all(self._processes)) if gpu else ()
        self._done = done
        self._thread = threading.Thread(target=self._read, name="whyhang-facts", daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads: the facts stay unread
            self._thread.start()

    def facts(self) -> NodeFacts:
        """What is known, once it is or the time is over."""
        if self._thread.ident is not None:
            self._thread.join(self._limit_seconds + _SLACK_SECONDS)
        return self._facts

    def processes(self) -> tuple[Process, ...]:
        """The processes of the sample, with their GPUs as far as the facts are known by now."""
        return self._processes

    def _read(self) -> None:
        run = run_bounded(self._command, self._limit_seconds)
        facts = join_parts(run.stdout)
        unread = dict(facts.unread)
        if run.status != 0:
            last = (run.stderr.strip().splitlines() or ["no answer in time"])[-1]
            unread["facts"] = last[:200]
        facts = replace(facts, node=self._facts.node, at=self._facts.at, unread=unread)
        processes = self._processes
        if facts.gpus:
            gpus, processes = bind_gpus(facts.gpus, processes, self._see_all)
            facts = replace(facts, gpus=gpus)
        if self._done is not None:
            with contextlib.suppress(OSError):
                self._done(facts, processes)
        self._processes, self._facts = processes, facts


def kernel_events(facts: NodeFacts) -> tuple[LogEvent, ...]:
    """The faults that the kernel's log of this node tells of."""
    found: list[LogEvent] = []
    for line in (facts.kernel or ())[-_MOST_KERNEL_LINES:]:
        found += (
            replace(event, at=line.at, source="kernel")
            for event in find_events([line.line], node=facts.node)
        )
    return tuple(found)


def _command(processes: Sequence[Process], *, gpu: bool) -> list[str]:
    pids = ",".join(str(process.pid) for process in processes[:_MOST_PIDS])
    return module_command(_MODULE, PIDS + pids, *(() if gpu else (NO_GPU,)))


def _see_all(processes: Iterable[Process]) -> Iterator[int]:
    """The processes whose environment shows them every GPU; only those lists are looked at."""
    for process in processes:
        environ = read_environ(process.pid) if process.local_rank is not None else None
        if environ is not None and visible_devices(environ) is None:
            yield process.pid
