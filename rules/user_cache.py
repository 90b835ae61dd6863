"""Keeps between runs what is expensive to find out again, in the user's cache directory.

It is a convenience only: what cannot be read or written, or what somebody else could have
written, is passed over in silence.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

_DIGEST_BYTES = hashlib.sha256().digest_size


def cache_path(name: str) -> Path | None:
    """The file of that name in the user's cache, None where no home directory is known."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / "whyhang" / name
    try:
        return Path.home() / ".cache" / "whyhang" / name
    except RuntimeError:
        return None


def read_cache(path: Path, *, max_bytes: int) -> bytes | None:
    """What was kept in a file; None if it is not there, damaged, too large, or not ours alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not _is_ours(os.fstat(file.fileno()), max_bytes):
                return None
            data = file.read(max_bytes)
    except OSError:
        return None
    digest, kept = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return kept if hashlib.sha256(kept).digest() == digest else None


def write_cache(path: Path, kept: bytes) -> None:
    """Keep bytes, all at once, so that no reader ever sees a half."""
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(kept).digest() + kept)
        Path(temporary).replace(path)
    except OSError:  # a full or read-only disk must not cost the answer
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _is_ours(status: os.stat_result, max_bytes: int) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and status.st_size <= max_bytes
    )
