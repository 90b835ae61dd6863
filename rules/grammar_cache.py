"""Keeps the parser's tables between runs: building them takes half a second, reading them none.

Their file has a name that changes with the grammar, lark and Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import lark
from lark import Lark

from whyhang.rules import user_cache

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
    return user_cache.cache_path(name)


def _read(path: Path) -> Lark | None:
    tables = user_cache.read_cache(path, max_bytes=MAX_BYTES)
    if tables is None:
        return None
    # marshal rather than pickle: plain tables, nothing in them that could run.
    try:
        return Lark.load(marshal.loads(tables))
    except Exception:  # noqa: BLE001 - whatever is wrong with a cache, it is built again
        return None


def _write(path: Path, parser: Lark) -> None:
    with contextlib.suppress(Exception):  # what cannot be kept is built again
        saved = io.BytesIO()
        parser.save(saved)
        user_cache.write_cache(path, marshal.dumps(pickle.loads(saved.getvalue())))
