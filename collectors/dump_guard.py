"""Runs one py-spy and sees to its end, also when the collector cannot any more.

A py-spy that stops its target holds it for as long as py-spy lives. Were the collector killed or
stopped while py-spy waits for a thread in uninterruptible sleep, the job would stand with it. So a
stopping dump runs below this guard: it kills py-spy when the collector is gone (its end of the
pipe on standard input closes) or when the time is up, whatever state the collector is in. The
kernel lets the target run as soon as its tracer is dead.

Run as a plain file (``python -I -S dump_guard.py SECONDS COMMAND…``): imports nothing of ours and
only what starts fast. Ends with the command's status, 124 after the time limit, 125 when the
collector went away.
"""

import os
import select
import sys
import time

TIMED_OUT = 124
ABANDONED = 125
_POLL_SECONDS = 0.02


def guard(limit_seconds: float, command: list[str]) -> int:
    """Run the command, end it in time; the exit status."""
    deadline = time.monotonic() + limit_seconds
    pid = os.posix_spawn(command[0], command, os.environ)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.monotonic() >= deadline:
            return _end(pid, TIMED_OUT)
        # Nothing is ever written: readable means closed.
        if select.select([0], [], [], _POLL_SECONDS)[0]:
            return _end(pid, ABANDONED)


def _end(pid: int, status: int) -> int:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return status


if __name__ == "__main__":
    sys.exit(guard(float(sys.argv[1]), sys.argv[2:]))
