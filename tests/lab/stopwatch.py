"""Measures from outside for how long processes are stopped, by a debugger or a signal.

``python -I -S stopwatch.py PID…`` looks at each until its standard input closes, then prints the
longest stop of each in seconds, as JSON. A process of its own, so that nothing delays its looks
but the machine. A stop is counted from the first look that sees it to the first that does not:
one look more or less than it lasted.
"""

from __future__ import annotations

import json
import select
import sys
import time
from pathlib import Path

# Shorter than any stop for native frames: py-spy needs that long only to find its way.
LOOK_SECONDS = 0.004
STOPPED = frozenset("Tt")


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped or traced now; False where it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in STOPPED
    except (OSError, IndexError):
        return False


def watch(pids: list[int]) -> dict[int, float]:
    """The longest stop of each process that ran at first, until standard input closes."""
    running = [pid for pid in pids if not is_stopped(pid)]
    longest = dict.fromkeys(running, 0.0)
    since: dict[int, float] = {}
    while not select.select([0], [], [], LOOK_SECONDS)[0]:
        now = time.monotonic()
        for pid in running:
            stopped = is_stopped(pid)
            if stopped:
                since.setdefault(pid, now)
            if pid in since:
                longest[pid] = max(longest[pid], now - since[pid])
            if not stopped:
                since.pop(pid, None)
    return longest


if __name__ == "__main__":
    json.dump(watch([int(text) for text in sys.argv[1:]]), sys.stdout)
