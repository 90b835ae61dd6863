"""Takes one sample: the stacks of the job's processes, within a time limit.

First every process is read without being stopped, trainers before all. In a deep sample, native
frames of the trainers follow, only where /proc, read just before, says that stopping is safe; what
fails there costs nothing, the first stacks stay.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from whyhang.collectors import procfs
from whyhang.collectors.kinds import number_workers, refine_kind
from whyhang.collectors.process_table import sort_key
from whyhang.collectors.pyspy import DumpResult, dump
from whyhang.schemas.config import CollectConfig
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.unread import Unread, UnreadKind
from whyhang.schemas.words import ProcessKind

NONBLOCKING_AT_ONCE = 4
NATIVE_AT_ONCE = 2  # each takes up to 335 MiB and a CPU for a second
_LEAST_SECONDS = 0.2  # less is no time for a dump
# A generic child may prove to be one of these once its stack is known.
_FOUND_BY_STACK: frozenset[ProcessKind] = frozenset(("dataloader", "checkpoint"))
# Failures that stopping the target would not mend, or must not try to.
_FINAL: frozenset[UnreadKind] = frozenset(
    ("permission", "gone", "zombie", "not_python", "unsupported", "namespace", "no_tool", "timeout")
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A process after its first dump; ``is_final`` where a second one is pointless."""

    process: Process
    is_final: bool


@dataclass(frozen=True, slots=True)
class _Budget:
    """The time of one sample; ``seconds`` from ``started`` (monotonic)."""

    started: float
    seconds: float

    def left(self) -> float:
        return self.started + self.seconds - time.monotonic()

    def unreached(self) -> Unread:
        return Unread(kind="not_reached", reason=f"not reached within {self.seconds:g} s")


def take_sample(
    processes: Sequence[Process],
    *,
    deep: bool,
    config: CollectConfig,
    deadline_seconds: float,
) -> tuple[Process, ...]:
    """The processes with their stacks, in their usual order.

    A process without a stack says why. Never takes much longer than ``deadline_seconds``, and
    never leaves a process stopped.
    """
    budget = _Budget(time.monotonic(), deadline_seconds)
    ordered = sorted(processes, key=sort_key)
    with ThreadPoolExecutor(NONBLOCKING_AT_ONCE, thread_name_prefix="whyhang-dump") as pool:
        readings = tuple(pool.map(lambda x: _read_nonblocking(x, config, budget), ordered))
    if deep and config.native != "never":
        with ThreadPoolExecutor(NATIVE_AT_ONCE, thread_name_prefix="whyhang-dump") as pool:
            read = tuple(pool.map(lambda x: _add_native(x, config, budget), readings))
    else:
        read = tuple(reading.process for reading in readings)
    return tuple(sorted(number_workers(read), key=sort_key))


def _read_nonblocking(process: Process, config: CollectConfig, budget: _Budget) -> _Reading:
    refusal = _why_not(process, config)
    left = budget.left()
    if refusal is None and left < _LEAST_SECONDS:
        refusal = budget.unreached()
    if refusal is not None:
        return _Reading(_unread(process, refusal), is_final=True)
    result = dump(process.pid, "nonblocking", min(config.timeout, left))
    read = _with(process, result)
    failure = result.failure
    return _Reading(
        replace(read, kind=refine_kind(read)),
        is_final=failure is not None and failure.kind in _FINAL,
    )


def _why_not(process: Process, config: CollectConfig) -> Unread | None:
    """Why no dump of this process is tried; None where it is."""
    if process.state == "Z":
        return Unread(kind="zombie", reason="exited: it has no stack")
    if process.state == "X":
        return Unread(kind="gone", reason="exited: it has no stack")
    by_stack = process.kind == "other" and not _FOUND_BY_STACK.isdisjoint(config.kinds)
    if process.kind != "launcher" and process.kind not in config.kinds and not by_stack:
        reason = f"processes of kind {process.kind} are not in collect.kinds"
        return Unread(kind="not_wanted", reason=reason)
    exe = procfs.read_exe(process.pid)
    if exe is not None and process.python is None and not procfs.python_of(exe)[0]:
        return Unread(kind="not_python", reason="not a Python process")
    return None


def _add_native(reading: _Reading, config: CollectConfig, budget: _Budget) -> Process:
    process = reading.process
    if reading.is_final or (process.kind != "trainer" and config.native != "always"):
        return process
    left = budget.left()
    if left < _LEAST_SECONDS:
        return _noted(process, budget.unreached())
    hazard = _foreign(process) or procfs.dump_hazard(process.pid)
    if hazard is not None:
        return _noted(process, hazard)
    result = dump(process.pid, "native", min(config.timeout, left))
    return _with(process, result) if result.failure is None else _noted(process, result.failure)


def _foreign(process: Process) -> Unread | None:
    """Why native frames cannot be had from here: py-spy traces threads by their inner numbers."""
    if procfs.read_inner_pid(process.pid) is None:
        return None
    return Unread(kind="namespace", reason="it lives in a PID namespace below this one")


def _with(process: Process, result: DumpResult) -> Process:
    kind = result.failure.kind if result.failure is not None else None
    state = {"gone": "X", "zombie": "Z"}.get(kind or "", process.state)
    return replace(process, dump=result.dump, threads=result.threads, state=state)


def _unread(process: Process, why: Unread) -> Process:
    told = Dump(ok=False, error=why.reason, kind=why.kind, cure=why.cure or None)
    return replace(process, dump=told, threads=Missing(why.reason))


def _noted(process: Process, why: Unread) -> Process:
    """The process with its first stacks, and why there are no better ones."""
    told = process.dump
    if told is None or not told.ok:
        return process
    error = f"no native frames: {why.reason}"
    return replace(process, dump=replace(told, error=error, kind=why.kind, cure=why.cure or None))
