"""Which lines of a log may tell of a fault, found without looking at the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyhang.collectors.literal_search import Choice, LiteralSearch

# Every line of :mod:`whyhang.collectors.log_patterns` that a job's log can hold has one of these,
# or stands behind one of the openers.
# For some there is a choice; the cheaper one is taken.
LITERALS: tuple[Choice, ...] = (
    (b"CCL",),
    (b"Traceback (most recent call last)",),
    (b"EI000",),
    (b"ERR0",),
    (b"NVRM: ",),
    (b"SXid",),
    (b"killed by the OOM killer",),
    (b"No space left on device",),
    (b"Disk quota exceeded",),
    (b"in store based barrier",),
    (b" ranks: ",),
    (b"will restart worker group",),
)
# These can be told by two short literals as well, which let more lines through.
_FINE: tuple[Choice, ...] = (
    (b"ChildFailedError",),
    (b"failed (exitcode: ", b" local_rank: "),
    (b"DataLoader worker (pid",),
    (b"DataLoader timed out after",),
    (b"failed to pass monitoredBarrier",),
    (b"recvValueWithTimeout failed on",),
    (b"DistStoreError",),
    (b"oom_kill event", b": error: Detected "),
)
_COARSE: tuple[Choice, ...] = ((b"rror",), (b"ailed",))
# What follows these belongs to them: the frames and the exception; a report of failures.
_TRACEBACK = b"Traceback ("
_FRAME = b'  File "'
_REPORT = b"ChildFailedError"
_BEHIND_FRAME_BYTES = 8 * 1024
_BEHIND_BYTES = 64 * 1024
_MAX_LINE_BYTES = 16 * 1024
# NCCL tells its whole set-up at this level; few of those lines are about trouble.
_INFO = b"NCCL INFO"
_TROUBLE = re.compile(rb"peer|ailed|rror|Got |timeout|fatal|connect to |Call to |socket")


class LogGate:
    """Lets the notable lines of one log through; blocks may end anywhere."""

    def __init__(self) -> None:
        self._search = LiteralSearch(LITERALS + _FINE, LITERALS + _COARSE)
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
        for hit in self._search.hits(block, start, end):
            if hit < done:
                continue
            first, done = _line_around(block, hit, start, end)
            line = block[first:done]
            if _TRACEBACK in line or _REPORT in line:
                reach = first + _BEHIND_BYTES
                if _REPORT not in line:
                    reach = _end_of_frames(block, first, reach)
                self._behind = max(0, reach - end)
                done = _line_end(block, min(reach, end), end)
                yield from _split(block[first:done])
            elif _INFO not in line or _TROUBLE.search(line):
                yield line[:_MAX_LINE_BYTES]


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
