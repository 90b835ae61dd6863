"""The flight recorder's dumps as people print and paste them: fenced, with headings, as Python."""

from __future__ import annotations

import ast
import codecs
import json
from collections.abc import Iterator

from whyhang.collectors.json_pastes import heading_in, split_values

# Python's own reader takes a hundred times the size of what it reads.
_MAX_PRINTED = 8 << 20
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


def packer_of(data: bytes) -> str | None:
    """The program that packed a file, if one did."""
    return next((name for magic, name in _PACKED.items() if data.startswith(magic)), None)


def text_of(data: bytes) -> str | None:
    """The text from its first brace on, if the data are the text of a dump; None for pickles."""
    data = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if data[:1] == b"{":
        return data.decode("utf-8", "replace")
    if data[:3] == b"```":
        _, brace, rest = data.partition(b"{")
        return (brace + rest).decode("utf-8", "replace")
    return None


def load_text(text: str) -> object:
    """The value that a text begins with, in JSON or as Python prints it. Raises ValueError."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except ValueError:
        if not text.startswith("{'") or len(text) > _MAX_PRINTED:
            raise
    try:
        return ast.literal_eval(text.rstrip().removesuffix("```"))
    except (SyntaxError, MemoryError, TypeError) as error:
        raise ValueError("neither JSON nor Python") from error


def split_paste(text: str) -> Iterator[tuple[int | None, bytes]]:
    """Each dump of a text with the rank that the heading above it names."""
    for above, found, own in split_values(text):
        if isinstance(found, dict) and ("entries" in found or "pg_status" in found):
            ranks = tuple(heading_in(above).ranks)
            yield (ranks[0] if len(ranks) == 1 else None), own.encode()
