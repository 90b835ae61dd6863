"""One output stream of the job that passes through a relay, seen from the supervisor.

The supervisor holds the read end of the job's pipe all the time, so that a relay's death neither
ends the job by SIGPIPE nor loses what is in the pipe; a dead or stalled relay is replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from whyhang.engine import relay
from whyhang.engine.spawn import spawn_helper

# Room for what the job writes while a stalled relay is noticed and replaced.
PIPE_BYTES = 1 << 20
STALLED_SECONDS = 3.0
# A relay that dies this often is not brought back at once, so that we never spin.
RESTART_PAUSE_SECONDS = 0.5


class Lane:
    """A pipe that the job writes to, and the relay that empties it into ``target``."""

    def __init__(self, target: int, log_paths: Sequence[Path]) -> None:
        # Our own number for it: 1 and 2 mean something else in the relay.
        self.target = os.dup(target)
        self.log_paths = tuple(log_paths)
        self.log_error: int | None = None
        self.restarts = 0
        self._source, self.job_end = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._source, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._pulse = os.memfd_create("whyhang-relay")
        os.truncate(self._pulse, relay.Pulse.LAYOUT.size)
        self._pid: int | None = None
        self._beats = 0
        self._beaten_at = 0.0
        self._started_at = 0.0
        self.closed = False

    def open(self, now: float) -> None:
        """Start the relay and let go of the end that belongs to the job."""
        os.close(self.job_end)
        self._start(now)

    def reaped(self, pid: int, status: int) -> bool:
        """Take note of an ended child; answer whether it was this lane's relay."""
        if pid != self._pid:
            return False
        self._pid = None
        code = os.waitstatus_to_exitcode(status)
        if code in (0, relay.READER_GONE):
            # Nobody reads or writes any more: the job must get the same answer from its pipe.
            self.close()
        return True

    def check(self, now: float) -> None:
        """Replace a relay that died or stands still. Call it about once a second."""
        if self.closed:
            return
        if self._pid is None:
            if now - self._started_at >= RESTART_PAUSE_SECONDS:
                self.restarts += 1
                self._start(now)
            return
        beats, failed = relay.Pulse.LAYOUT.unpack(os.pread(self._pulse, 16, 0))
        self.log_error = failed or None
        if beats != self._beats:
            self._beats, self._beaten_at = beats, now
        elif now - self._beaten_at > STALLED_SECONDS and self._should_move():
            # SIGKILL works on a stopped process; `reaped` and the next check do the rest.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def is_drained(self) -> bool:
        """Whether nothing of what the job wrote is still under way here."""
        return self.closed or not self._waiting_bytes()

    def close(self) -> None:
        """Let go of the pipe. A relay that still runs goes on until the last writer closes."""
        if not self.closed:
            self.closed = True
            os.close(self._source)
            os.close(self.target)

    def _start(self, now: float) -> None:
        self._started_at = self._beaten_at = now
        try:
            self._pid = spawn_helper(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    relay.__file__,
                    *map(str, (self._source, self.target, self._pulse, *self.log_paths)),
                ],
                keep=(self._source, self.target, self._pulse),
            )
        except OSError:
            self._pid = None  # out of processes or memory: the next check tries again

    def _should_move(self) -> bool:
        return self._has_room() or not self._waiting_bytes()

    def _has_room(self) -> bool:
        return bool(select.select([], [self.target], [], 0)[1])

    def _waiting_bytes(self) -> int:
        answer = fcntl.ioctl(self._source, termios.FIONREAD, b"\0" * 4)
        return int(struct.unpack("i", answer)[0])
