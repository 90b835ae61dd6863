"""Which lines of a log may tell of a fault, found without looking at the others.

Fault lines hold one of a few literals. A block is not searched for them one by one: for each, the
byte of it that is rarest in this very log is looked for (the C library's ``memchr`` passes over
tens of gigabytes a second), and only where it stands is the literal compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# Every line of :mod:`whyhang.collectors.log_patterns` that a job's log can hold has one of these,
# or stands behind one of the openers.
# For some there is a choice; the cheaper one is taken.
LITERALS: tuple[tuple[bytes, ...], ...] = (
    (b"NCCL",),
    (b"HCCL",),
    (b"Traceback (", b'  File "'),
    (b"EI000",),
    (b"ERR0",),
    (b"NVRM: ",),
    (b"SXid",),
    (b"OOM killer",),
    (b"No space left on device",),
    (b"Disk quota exceeded",),
    (b"in store based barrier",),
    (b"[ready ranks:",),
    (b"[missing ranks:",),
)
# These can be told by two short literals as well, which let more lines through.
_FINE: tuple[tuple[bytes, ...], ...] = (
    (b"ChildFailedError",),
    (b"(exitcode: ", b" local_rank: "),
    (b"DataLoader ",),
    (b"monitoredBarrier",),
    (b"recvValueWithTimeout",),
    (b"DistStoreError",),
    (b"oom_kill event", b": error: Detected "),
)
_COARSE: tuple[tuple[bytes, ...], ...] = ((b"rror",), (b"ailed",))
# What follows these belongs to them: a report of failures; the frames and the exception.
_OPENERS = (b"Traceback (", b"ChildFailedError", b'  File "')
_FRAME = b'  File "'
_BEHIND_BYTES = 64 * 1024
_MAX_LINE_BYTES = 16 * 1024
_SAMPLE_BYTES = 64 * 1024
# Above this share of all bytes a byte is no short cut: the whole literal is searched for.
_TOO_COMMON = 1 / 4000
# Sharing the byte of another literal saves a pass, where it is not much more common.
_SHARE_SLACK = 4
_REPLAN_SHARE = 1 / 500


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a log is searched: by a byte, with the literals it belongs to and its place in each."""

    by_byte: tuple[tuple[bytes, tuple[tuple[bytes, int], ...]], ...]
    whole: tuple[re.Pattern[bytes], ...]


class LogGate:
    """Lets the notable lines of one log through; blocks may end anywhere."""

    def __init__(self) -> None:
        self._plan: _Plan | None = None
        self._held = b""
        self._behind = 0
        self._stale = False

    def feed(self, block: bytes) -> Iterator[bytes]:
        """The notable lines that this block completes, in their order, cut at 16 KiB."""
        last = block.rfind(b"\n") + 1
        if not last:
            self._held = (self._held + block)[-2 * _MAX_LINE_BYTES :]
            return
        if self._plan is None or self._stale:
            self._plan = _make_plan(block[:_SAMPLE_BYTES])
            self._stale = False
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
        self._plan = self._plan or _make_plan(self._held)
        yield from self._lines(self._held, 0, None)
        self._held = b""

    def _lines(self, block: bytes, start: int, end: int | None) -> Iterator[bytes]:
        end = len(block) if end is None else end
        if self._behind:
            first, start = start, _line_end(block, min(start + self._behind, end), end)
            self._behind = max(0, self._behind - (start - first))
            yield from _split(block[first:start])
        done = start
        for hit in self._hits(block, start, end):
            if hit < done:
                continue
            first = block.rfind(b"\n", start, hit) + 1 or start
            if block.startswith(_FRAME, first):  # the heading stands in the line before
                first = block.rfind(b"\n", start, max(start, first - 1)) + 1 or start
            done = _line_end(block, hit, end)
            line = block[first:done]
            if any(opener in line for opener in _OPENERS):
                done = _line_end(block, min(first + _BEHIND_BYTES, end), end)
                self._behind = max(0, _BEHIND_BYTES - (done - first))
                yield from _split(block[first:done])
            else:
                yield line[:_MAX_LINE_BYTES]

    def _hits(self, block: bytes, start: int, end: int) -> list[int]:
        assert self._plan is not None
        found: list[int] = []
        seen = 0
        for byte, literals in self._plan.by_byte:
            at = block.find(byte, start, end)
            while at >= 0:
                seen += 1
                for literal, offset in literals:
                    if at >= offset and block.startswith(literal, at - offset):
                        found.append(at)
                at = block.find(byte, at + 1, end)
        for regex in self._plan.whole:
            found += (match.start() for match in regex.finditer(block, start, end))
        if seen > (end - start) * _REPLAN_SHARE + 64:
            self._stale = True  # the log has changed its face
        return sorted(found)


def _make_plan(sample: bytes) -> _Plan:
    fine = _plan_for(LITERALS + _FINE, sample)
    coarse = _plan_for(LITERALS + _COARSE, sample)
    return fine if len(fine.whole) <= len(coarse.whole) else coarse


def _plan_for(wanted: tuple[tuple[bytes, ...], ...], sample: bytes) -> _Plan:
    counts = Counter(sample)
    limit = len(sample) * _TOO_COMMON

    def cost(literal: bytes) -> int:
        return min(counts[byte] for byte in literal)

    chosen: dict[int, list[tuple[bytes, int]]] = {}
    whole = []
    for literal in sorted((min(choice, key=cost) for choice in wanted), key=cost, reverse=True):
        if cost(literal) > limit:
            whole.append(re.compile(re.escape(literal)))
            continue
        shared = [b for b in chosen if b in literal and counts[b] <= cost(literal) + _SHARE_SLACK]
        rarest = min(literal, key=lambda byte: (counts[byte], _USE[byte]))
        byte = min(shared, key=lambda byte: counts[byte], default=rarest)
        chosen.setdefault(byte, []).append((literal, literal.index(byte)))
    by_byte = tuple((bytes((byte,)), tuple(literals)) for byte, literals in chosen.items())
    return _Plan(by_byte, tuple(whole))


# How many literals a byte could serve, negative: of two equally rare ones the more useful goes.
_USE = Counter({byte: -sum(byte in c[0] for c in LITERALS + _FINE) for byte in range(256)})


def _split(block: bytes) -> Iterator[bytes]:
    for line in block.split(b"\n"):
        if line:
            yield line[:_MAX_LINE_BYTES]


def _line_end(block: bytes, start: int, end: int) -> int:
    """Where the line that holds ``start`` ends, its line break left out."""
    found = block.find(b"\n", start, end)
    return end if found < 0 else found
