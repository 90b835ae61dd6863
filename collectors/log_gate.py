"""Which lines of a log may tell of a fault, found without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.collectors.literal_search import search_for
from whyhang.collectors.log_patterns import PATTERNS, match_line

# What follows these belongs to them: the frames and the exception; a report of failures; the names
# of the processes that did not come to a barrier; Horovod's list of ranks.
_TRACEBACK = b"Traceback (most recent call last)"
_REPORT = b"ChildFailedError"
_ABSENT = b"imed out task names:"
_STALLED = b"Stalled ranks:"
# What the launcher itself says tells of ranks without a pattern; and the exceptions that a
# traceback ends in may come late where many ranks write at once.
_ALWAYS = (
    b"failed (exitcode",
    b"will restart worker group",
    b"DistBackendError",
    b"DistStoreError",
)
# Stands in the lists of several libraries, and saves a literal for each: one search is enough.
_RANKS = b" ranks:"
# A line that says anything has one of these or stands behind one of the openers. `NCC` is left out:
# the search goes by first letters, and would stop at each line of NCCL's set-up.
_ALL = (
    *dict.fromkeys(pattern.literal.removeprefix("NCC").encode() for pattern in PATTERNS),
    *_ALWAYS,
    _TRACEBACK,
    _REPORT,
    _ABSENT,
    _STALLED,
    _RANKS,
)
# One that holds another is found with that one.
LITERALS: tuple[bytes, ...] = tuple(
    literal for literal in _ALL if not any(one in literal for one in _ALL if one != literal)
)
_FRAME = b'  File "'
_BEHIND_FRAME_BYTES = 8 * 1024
_BEHIND_BYTES = 64 * 1024
# XLA names twenty tasks at most, Horovod every rank and five of its tensors.
_BEHIND_NAMES_BYTES = {_ABSENT: 1024, _STALLED: 16 * 1024}
_MAX_LINE_BYTES = 16 * 1024


class LogGate:
    """Lets the notable lines of one log through; blocks may end anywhere."""

    def __init__(self) -> None:
        self._search = search_for(LITERALS)
        self._held = b""
        self._behind = 0

    def feed(self, block: bytes) -> Iterator[bytes]:
        """The notable lines that this block completes, in their order, cut at 16 KiB."""
        last = block.rfind(b"\n") + 1
        if not last:
            self._held = (self._held + block)[-2 * _MAX_LINE_BYTES :]
            return
        first = 0
        if self._held:
            first = block.find(b"\n") + 1
            yield from self._lines(self._held + block[:first], 0, None)
        self._held = block[last:]
        yield from self._lines(block, first, last)

    def finish(self) -> Iterator[bytes]:
        """The last line, where it has no end."""
        if not self._held:
            return
        yield from self._lines(self._held, 0, None)
        self._held = b""

    def _lines(self, block: bytes, start: int, end: int | None) -> Iterator[bytes]:
        end = len(block) if end is None else end
        if self._behind:
            first, start = start, _line_end(block, min(start + self._behind, end), end)
            self._behind = max(0, self._behind - (start - first))
            yield from _split(block[first:start])
        done = start
        for hit in self._search(block, start, end):
            if hit < done:
                continue
            first, done = _line_around(block, hit, start, end)
            line = block[first:done]
            names = next(
                (_BEHIND_NAMES_BYTES[one] for one in _BEHIND_NAMES_BYTES if one in line), 0
            )
            if names or _TRACEBACK in line or _REPORT in line:
                reach = done + names
                if _REPORT in line:
                    reach = first + _BEHIND_BYTES
                elif _TRACEBACK in line:
                    reach = _end_of_frames(block, first, first + _BEHIND_BYTES)
                self._behind = max(0, reach - end)
                done = _line_end(block, min(reach, end), end)
                yield from _split(block[first:done])
            elif _is_notable(line := line[:_MAX_LINE_BYTES]):
                yield line


def _is_notable(line: bytes) -> bool:
    """Whether the line says something: one that only holds a literal would crowd others out."""
    if any(literal in line for literal in _ALWAYS):
        return True
    return next(match_line(line.decode("utf-8", "replace"), None), None) is not None


def _split(block: bytes) -> Iterator[bytes]:
    for line in block.replace(b"\r", b"\n").split(b"\n"):
        if line:
            yield line[:_MAX_LINE_BYTES]


def _end_of_frames(block: bytes, start: int, end: int) -> int:
    """Where a traceback is over: what is written for a while behind its last frame belongs to it.

    Other ranks may write in between.
    """
    reach = start + _BEHIND_FRAME_BYTES
    while reach < end:
        frame = block.rfind(_FRAME, start, reach)
        if frame < 0 or frame + _BEHIND_FRAME_BYTES <= reach:
            break
        reach = frame + _BEHIND_FRAME_BYTES
    return min(reach, end)


def _line_around(block: bytes, at: int, start: int, end: int) -> tuple[int, int]:
    """Begin and end of the line there; states of a bar, which end in ``\\r``, are lines too."""
    first = block.rfind(b"\n", start, at) + 1 or start
    first = block.rfind(b"\r", first, at) + 1 or first
    last = _line_end(block, at, end)
    returned = block.find(b"\r", at, last)
    return first, last if returned < 0 else returned


def _line_end(block: bytes, start: int, end: int) -> int:
    """Where the line that holds ``start`` ends, its line break left out."""
    found = block.find(b"\n", start, end)
    return end if found < 0 else found
