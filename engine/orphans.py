"""Finds and ends what a stopped job left behind, by the marker in its environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from whyhang.schemas.environment import MARKER, is_marked


def marked_processes(marker: str, name: str = MARKER) -> Iterator[int]:
    """The pids of all processes that carry the variable with this value, but for ourselves."""
    prefix = f"{name}="
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            environ = (path / "environ").read_bytes()
        except OSError:
            continue
        for entry in environ.decode("utf-8", "surrogateescape").split("\0"):
            if entry.startswith(prefix) and is_marked(entry.removeprefix(prefix), marker):
                yield int(path.name)
                break


def kill_marked(marker: str, name: str = MARKER) -> None:
    """Kill them all, and again those that were born meanwhile."""
    for _ in range(3):
        found = list(marked_processes(marker, name))
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
