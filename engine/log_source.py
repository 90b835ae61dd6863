"""One log file that is followed: from its bytes to lines of progress and notable lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from whyhang.collectors.log_gate import LogGate
from whyhang.collectors.newest import FLOOD_BYTES, Newest
from whyhang.collectors.normalise import Normaliser
from whyhang.collectors.presets import PresetReader
from whyhang.collectors.tail import Chunk
from whyhang.schemas.progress import LogLine

LINES_KEPT = 400
# What a poll takes in of one file: the newest lines tell the progress, and the CPU is the job's.
LINES_PER_POLL = 2000
_USUAL_LINE_BYTES = 200
LINE_CHARACTERS = 4000
OWN_PREFIX = b"whyhang: "


class LogSource:
    """What one log tells. ``excerpt`` takes its last lines, as those of all other logs."""

    def __init__(self, preset: str, pattern: str | None, excerpt: deque[bytes]) -> None:
        self._excerpt = excerpt
        self._normaliser = Normaliser()
        self._reader = PresetReader(preset, pattern)
        self._gate = LogGate()
        self._newest: Newest | None = None
        self._ranks: set[int | None] = set()
        self._others = 0
        self._torn = b""

    @property
    def preset(self) -> str | None:
        """The preset that reads the log; None while none fits."""
        return self._reader.preset

    def progress(self, chunk: Chunk, now: float) -> Iterator[tuple[float, LogLine]]:
        """What new bytes say about progress, and when that came."""
        data = self._relevant(chunk.data)
        if not chunk.tentative:
            self._excerpt.extend(last_lines(chunk.data))
        for piece in self._normaliser.feed(without_own(data)):
            rank = None if piece.local else piece.rank
            for came, line in self._reader.feed_at(now, piece.text, rank):
                self._ranks.add(line.rank)
                yield came, line

    def notable(self, chunk: Chunk) -> tuple[str, ...]:
        """The lines that may tell of a fault; a tentative one waits for its end."""
        if chunk.tentative:
            self._torn = chunk.data
            return ()
        data, torn = chunk.data, self._torn
        self._torn = b""
        # A tentative line that ends now, or never will, is not given again.
        if torn and (chunk.restarted or data[:1] in (b"\n", b"\r")):
            data = torn + b"\n" + data
        return tuple(line.decode("utf-8", "replace") for line in self._gate.feed(data))

    def others_moved(self) -> bool:
        """Whether a bar of another phase has moved since the last call."""
        moved = self._reader.others > self._others
        self._others = self._reader.others
        return moved

    def _relevant(self, data: bytes) -> bytes:
        """Of a flood, the newest lines that can tell of progress."""
        if len(data) <= FLOOD_BYTES:
            return data
        literals = self._reader.literals
        if literals is None or (self._normaliser.in_container and _has_parts(data)):
            kept = newest(data)
            self._reader.pass_over(data.count(b"\n") - kept.count(b"\n"))
            return kept
        if self._newest is None or self._newest.literals != literals:
            self._newest = Newest(literals)
        several = len(self._ranks) > 1
        return self._newest.lines_of_all(data) if several else self._newest.lines(data)


def _has_parts(data: bytes) -> bool:
    """Whether a container runtime has cut lines: only the joined line shows what it is."""
    return b" stdout P " in data or b" stderr P " in data


def newest(data: bytes) -> bytes:
    """The last lines, as many as one poll takes in."""
    is_more, lines = _split_last(data, LINES_PER_POLL)
    return b"\n".join(lines) if is_more else data


def without_own(data: bytes) -> bytes:
    """Drop what whyhang itself wrote: with ``2>&1`` it stands in the log that is watched."""
    if OWN_PREFIX not in data:
        return data
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(OWN_PREFIX))


def last_lines(data: bytes) -> list[bytes]:
    """The last lines, of which those that are too long are cut."""
    _, lines = _split_last(data, LINES_KEPT)
    if max(map(len, lines)) <= LINE_CHARACTERS:
        return lines
    return [line if len(line) <= LINE_CHARACTERS else shown(line) for line in lines]


def _split_last(data: bytes, most: int) -> tuple[bool, list[bytes]]:
    """Whether there are more lines, and the last ones; of a flood only its end is copied."""
    size = most * _USUAL_LINE_BYTES
    while True:
        *dropped, tail = data[-size:].rsplit(b"\n", most + 1)
        if len(dropped) > most:
            return True, [*dropped[1:], tail]
        if size >= len(data):
            return False, [*dropped, tail]
        size *= 4


def shown(line: bytes) -> bytes:
    """A line as people see it: of a progress bar only its last state."""
    return line.rstrip(b"\r").rpartition(b"\r")[2][:LINE_CHARACTERS]


def is_theirs(line: bytes) -> bool:
    """Whether the job wrote something there."""
    return bool(line.strip()) and not line.startswith(OWN_PREFIX)
