"""Copies the flight recorder dumps of this node's ranks into an incident.

Dumps that exist are taken. One is asked for only where the job itself switched the pipe on, once a
hang. A rank that has died meanwhile leaves its dump behind, so places are remembered.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from whyhang.collectors.procfs import is_gone, read_environ, read_stat
from whyhang.schemas.incident import Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

# Of all ranks of a node together.
LIMIT_SECONDS = 10.0
LIMIT_BYTES = 256 << 20
_POLL_SECONDS = 0.5
_RECORDING = (
    "TORCH_FR_BUFFER_SIZE",
    "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
)
# Of a pickle and of a JSON object.
_ENDS = (b".", b"}")
_PLACES = (*_RECORDING, "HOME", "XDG_CACHE_HOME")

Write = Callable[[int, bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Where the dump of a rank would stand; ``started`` is wall time, None where unknown."""

    pid: int
    environ: Mapping[str, str]
    started: float | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the job says anything of its recorder."""
        return any(self.environ.get(name) for name in _RECORDING)


@dataclass(slots=True)
class FlightPickup:
    """What was taken so far; every rank's dump is taken once.

    One that a rank still writes is waited for: on a busy node that takes seconds.
    """

    recorders: dict[int, Recorder] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    _bytes: int = 0
    _asked: bool = False
    _growing: dict[int, int] = field(default_factory=dict)
    _reason: str | None = None

    def fresh(self) -> FlightPickup:
        """One for a new hang, with the same knowledge of places."""
        return FlightPickup(recorders=dict(self.recorders))

    def know(self, processes: Iterable[Process]) -> None:
        """Remember where the trainers would leave their dumps."""
        for process in processes:
            if process.kind != "trainer" or process.rank is None:
                continue
            known = self.recorders.get(process.rank)
            if known is not None and known.pid == process.pid:
                continue
            environ = read_environ(process.pid)
            if environ is not None:
                self.recorders[process.rank] = Recorder(
                    pid=process.pid,
                    environ={name: environ[name] for name in _PLACES if name in environ},
                    started=_started(process.pid),
                )

    def pick_up(self, write: Write, *, since: float | None, may_ask: bool) -> None:
        """Take what is there and newer than ``since`` (wall time; None: than the process)."""
        deadline = time.monotonic() + LIMIT_SECONDS
        self._take(write, since, deadline)
        asked = set[int]()
        if may_ask and not self._asked:
            self._asked = True
            asked = self._ask()
        while waiting := (asked | set(self._growing)) - self.taken:
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
            self._take(write, since, deadline, only=waiting)

    @property
    def source(self) -> Source | None:
        """Whether dumps were taken; None where the job has no recorder and left none."""
        missing = set(self.recorders) - self.taken
        if not missing and self.taken:
            return Source(ok=True)
        if self.taken or any(recorder.is_wanted for recorder in self.recorders.values()):
            return Source(ok=bool(self.taken), reason=self._reason)
        return None

    def _take(
        self, write: Write, since: float | None, deadline: float, only: Iterable[int] | None = None
    ) -> None:
        from whyhang.collectors.flight_recorder_files import read_dump_of

        for rank in sorted(set(self.recorders if only is None else only) - self.taken):
            recorder = self.recorders[rank]
            newest = recorder.started if since is None else since
            if time.monotonic() >= deadline:
                self._reason = f"rank {rank}: not reached within {LIMIT_SECONDS:g} s"
                return
            if newest is None:
                continue
            # The root of a process that has gone is not to be had; mostly it was ours.
            pid = os.getpid() if is_gone(recorder.pid) else recorder.pid
            data = read_dump_of(pid, rank, recorder.environ, not_before=newest)
            if isinstance(data, Missing):
                self._growing.pop(rank, None)
                self._reason = f"rank {rank}: {data.reason}"
            elif self._grows(rank, data, deadline):
                continue
            elif self._bytes + len(data) > LIMIT_BYTES:
                self._reason = f"rank {rank}: more than {LIMIT_BYTES >> 20} MiB of dumps"
            else:
                with contextlib.suppress(OSError):
                    write(rank, data)
                    self._bytes += len(data)
                    self.taken.add(rank)

    def _grows(self, rank: int, data: bytes, deadline: float) -> bool:
        """Whether a dump without an end is worth another look; one that did not grow is torn."""
        before = self._growing.pop(rank, None)
        is_last = time.monotonic() + 2 * _POLL_SECONDS >= deadline
        if is_last or before == len(data) or data.rstrip().endswith(_ENDS):
            return False
        self._growing[rank] = len(data)
        return True

    def _ask(self) -> set[int]:
        """Ask where the job opened a pipe for it; the ranks that were asked."""
        from whyhang.collectors.flight_recorder_files import ask_for_dump

        asked = set()
        for rank in set(self.recorders) - self.taken:
            recorder = self.recorders[rank]
            refusal = ask_for_dump(recorder.pid, rank, recorder.environ)
            if refusal is None:
                asked.add(rank)
        return asked


def _started(pid: int) -> float | None:
    """When a process was started, as wall time."""
    stat = read_stat(pid)
    if stat is None:
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
