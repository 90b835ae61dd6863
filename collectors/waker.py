"""Tells at once when a directory gets a new file, so that a scan need not wait.

A comfort only: what the kernel does not report (other hosts' files, a full table of watches) is
found by the next scan.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import Protocol

# Watches are a resource of the whole host, and the training may need them.
_MAX_DIRECTORIES = 256


class Waker(Protocol):
    """Watches the directories that globs look into."""

    def follow(self) -> None:
        """Watch directories that have come since, such as those of another attempt."""
        ...

    def woken(self) -> bool:
        """Whether something came into one of them since the last call."""
        ...

    def stop(self) -> None:
        """Give the watches back."""
        ...


def start_waker(globs: Iterable[str]) -> Waker | None:
    """Watch the directories of these patterns; None where that is not possible."""
    try:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer
    except (ImportError, OSError):
        return None

    class Watchdog(FileSystemEventHandler):
        def __init__(self) -> None:
            self._dirty = False
            self._known: set[str] = set()
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()

        def on_created(self, event: FileSystemEvent) -> None:
            self._dirty = True

        def on_moved(self, event: FileSystemEvent) -> None:
            self._dirty = True

        def follow(self) -> None:
            for directory in directories(globs):
                if directory in self._known or len(self._known) >= _MAX_DIRECTORIES:
                    continue
                self._known.add(directory)
                try:
                    self._observer.schedule(self, directory, recursive=False)
                except (OSError, RuntimeError):
                    continue  # gone again, or out of watches
                # What came into it before it was watched is still to be found.
                self._dirty = True

        def woken(self) -> bool:
            dirty, self._dirty = self._dirty, False
            return dirty

        def stop(self) -> None:
            self._observer.stop()
            self._observer.join(timeout=2.0)

    try:
        waker = Watchdog()
        waker.follow()
    except (OSError, RuntimeError):
        return None
    waker.woken()  # whoever starts a waker scans anyway
    return waker


def directories(globs: Iterable[str]) -> Iterator[str]:
    """All that exist of the directories in which a new entry could matter, outer ones first."""
    for pattern in globs:
        parents = []
        parent = os.path.dirname(pattern)  # noqa: PTH120 (a pattern, not a path)
        while glob.has_magic(parent):
            parents.append(parent)
            parent = os.path.dirname(parent)  # noqa: PTH120
        parents.append(parent or ".")
        for place in reversed(parents):
            found = glob.glob(place, recursive=True) if glob.has_magic(place) else [place]  # noqa: PTH207
            yield from (name for name in sorted(found) if os.path.isdir(name))  # noqa: PTH112
