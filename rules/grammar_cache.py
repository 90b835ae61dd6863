"""Keeps the parser's tables between runs: building them takes half a second, reading them none.

The file lies in the user's cache directory, under a name that changes with the grammar, lark and
Python. It is a convenience only: what cannot be read or written, or what somebody else could have
written, is passed over in silence.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import marshal
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import lark
from lark import Lark

# Tables of this grammar take some 50 KB; anything much larger is none of ours.
MAX_BYTES = 4_000_000


def cached_parser(grammar: str, build: Callable[[], Lark]) -> Lark:
    """The parser of a grammar, from the cache where there is one, else built and kept."""
    path = cache_path(grammar)
    if path is not None:
        kept = _read(path)
        if kept is not None:
            return kept
    made = build()
    if path is not None:
        _write(path, made)
    return made


def cache_path(grammar: str) -> Path | None:
    """The cache file for a grammar, None where no home directory is known."""
    key = f"{lark.__version__}\n{sys.version}\n{sys.implementation.cache_tag}\n{grammar}"
    name = f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:24]}.bin"
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / "whyhang" / name
    try:
        return Path.home() / ".cache" / "whyhang" / name
    except RuntimeError:
        return None


def _read(path: Path) -> Lark | None:
    """The parser in a file; None if it is not there, damaged, or not ours alone."""
    # marshal rather than pickle: plain tables, nothing in them that could run.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            data = file.read(MAX_BYTES)
        digest, tables = data[:32], data[32:]
        if hashlib.sha256(tables).digest() != digest:
            return None
        return Lark.load(marshal.loads(tables))
    except Exception:  # noqa: BLE001 - whatever is wrong with a cache, it is built again
        return None


def _is_ours(status: os.stat_result) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and status.st_size <= MAX_BYTES
    )


def _write(path: Path, parser: Lark) -> None:
    """Keep a parser, all at once, so that no reader ever sees a half."""
    temporary = ""
    try:
        saved = io.BytesIO()
        parser.save(saved)
        tables = marshal.dumps(pickle.loads(saved.getvalue()))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".grammar-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(tables).digest() + tables)
        Path(temporary).replace(path)
    except Exception:  # noqa: BLE001 - a full or read-only disk must not cost the answer
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
