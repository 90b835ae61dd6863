"""The text that a pattern cannot match without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.pattern_literals import required_literal
from whyhang.collectors.preset_patterns import FAMILIES


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"^iter (?P<step>\d+): loss", ": loss"),
        (r"\[exiting program (?:at|after)", "[exiting program "),
        (r"abc?d+efg*", "ab"),
        (r"(?:ab|cd)ef{2}gh", "gh"),
        (r"[abc\]]xyz.*?q", "xyz"),
        (r"abc|def", None),
        (r"(?:abc)?\d+", None),
        (r"a\tbc", "a\tbc"),
        (r"\*{5} Running (?!training)\w+ \*{5}$", " Running "),
    ],
)
def test_required_literal(pattern: str, literal: str | None) -> None:
    """Groups, classes, alternatives and what may be left out are not counted."""
    assert required_literal(pattern) == literal


def test_every_pattern_of_the_presets_has_one() -> None:
    """A family without would have to be read line by line; the generic counter names its own."""
    assert [family.name for family in FAMILIES if family.literals is None] == []
    patterns = {(f.name, p.regex.pattern) for f in FAMILIES for p in f.patterns if not p.literal}
    assert {name for name, _ in patterns} == {"step"}


@given(st.data())
def test_what_matches_holds_the_literal(data: st.DataObject) -> None:
    """No text that a pattern matches lacks its literal."""
    family = data.draw(st.sampled_from(FAMILIES))
    pattern = data.draw(st.sampled_from(family.patterns))
    text = data.draw(st.from_regex(pattern.regex))
    assert pattern.literal in text
    assert family.literals is not None
    assert any(literal in text.encode() for literal in family.literals)
