"""Deletes what watchers that were killed left behind, once it is past its time.

Small on purpose: it runs at the watcher's start, beside a job that trains.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from whyhang.engine.temporary import MEMORY, temporary_directory

SPOOL_PREFIX = "whyhang-spool-"
# No copy to a store takes that long.
STAGING_SECONDS = 86400.0
_STAGING = re.compile(r"\.\d{19}\.\d+")


def sweep(directory: Path, before: float) -> None:
    """Delete what a directory's folders hold that nothing was written to since a time."""
    with contextlib.suppress(OSError):
        for job in directory.iterdir():
            with contextlib.suppress(OSError):
                if all(path.stat().st_mtime < before for path in (job, *job.iterdir())):
                    shutil.rmtree(job, ignore_errors=True)


def sweep_spools(before: float) -> None:
    """Delete incidents that were never published; their evidence is as old as any in a store."""
    for spool in spools():
        sweep(spool, before)


def spools() -> Iterator[Path]:
    """The spools of this user, wherever one was made."""
    for place in dict.fromkeys((temporary_directory(), MEMORY)):
        with contextlib.suppress(OSError):
            for path in place.glob(f"{SPOOL_PREFIX}*"):
                if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid():
                    yield path


def sweep_stagings(store: Path, now: float) -> None:
    """Delete half of what was being copied into a store when its watcher was killed."""
    with contextlib.suppress(OSError):
        for path in store.iterdir():
            if _STAGING.fullmatch(path.name) and path.stat().st_mtime < now - STAGING_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
