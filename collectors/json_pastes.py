"""Several dumps of ``py-spy dump --json`` in one text, with headings between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# A dump is an array of objects. In the middle of one no line begins in this way.
_START = re.compile(r"^(?:> ?)?(?=\[\s*\{)", re.MULTILINE)


def split_dumps(text: str) -> Iterator[tuple[str, bytes]]:
    """Each dump with the text that stands above it."""
    decoder = json.JSONDecoder()
    end = 0
    for match in _START.finditer(text):
        if match.end() < end:
            continue
        try:
            found, after = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if _is_dump(found):
            yield text[end : match.start()], text[match.end() : after].encode()
            end = after


def _is_dump(found: object) -> bool:
    return isinstance(found, list) and all(
        isinstance(thread, dict) and "frames" in thread for thread in found
    )
