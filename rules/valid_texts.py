"""Remembers which files the JSON Schema found nothing in, so that they need not be asked again.

Loading jsonschema takes longer than reading a file's rules; a file that has not changed since its
last check is as valid as it was.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from whyhang.rules import user_cache

HANG_SCHEMA = "hang.v1.json"
_FILE = "valid-files.txt"
# The digests of the last files, one a line.
_KEPT = 200
_MAX_BYTES = 100_000


def was_valid(text: str, schema: str) -> bool:
    """Whether this text was remembered as valid under this schema."""
    return _digest(text, schema) in _remembered()


def remember_valid(text: str, schema: str) -> None:
    """Remember that the schema found nothing in this text."""
    path = user_cache.cache_path(_FILE)
    if path is not None:
        lines = [*_remembered(), _digest(text, schema)][-_KEPT:]
        user_cache.write_cache(path, "\n".join(lines).encode())


def _remembered() -> tuple[str, ...]:
    path = user_cache.cache_path(_FILE)
    kept = None if path is None else user_cache.read_cache(path, max_bytes=_MAX_BYTES)
    return () if kept is None else tuple(kept.decode("ascii", errors="replace").split("\n"))


def _digest(text: str, schema: str) -> str:
    return hashlib.sha256(_schema_digest(schema) + text.encode()).hexdigest()


@cache
def _schema_digest(schema: str) -> bytes:
    return hashlib.sha256((files("whyhang.schemas") / schema).read_bytes()).digest()
