"""Of a flood of lines, the newest that can tell of progress."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from whyhang.collectors.literal_search import search_for
from whyhang.collectors.normalise import strip_escapes

# Below this all lines are read.
FLOOD_BYTES = 32 * 1024
# The newest of so many are read, and the first, which shows how much work came at once; which bars
# move, the newest show; those between are overtaken.
_LINES, _READ = 16, 7
_FIRST_BYTES, _GROWTH = 8 * 1024, 4
_MOST_WRITERS = 2048
_BREAK = re.compile(rb"[\r\n]")


class Newest:
    """Finds the newest lines of one log that hold one of the literals.

    It goes backwards in steps that grow, so that dense logs cost least.
    """

    def __init__(self, literals: tuple[bytes, ...]) -> None:
        self.literals = literals
        self._search = search_for(literals)
        self._writers: set[bytes] | None = None

    def lines(self, data: bytes) -> bytes:
        """Of the last 16 lines, or states of bars, with a literal the first and the last seven."""
        found = list(islice(self._backwards(data), _LINES))
        return _in_order(found[:_READ] + found[_READ:][-1:])

    def lines_of_all(self, data: bytes) -> bytes:
        """The last seven lines, and the last one of each writer, told by what precedes a colon.

        It is over once all have been heard who wrote in the data before.
        """
        kept: list[bytes] = []
        heard: set[bytes] = set()
        awaited = None if self._writers is None else set(self._writers)
        for line in self._backwards(data):
            writer = line[: line.find(b":") + 1]
            if len(kept) < _READ or (writer not in heard and len(heard) < _MOST_WRITERS):
                kept.append(line)
            heard.add(writer)
            if awaited is not None:
                awaited.discard(writer)
                if not awaited and len(kept) >= _READ:
                    break
        self._writers = heard
        return _in_order(kept)

    def _backwards(self, data: bytes) -> Iterator[bytes]:
        """The lines with a literal, the newest first."""
        end, size = len(data), _FIRST_BYTES
        while end > 0:
            start = _line_begin(data, end - size)
            yield from self._within(strip_escapes(data[start:end]))
            end, size = start, size * _GROWTH

    def _within(self, window: bytes) -> Iterator[bytes]:
        first = len(window)
        for hit in reversed(self._search(window, 0, first)):
            if hit >= first:
                continue
            ended = _BREAK.search(window, hit)
            last = len(window) if ended is None else ended.start()
            first = _line_begin(window, hit)
            yield window[first:last]


def _in_order(newest_first: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in reversed(newest_first))


def _line_begin(data: bytes, at: int) -> int:
    if at <= 0:
        return 0
    first = data.rfind(b"\n", 0, at) + 1
    return max(first, data.rfind(b"\r", first, at) + 1)
