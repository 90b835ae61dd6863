"""Reads of /proc that may block: given up after a time limit, never waited for.

``cmdline``, ``environ``, ``maps``, ``io``, ``stack`` and ``syscall`` of a process take locks that a
thread of it can hold while it sleeps uninterruptibly (a page fault on a dead file system, an
``execve`` from one). A plain read would then sleep as long as the job does, so the read happens
in a thread that is left behind. Such waits can be killed: they do not keep whyhang from exiting.

On a machine that has no CPU for us the limit passes without any wait: a thread that is runnable
gets more time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_SECONDS = 0.5
_SUSPECT_SECONDS = 0.05  # for a process of which another read hangs already
_STARVED_TIMES = 20.0  # the limit, for a read that waits for nothing but a CPU

_stuck: dict[str, threading.Thread] = {}


def read_bytes(path: str) -> bytes | None:
    """The content of a file of /proc; None where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return None


def read_patiently(
    path: str,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    read: Callable[[str], bytes | None] = read_bytes,
) -> bytes | None:
    """As :func:`read_bytes`; None also where the read did not end within the limit.

    A path whose last read still hangs is not tried again.
    """
    earlier = _stuck.get(path)
    if earlier is not None:
        if earlier.is_alive():
            return None
        _stuck.pop(path, None)
    folder = path.rpartition("/")[0] + "/"
    if any(stuck.startswith(folder) for stuck in _stuck):
        limit_seconds = min(limit_seconds, _SUSPECT_SECONDS)
    result: list[bytes | None] = []
    thread = threading.Thread(target=lambda: result.append(read(path)), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads on this host, or the interpreter is ending
        return None
    patience = time.monotonic() + _STARVED_TIMES * limit_seconds
    thread.join(limit_seconds)
    while thread.is_alive() and _is_runnable(thread) and time.monotonic() < patience:
        thread.join(limit_seconds)
    if thread.is_alive():
        _stuck[path] = thread
        return None
    return result[0] if result else None


def _is_runnable(thread: threading.Thread) -> bool:
    """Whether the kernel would let it run now; False where it does not tell."""
    stat = read_bytes(f"/proc/self/task/{thread.native_id}/stat") or b""
    return stat.rpartition(b")")[2].split()[:1] == [b"R"]
