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
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

# Between a signal's way to us and to the canary, which the kernel takes in one go.
WAIT_SECONDS = 0.25
# For a canary that has taken a signal and gets no CPU to report it; short against a grace period.
BUSY_SECONDS = 5.0
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
        """Whether the signal that we received reached the group; waits a moment for the report.

        On a busy machine the canary may get no CPU for longer than that. Then the kernel is asked
        whether the signal waits for it, and one that is awake is given more time.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while self._heard[number] <= 0:
            if not self._has_report(WAIT_SECONDS):
                pending, asleep = _look_at(self.pid)
                if pending >> (number - 1) & 1:
                    break  # its report comes later, and is counted then
                if (asleep or time.monotonic() > deadline) and not self._has_report(0.0):
                    return False
                continue
            reports = os.read(self._reports, 64)
            if not reports:
                # The canary is dead: what a terminal sends comes from the kernel.
                return sender_code == SI_KERNEL
            self._heard.update(reports)
        self._heard[number] -= 1
        return True

    def _has_report(self, seconds: float) -> bool:
        return bool(select.select([self._reports], [], [], seconds)[0])

    def close(self) -> None:
        """End the process."""
        os.close(self._reports)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it had gone before


def _look_at(pid: int) -> tuple[int, bool]:
    """The signals that wait for a process, as the kernel's mask, and whether it sleeps."""
    pending, state = 0, ""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key in ("SigPnd", "ShdPnd"):
                pending |= int(value, 16)
            elif key == "State":
                state = value.strip()[:1]
    return pending, state in ("S", "")


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
