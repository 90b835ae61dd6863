"""Of a flood of lines, the newest that can tell of progress."""

from __future__ import annotations

import re
from collections.abc import Iterable

from whyhang.collectors.literal_search import LiteralSearch
from whyhang.collectors.normalise import strip_escapes

# Below this all lines are read.
FLOOD_BYTES = 32 * 1024
# So many show whether lines come in bursts, and which bars move; those before are overtaken.
_LINES = 16
_FIRST_BYTES, _GROWTH = 8 * 1024, 4
_MOST_WRITERS = 2048
_BREAK = re.compile(rb"[\r\n]")


class Newest:
    """Finds the newest lines of one log that hold one of the literals."""

    def __init__(self, literals: Iterable[bytes]) -> None:
        self._search = LiteralSearch([(literal,) for literal in literals])

    def lines(self, data: bytes) -> bytes:
        """The last 16 lines, or states of bars, with a literal; all between is left out.

        The search goes backwards in steps that grow, so that dense logs cost least.
        """
        found: list[bytes] = []
        end, size = len(data), _FIRST_BYTES
        while end > 0 and len(found) < _LINES:
            start = _line_begin(data, end - size)
            found = self._within(strip_escapes(data[start:end])) + found
            end, size = start, size * _GROWTH
        return _joined(found[-_LINES:])

    def lines_of_all(self, data: bytes) -> bytes:
        """The last 16 lines, and the last one of each writer, told by what precedes a colon."""
        found = self._within(strip_escapes(data))
        last = {line[: line.find(b":") + 1]: number for number, line in enumerate(found)}
        wanted = sorted({*range(len(found))[-_LINES:], *list(last.values())[-_MOST_WRITERS:]})
        return _joined(found[number] for number in wanted)

    def _within(self, window: bytes) -> list[bytes]:
        found: list[bytes] = []
        done = 0
        for hit in self._search.hits(window, 0, len(window)):
            if hit < done:
                continue
            first = max(window.rfind(b"\n", done, hit), window.rfind(b"\r", done, hit)) + 1 or done
            ended = _BREAK.search(window, hit)
            done = len(window) if ended is None else ended.start()
            found.append(window[first:done])
        return found


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _line_begin(data: bytes, at: int) -> int:
    if at <= 0:
        return 0
    first = data.rfind(b"\n", 0, at) + 1
    return max(first, data.rfind(b"\r", first, at) + 1)
