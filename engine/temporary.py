"""Where temporary files go, also in a container that may write to none of its disks."""

from __future__ import annotations

import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")


def temporary_directory() -> Path:
    """The directory for temporary files; the one in memory where no disk takes any."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return MEMORY
