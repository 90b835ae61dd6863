"""Tables that people make of stacks: worker, pid and the place where each stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whyhang.collectors.text_dump_frames import parse_frames
from whyhang.collectors.text_dump_headers import parse_ranks
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet

_TABLE_HEAD = re.compile(
    r"(?!.*\d)(?=.*\b(?:worker|rank|process|gpu)s?\b)(?=.*\b(?:location|frame|stack|where|function|stuck|hangs?|position|waits?)\b)",
    re.IGNORECASE,
)
_CELLS = re.compile(r"\s*\|\s*|\t+| {2,}")
_RANK_CELL = re.compile(r"(?:\w*?[A-Za-z_ -])?(\d{1,7}(?:(?:,|-|\.\.)\d{1,7})*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """Who stands where."""

    ranks: RankSet
    frames: tuple[Frame, ...]
    pid: int | None = None


def is_table_head(text: str) -> bool:
    """Whether a line names the columns of such a table."""
    return len(text) <= 200 and len(_CELLS.split(text)) > 1 and _TABLE_HEAD.match(text) is not None


def table_row(text: str) -> TableRow | None:
    """The ranks of the first cell, a pid in any, the frames of the last; None for other lines."""
    cells = [cell for cell in _CELLS.split(text.strip("|").strip()) if cell]
    if len(cells) < 2:
        return None
    found = parse_frames(cells[-1].strip("`* "), strict=True)
    rank = _RANK_CELL.match(cells[0].strip("` *"))
    ranks = None if rank is None else parse_ranks(rank[1])
    if found is None or ranks is None:
        return None
    pid = next((int(cell) for cell in cells[1:-1] if cell.isdecimal() and len(cell) < 10), None)
    return TableRow(ranks=ranks, frames=found.frames, pid=pid)
