"""The local directory that the evidence of an incident is written to before any other."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path

from whyhang.engine.sweep import SPOOL_PREFIX
from whyhang.engine.temporary import MEMORY, temporary_directory


def spool_root(place: Path | None = None) -> Path:
    """Our directory in that for temporary files, or in ``place``.

    Both are everybody's: a directory of that name that is not ours is not used.
    """
    place = place or temporary_directory()
    root = place / f"{SPOOL_PREFIX}{os.getuid()}"
    try:
        root.mkdir(mode=0o700)
    except FileExistsError:
        found = root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return Path(tempfile.mkdtemp(prefix=SPOOL_PREFIX, dir=place))
    return root


class Spool:
    """One incident's files, each written whole; in memory as soon as the disk takes no more.

    ``root`` is its place on the disk, of our own choice where None. Methods raise OSError where
    not even memory takes anything.
    """

    def __init__(self, name: str, root: Path | None = None) -> None:
        self._name = name
        self._in_memory = False
        # Facts of the node are written by a thread of theirs.
        self._lock = threading.RLock()
        try:
            self.directory = self._make(root or spool_root())
        except OSError:
            self.directory = self._begin_in_memory()

    def write(self, name: str, data: bytes) -> None:
        """Write a file below the directory; a watcher killed in the middle leaves no torn one."""
        with self._lock:
            try:
                self._write(name, data)
            except OSError:
                if self._in_memory:
                    raise
                self._go_on_in_memory(self.directory)
                self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        partial.write_bytes(data)
        partial.replace(path)

    def _go_on_in_memory(self, before: Path) -> None:
        """Take what was written so far along: it is the evidence of the first look."""
        self.directory = self._begin_in_memory()
        with contextlib.suppress(OSError):
            ignore = shutil.ignore_patterns("*.part")
            shutil.copytree(before, self.directory, dirs_exist_ok=True, ignore=ignore)
        shutil.rmtree(before, ignore_errors=True)

    def _begin_in_memory(self) -> Path:
        self._in_memory = True
        return self._make(spool_root(MEMORY))

    def _make(self, root: Path) -> Path:
        directory = root / self._name
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return directory
