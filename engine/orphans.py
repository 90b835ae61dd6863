"""Finds and ends what a stopped job left behind, by the marker in its environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from whyhang.schemas.environment import MARKER


def marked_processes(marker: str, name: str = MARKER) -> Iterator[int]:
    """The pids of all processes that carry the variable with this value, but for ourselves."""
    wanted = f"{name}={marker}".encode()
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            environ = (path / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environ.split(b"\0"):
            yield int(path.name)


def kill_marked(marker: str, name: str = MARKER) -> None:
    """Kill them all, and again those that were born meanwhile."""
    for _ in range(3):
        found = list(marked_processes(marker, name))
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
