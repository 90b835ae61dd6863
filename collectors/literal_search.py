"""Finds a set of literals in big blocks of a log, much faster than one search for each.

Either the byte of a literal that is rarest in this very log is looked for (the C library's
``memchr`` passes over tens of gigabytes a second) and the literal is compared where it stands; or,
where all its bytes are common, the whole literal is searched for, from the end, because there
Python skips the better the longer it is. Which is cheaper is planned from a sample of the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_SAMPLE_BYTES = 32 * 1024
_SAMPLE_SLICES = 4
# Measured costs in milliseconds per MiB; only how they compare matters.
_PASS = 0.05
_FOUND = 200.0  # if every byte were the one that is looked for
_COMPARED = 100.0
_WHOLE = 3.5  # divided by the literal's length
# A plan that meets more bytes than it reckoned with is made anew, but not at each block.
_MORE_THAN_PLANNED = 2
_REPLAN_SLACK = 512
_REPLAN_BLOCKS = 8

# A thing to find by any one of several literals that all its lines hold; the cheapest is taken.
Choice = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a log is searched: by a byte, with the literals it belongs to and its place in each."""

    by_byte: tuple[tuple[bytes, tuple[tuple[bytes, int], ...]], ...]
    whole: tuple[bytes, ...]
    cost: float
    share: float


class LiteralSearch:
    """Where literals stand in the blocks of one log.

    Each of ``sets`` finds all there is to find, each in its own words: the cheapest is used.
    """

    def __init__(self, *sets: Iterable[Choice]) -> None:
        self._sets = tuple(tuple(choices) for choices in sets)
        self._plan: _Plan | None = None
        self._blocks_since = 0
        self._stale = False

    def hits(self, block: bytes, start: int, end: int) -> list[int]:
        """Positions within literals, in order; a place may be told more than once."""
        plan = self._current(block, start, end)
        found: list[int] = []
        seen = 0
        find, startswith = block.find, block.startswith
        for byte, literals in plan.by_byte:
            at = find(byte, start, end)
            while at >= 0:
                seen += 1
                for literal, offset in literals:
                    if startswith(literal, at - offset if at >= offset else end):
                        found.append(at)
                        break
                at = find(byte, at + 1, end)
        for literal in plan.whole:
            if block.rfind(literal, start, end) >= 0:
                at = find(literal, start, end)
                while at >= 0:
                    found.append(at)
                    at = find(literal, at + 1, end)
        expected = plan.share * (end - start)
        self._stale |= seen > _MORE_THAN_PLANNED * expected + _REPLAN_SLACK
        found.sort()
        return found

    def _current(self, block: bytes, start: int, end: int) -> _Plan:
        self._blocks_since += 1
        if self._plan is None or (self._stale and self._blocks_since > _REPLAN_BLOCKS):
            shares = _shares(_sample(block, start, end))
            self._plan = min((_plan_for(one, shares) for one in self._sets), key=lambda p: p.cost)
            self._blocks_since = 0
            self._stale = False
        return self._plan


def _sample(block: bytes, start: int, end: int) -> bytes:
    size, part = end - start, _SAMPLE_BYTES // _SAMPLE_SLICES
    if size <= _SAMPLE_BYTES:
        return block[start:end]
    places = (start + (size - part) * n // (_SAMPLE_SLICES - 1) for n in range(_SAMPLE_SLICES))
    return b"".join(block[at : at + part] for at in places)


def _shares(sample: bytes) -> dict[int, float]:
    """How common each byte is, as a share of all."""
    return {byte: count / max(1, len(sample)) for byte, count in Counter(sample).items()}


def _plan_for(choices: tuple[Choice, ...], shares: dict[int, float]) -> _Plan:
    """Take the byte that saves most, for all literals that hold it, as long as one saves."""
    left = list(choices)
    by_byte: list[tuple[bytes, tuple[tuple[bytes, int], ...]]] = []
    cost = share = 0.0
    while left:
        candidates = {byte for choice in left for literal in choice for byte in literal}
        saved, byte = max((_saving(byte, left, shares), -byte) for byte in candidates)
        byte, common = -byte, shares.get(-byte, 0.0)
        if saved <= 0:
            break
        served = [(choice, _holding(byte, choice)) for choice in left]
        literals = tuple((one, one.index(byte)) for _, one in served if one is not None)
        by_byte.append((bytes((byte,)), literals))
        left = [choice for choice, one in served if one is None]
        cost += _PASS + common * (_FOUND + _COMPARED * len(literals))
        share += common
    whole = tuple(max(choice, key=len) for choice in left)
    return _Plan(
        by_byte=tuple(by_byte),
        whole=whole,
        cost=cost + sum(_WHOLE / len(literal) for literal in whole),
        share=share,
    )


def _saving(byte: int, choices: Iterable[Choice], shares: dict[int, float]) -> float:
    """What looking for this byte saves, against looking for the whole literals."""
    common = shares.get(byte, 0.0)
    instead = (
        _WHOLE / max(map(len, choice)) - common * _COMPARED
        for choice in choices
        if _holding(byte, choice) is not None
    )
    return sum(instead) - _PASS - common * _FOUND


def _holding(byte: int, choice: Choice) -> bytes | None:
    return next((literal for literal in choice if byte in literal), None)
