"""Text from outside made safe to print: thread names, paths and log lines may hold anything."""

from __future__ import annotations

import re
from functools import lru_cache

# Control characters, line and paragraph separators, signs that turn the direction of writing (they
# make a name read as another one), halves of surrogate pairs, and what XML 1.0 forbids.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]+"
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


@lru_cache(maxsize=65536)
def one_line(text: str) -> str:
    """The text without terminal escapes, each run of unprintable characters being one blank."""
    if text.isascii() and text.isprintable():
        return text.strip()
    return _UNPRINTABLE.sub(" ", _ANSI.sub("", text)).strip()


def shorten(text: str, limit: int) -> str:
    """The text in at most ``limit`` characters, cut in the middle."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """``1 rank``, ``2 ranks``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
