"""Finding literals in blocks, however the log looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.literal_search import LiteralSearch

LITERALS = (b"NCCL", b"Traceback (most", b"rror", b"%|", b"no space left")
ORDINARY = st.sampled_from((b"step 12 ", b"ERR ", b"space %", b"\n", b"loss nan | lr 1e-5 ", b"Tr"))
PARTS = st.lists(ORDINARY | st.sampled_from(LITERALS) | st.binary(max_size=4), max_size=60)


def places(block: bytes, literal: bytes) -> list[int]:
    return [at for at in range(len(block)) if block.startswith(literal, at)]


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_nothing_is_missed(blocks: list[list[bytes]]) -> None:
    """Each place of each literal has a hit in it, and each hit lies in a literal."""
    search = LiteralSearch([(literal,) for literal in LITERALS])
    for block in (b"".join(parts) for parts in blocks):
        hits = search.hits(block, 0, len(block))
        spans = [(at, at + len(one)) for one in LITERALS for at in places(block, one)]
        assert all(any(first <= hit < last for hit in hits) for first, last in spans)
        assert all(any(first <= hit < last for first, last in spans) for hit in hits)
        assert hits == sorted(hits)


def test_a_log_that_changes_its_face_is_planned_anew() -> None:
    """What was rare at first and is common later is no short cut any more."""
    search = LiteralSearch([(b"xyz",)])
    search.hits(b"abc " * 1000, 0, 4000)
    first = search._plan
    for _ in range(12):
        search.hits(b"xx yy zz " * 1000 + b"xyz", 0, 9003)
    assert search._plan is not first
    assert search.hits(b"xx yy zz " * 1000 + b"xyz", 0, 9003)


@pytest.mark.parametrize(("start", "end", "found"), [(0, 8, 1), (3, 8, 0), (0, 5, 0), (2, 7, 1)])
def test_only_between_start_and_end(start: int, end: int, found: int) -> None:
    """A literal that is not wholly within the bounds is not found."""
    assert len(LiteralSearch([(b"NCCL",)]).hits(b"a NCCL b", start, end)) == found
