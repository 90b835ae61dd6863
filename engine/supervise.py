"""Runs the job: starts it, passes signals on, waits, and keeps relays and the watcher going.

One thread, no handlers: all signals are blocked and fetched one by one, so that nothing of ours
can interrupt anything. No failure of the processes around it reaches the job.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from whyhang.engine.canary import Canary
from whyhang.engine.lane import Lane
from whyhang.engine.lookout import Lookout
from whyhang.engine.orphans import kill_marked
from whyhang.engine.spawn import spawn
from whyhang.schemas.errors import UsageError

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# After one of these an exit status other than 0 is what was asked for.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
TICK_SECONDS = 1.0
# After the job's end, for its last output to pass. What a reader does not take until then stays
# with the relay, which lives on; but in a container it would die with us.
DRAIN_SECONDS = 10.0
# For the watcher, which has something to write only if the job failed: two seconds of work, for
# which it may have to wait on a node that others keep busy.
FAREWELL_SECONDS = 2.0
DIAGNOSIS_SECONDS = 30.0
EX_TEMPFAIL = 75
NOT_EXECUTABLE = 126
NOT_FOUND = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to start. ``marker`` is the value of WHYHANG_JOB, by which orphans are found."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    marker: str


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Starts a job and stays with it until it ends.

    ``lanes`` maps the job's descriptors to relayed streams, ``lookout`` is None where nobody is
    to watch; ``say`` tells people something; ``grace_seconds`` passes between TERM and KILL when
    a stop was asked for, which only a job with ``may_stop`` obeys.
    """

    job: Job
    say: Callable[[str], None]
    lanes: Mapping[tuple[int, ...], Lane] = field(default_factory=dict)
    lookout: Lookout | None = None
    may_stop: bool = False
    grace_seconds: float = 120.0
    _pid: int = -1
    _status: int | None = None
    _mask: Sequence[int] = ()
    _canary: Canary | None = None
    _told_blind: bool = False
    _told_trouble: bool = False
    _interrupted: bool = False
    _stop_at: float | None = None

    def run(self) -> int:
        """Run the job to its end and answer the exit status a shell would give.

        Raises UsageError with status 126 or 127 where the command cannot be started.
        """
        watched = {*FORWARDED, signal.SIGCHLD}
        # Where it was ignored (some launchers do) the kernel would throw exit statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._mask = tuple(signal.pthread_sigmask(signal.SIG_BLOCK, watched))
        try:
            with contextlib.suppress(OSError):
                self._canary = Canary(FORWARDED)
            self._start()
            while self._status is None:
                self._wait_once(watched, TICK_SECONDS)
            return self._farewell(watched)
        finally:
            if self._canary:
                self._canary.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _start(self) -> None:
        streams = {fd: lane.job_end for fds, lane in self.lanes.items() for fd in fds}
        try:
            self._pid = spawn(
                self.job.command,
                self.job.environ,
                streams=streams,
                mask=self._mask,
                search_path=True,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(self.job.command[0], error) from error
        now = time.monotonic()
        for lane in self.lanes.values():
            lane.open(now)
        if self.lookout:
            self.lookout.start(self._pid, now, self._mask)

    def _wait_once(self, watched: set[signal.Signals], seconds: float) -> None:
        received = signal.sigtimedwait(watched, seconds)
        if received is not None and received.si_signo != signal.SIGCHLD:
            self._forward(received.si_signo, received.si_code)
        self._reap()
        try:
            self._tend()
        except Exception as error:  # noqa: BLE001 (nothing of this may cost the exit status)
            if not self._told_trouble:
                self._told_trouble = True
                self.say(f"internal error: {error!r}; the job is not affected")

    def _forward(self, number: int, sender_code: int) -> None:
        self._interrupted = self._interrupted or number in ENDING
        if self._canary and self._canary.reached_group(number, sender_code):
            return
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _reap(self) -> None:
        """Collect every ended child; also strangers, for in a container we may be process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
                continue
            if any(lane.reaped(pid, status) for lane in self.lanes.values()):
                continue
            if self.lookout:
                now = time.monotonic()
                self.lookout.reaped(pid, now, self._mask, job_runs=self._status is None)

    def _tend(self) -> None:
        now = time.monotonic()
        for lane in self.lanes.values():
            lane.check(now)
        if not self.lookout:
            return
        self.lookout.check(now)
        error = next((lane.log_error for lane in self.lanes.values() if lane.log_error), None)
        if error and not self._told_blind:
            self._told_blind = True
            reason = os.strerror(error)
            self.say(f"the copy of the job's output cannot be written ({reason})")
            self.lookout.tell({"blind": reason})
        for request in self.lookout.requests():
            if "stop" in request and self.may_stop and self._stop_at is None:
                self._stop(str(request["stop"]), now)
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = float("inf")
            kill_marked(self.job.marker)

    def _stop(self, print_id: str, now: float) -> None:
        """Ask the job to end, as hang.yaml wants it for a hang that is certain."""
        self.say(f"stopping the job (on_hang: stop), incident {print_id}")
        self._stop_at = now + self.grace_seconds
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)

    def _farewell(self, watched: set[signal.Signals]) -> int:
        """Let the last output pass and the watcher write, both for a bounded time."""
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        if self._stop_at is not None:
            kill_marked(self.job.marker)
        ended = time.monotonic()
        if self.lookout:
            self.lookout.tell({"exit": code, "interrupted": self._interrupted})
        patience = FAREWELL_SECONDS if code == 0 else DIAGNOSIS_SECONDS
        impatient = False
        while not impatient:
            passed = time.monotonic() - ended
            output_waits = passed < DRAIN_SECONDS and not all(
                lane.is_drained() for lane in self.lanes.values()
            )
            watcher_writes = (
                self.lookout is not None
                and self.lookout.is_running
                and not self.lookout.is_stopped
                and passed < patience
            )
            if not output_waits and not watcher_writes:
                break
            received = signal.sigtimedwait(watched, 0.05)
            impatient = received is not None and received.si_signo != signal.SIGCHLD
            self._reap()
            for lane in self.lanes.values():
                lane.check(time.monotonic())
        if self.lookout:
            self.lookout.kill()
        if self._stop_at is not None:
            return EX_TEMPFAIL
        return code if code >= 0 else 128 - code


class CannotStart(UsageError):
    """The command cannot be started; the exit status is the one that shells use."""

    def __init__(self, program: str, error: OSError | ValueError) -> None:
        missing = isinstance(error, FileNotFoundError)
        super().__init__(
            f"cannot start {program!r}: {getattr(error, 'strerror', error)}",
            hint="the command stands after `--`; is it on PATH?" if missing else "",
        )
        self.exit_status = NOT_FOUND if missing else NOT_EXECUTABLE
