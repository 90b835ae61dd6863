"""The watcher process, seen from the supervisor: started, told how the job ended, missed once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from whyhang.collectors.own_module import module_command
from whyhang.engine.spawn import spawn_helper

WATCHER = "whyhang.engine.watcher"
# A watcher that ends sooner would end again.
WORTH_RESTARTING_SECONDS = 5.0
STOPPED_SECONDS = 3.0
MAX_REQUEST_BYTES = 4096


class Lookout:
    """Keeps one watcher going and speaks with it through two pipes.

    ``settings`` is what it needs to know, a JSON object; ``say`` tells people something.
    """

    def __init__(self, settings: Mapping[str, object], say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._pid: int | None = None
        self._job_pid = -1
        self._started_at = 0.0
        self._stopped_since: float | None = None
        self._restarted = False
        self._told_stopped = False
        self._orders = self._requests = -1

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""
        return self._pid is not None

    def start(self, job_pid: int, now: float, mask: Sequence[int]) -> None:
        """Start the watcher of a job; a failure is told, never raised."""
        self._job_pid = job_pid
        self._started_at = now
        try:
            theirs_in, self._orders = os.pipe()
            self._requests, theirs_out = os.pipe()
            os.set_blocking(self._orders, False)
            os.set_blocking(self._requests, False)
            self._pid = spawn_helper(
                module_command(WATCHER, str(theirs_out)),
                keep=(theirs_out,),
                streams={0: theirs_in, 2: 2},
                mask=mask,
            )
            os.close(theirs_in)
            os.close(theirs_out)
        except OSError as error:
            self._say(f"cannot start the watcher ({error.strerror}): nobody watches this job")
            return
        self.tell({**self._settings, "pid": job_pid})

    def tell(self, message: Mapping[str, object]) -> None:
        """Send one JSON line; lost if the watcher does not read."""
        with contextlib.suppress(OSError):
            os.write(self._orders, json.dumps(message).encode() + b"\n")

    def requests(self) -> tuple[Mapping[str, object], ...]:
        """What the watcher has asked for since the last call."""
        try:
            data = os.read(self._requests, MAX_REQUEST_BYTES)
        except OSError:
            return ()
        answers = []
        for line in data.splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    answers.append(value)
        return tuple(answers)

    def reaped(self, pid: int, now: float, mask: Sequence[int], *, job_runs: bool) -> bool:
        """Take note of an ended child; answer whether it was the watcher. Starts it again once."""
        if pid != self._pid:
            return False
        self._pid = None
        if job_runs:
            self._close()
            if self._restarted or now - self._started_at < WORTH_RESTARTING_SECONDS:
                self._say("the watcher has ended: nobody is watching this job any more")
            else:
                self._say("the watcher has ended unexpectedly; starting it again")
                self._restarted = True
                self.start(self._job_pid, now, mask)
        return True

    def check(self, now: float) -> None:
        """Tell people once if the watcher was stopped."""
        if self._pid is None:
            return
        if _state(self._pid) != "T":
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since >= STOPPED_SECONDS and not self._told_stopped:
            self._told_stopped = True
            self._say(f"the watcher (pid {self._pid}) is stopped: nobody is watching this job")

    @property
    def is_stopped(self) -> bool:
        """Whether it cannot do anything now."""
        return self._pid is not None and _state(self._pid) == "T"

    def kill(self) -> None:
        """End the watcher; whoever loops reaps it."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def _close(self) -> None:
        for fd in (self._orders, self._requests):
            with contextlib.suppress(OSError):
                os.close(fd)


def _state(pid: int) -> str | None:
    """The kernel's letter for a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split(maxsplit=1)[0]
