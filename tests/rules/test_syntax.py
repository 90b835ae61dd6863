"""Syntax errors say what was expected, in words."""

from __future__ import annotations

import pytest

from whyhang.rules.findings import Finding, RuleErrors
from whyhang.rules.parse import parse_expr, parse_group


def fault(text: str) -> Finding:
    """The one finding about a condition."""
    with pytest.raises(RuleErrors) as caught:
        parse_expr(text)
    (finding,) = caught.value.findings
    assert finding.code == "H101"
    return finding


def test_an_unexpected_word_names_what_may_follow() -> None:
    """The words that fit are listed, sorted."""
    finding = fault("any rank on_disk")
    assert finding.message == "unexpected `on_disk`"
    assert finding.help == "expected agree, are, except, is, that"
    assert (finding.span.column, finding.span.length) == (10, 7)


def test_a_duration_without_unit_is_explained() -> None:
    """Terminals are named by examples."""
    finding = fault("stack unchanged for 60")
    assert finding.message == "unexpected `60`"
    assert finding.help == "expected $variable, a duration such as 5m"


@pytest.mark.parametrize(
    ("text", "column", "help"),
    [
        ("a && b", 3, "write `and`"),
        ("a || b", 3, "write `or`"),
        ("a = 3", 3, "write `==` to compare"),
        ("a and !b", 7, "write `not`"),
        ("a == 'x'", 6, "write text in double quotes"),
    ],
)
def test_habits_of_other_languages_are_answered(text: str, column: int, help: str) -> None:
    """The remedy is named by the character that people type."""
    finding = fault(text)
    assert finding.help == help
    assert finding.span.column == column


@pytest.mark.parametrize("text", ["", "   ", "any rank is", "(a and b", "a and", "no"])
def test_an_end_that_comes_too_early_is_said_so(text: str) -> None:
    """The place is the end of what there is."""
    finding = fault(text)
    assert "too early" in finding.message or "empty" in finding.message
    assert finding.span.column == max(len(text.rstrip()), 1)


def test_the_words_for_groups_are_summed_up() -> None:
    """Ten words for the kinds of groups would drown the rest."""
    with pytest.raises(RuleErrors) as caught:
        parse_group("== 3")
    assert caught.value.findings[0].help == "expected (, a group such as ranks, a name"
