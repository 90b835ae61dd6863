"""Finds any of a set of literals in big blocks of a log, in one pass over it.

The library compares many bytes at once: a mebibyte takes some tenths of a millisecond, whatever the
log looks like. Where it has no wheel, each literal is searched for by itself: slower, but the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

# The library keeps its fast search up to so many literals.
MOST_LITERALS = 64

# Where literals stand between two places of a block, in order. Of literals that overlap the later
# one may be left out: a line that holds a literal has a hit.
Search = Callable[[bytes, int, int], list[int]]


@cache
def search_for(literals: tuple[bytes, ...]) -> Search:
    """The search for these literals; all logs share one, for it keeps nothing of what it read."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind
    except ImportError:
        return partial(search_singly, literals)
    # Only "leftmost" has the fast search.
    automaton = BytesAhoCorasick(literals, matchkind=MatchKind.LeftmostFirst)

    def search(block: bytes, start: int, end: int) -> list[int]:
        with memoryview(block)[start:end] as part:
            return [start + at for _, at, _ in automaton.find_matches_as_indexes(part)]

    return search


def search_singly(literals: tuple[bytes, ...], block: bytes, start: int, end: int) -> list[int]:
    """The same without the library, literal by literal; overlaps are told as well."""
    hits: list[int] = []
    for literal in literals:
        # Backwards Python skips the better the longer the literal is; most are not there at all.
        at = block.rfind(literal, start, end)
        while at >= 0:
            hits.append(at)
            at = block.rfind(literal, start, at + len(literal) - 1)
    return sorted(hits)
