"""Tells whether a signal was sent to our whole process group or to the supervisor alone.

The job shares our process group. Ctrl-C, and schedulers that signal a group, reach it without
us, and a second SIGINT or SIGTERM would cut its clean-up short; a signal sent to our pid alone
must be forwarded. The kernel does not say which it was. A canary does: a forked process in the
group that waits for the same signals and reports each one that it receives.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections import Counter
from collections.abc import Collection

# Long enough for a busy machine, short against any grace period.
WAIT_SECONDS = 0.25
ORPHAN_CHECK_SECONDS = 5.0
SI_KERNEL = 0x80


class Canary:
    """The process and the pipe it reports through. Signals must be blocked before it is made."""

    def __init__(self, signals: Collection[int]) -> None:
        self._heard: Counter[int] = Counter()
        self._reports, writer = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _sit(writer, frozenset(signals), parent)
        os.close(writer)

    def reached_group(self, number: int, sender_code: int) -> bool:
        """Whether the signal that we received reached the group; waits a moment for the report."""
        while not self._heard[number]:
            ready, _, _ = select.select([self._reports], [], [], WAIT_SECONDS)
            if not ready:
                return False
            reports = os.read(self._reports, 64)
            if not reports:
                # The canary is dead: what a terminal sends comes from the kernel.
                return sender_code == SI_KERNEL
            self._heard.update(reports)
        self._heard[number] -= 1
        return True

    def close(self) -> None:
        """End the process."""
        os.close(self._reports)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it had gone before


def _sit(writer: int, signals: frozenset[int], parent: int) -> None:
    try:
        # The job's pipes must see their end although we live.
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (names are wanted)
            if int(name) not in (0, 1, 2, writer):
                with contextlib.suppress(OSError):
                    os.close(int(name))
        while os.getppid() == parent:
            received = signal.sigtimedwait(signals, ORPHAN_CHECK_SECONDS)
            if received is not None:
                os.write(writer, bytes([received.si_signo]))
    finally:
        os._exit(0)
