"""Waiting for what a kernel or another process does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG_SECONDS = 60.0


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a time that is long for any test."""
    deadline = time.monotonic() + LONG_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.002)
    return False
