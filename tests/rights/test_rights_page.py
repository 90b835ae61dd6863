"""docs/rights.md is complete: a reader finds every kind that a report may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.schemas.unread import CURES, UNREAD_KINDS, UnreadKind

PAGE = Path(__file__).parents[2] / "docs/rights.md"


@pytest.mark.parametrize("kind", UNREAD_KINDS)
def test_every_kind_stands_there_with_its_cure(kind: UnreadKind) -> None:
    """The table has one row for each, in the words of the program."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{kind}` |")]
    (row,) = rows
    assert row.rstrip("| ").endswith(CURES[kind] or "nothing need be done")


def test_only_kinds_that_exist_stand_there() -> None:
    """What is no longer told is no longer explained."""
    table = PAGE.read_text().partition("## Kinds and cures")[2]
    named = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert named == list(UNREAD_KINDS)
