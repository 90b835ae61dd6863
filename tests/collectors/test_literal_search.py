"""Finding literals in blocks, with the library and without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.literal_search import (
    MOST_LITERALS,
    Search,
    alike_together,
    search_for,
    search_singly,
)
from whyhang.collectors.log_gate import LITERALS as FAULTS

LITERALS = (b"NCCL", b"Traceback (most", b"rror", b"CCL WARN", b"no space left")
ORDINARY = st.sampled_from((b"step 12 ", b"ERR ", b"space %", b"\n", b"loss nan | lr 1e-5 ", b"Tr"))
PARTS = st.lists(ORDINARY | st.sampled_from(LITERALS) | st.binary(max_size=4), max_size=60)
SEARCHES = (search_for(LITERALS), partial(search_singly, LITERALS))


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    search_for.cache_clear()
    yield
    search_for.cache_clear()


@pytest.mark.parametrize("search", SEARCHES)
@given(PARTS)
def test_no_line_is_missed(search: Search, parts: list[bytes]) -> None:
    """Each line with a literal has a hit, no other line has one, and hits are in order."""
    block = b"".join(parts)
    hits = search(block, 0, len(block))
    assert hits == sorted(hits)
    begin = 0
    for line in block.split(b"\n"):
        told = any(begin <= hit < begin + len(line) for hit in hits)
        assert told == any(literal in line for literal in LITERALS)
        begin += len(line) + 1


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(("start", "end", "found"), [(0, 8, 1), (3, 8, 0), (0, 5, 0), (2, 7, 1)])
def test_only_between_start_and_end(search: Search, start: int, end: int, found: int) -> None:
    """A literal that is not wholly within the bounds is not found."""
    assert search(b"a NCCL b", start, end) == [2] * found


@pytest.mark.usefixtures("without_library")
def test_it_works_without_the_library() -> None:
    """Where no wheel of the library exists, the same is found."""
    assert search_for(LITERALS)(b"an error", 0, 8) == [4]


def test_one_search_is_enough_for_all_faults() -> None:
    """A second one would take as long again in every block of every log."""
    assert len(FAULTS) <= MOST_LITERALS


def test_more_literals_than_one_search_takes() -> None:
    """Above what the library's fast search takes, there are several; all are found, in order."""
    literals = tuple(b"%04d!" % number for number in range(2 * MOST_LITERALS + 5))
    block = b" ".join(reversed(literals))
    assert search_for(literals)(block, 0, len(block)) == list(range(0, len(block), 6))


@given(st.sets(st.binary(min_size=4, max_size=6), max_size=MOST_LITERALS))
def test_arranged_literals_are_the_same_and_alike_where_they_share_masks(
    literals: set[bytes],
) -> None:
    """All are kept; dealt out in turn, each mask gets neighbours of one order."""
    arranged = alike_together(literals)
    assert sorted(arranged) == sorted(literals)
    masks = 8 if len(literals) <= 32 else 16
    shared = [arranged[mask::masks] for mask in range(masks)]
    low_halves = [bytes(b & 0x0F for b in literal[:4]) for group in shared for literal in group]
    assert low_halves == sorted(low_halves)
