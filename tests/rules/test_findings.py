"""How findings are printed."""

from __future__ import annotations

from whyhang.rules.findings import (
    Finding,
    RuleErrors,
    carets,
    format_finding,
    sorted_findings,
    with_sources,
)
from whyhang.schemas.evidence import Span


def test_a_finding_shows_its_line_with_carets_and_a_remedy() -> None:
    """File, line and column, code, message, source, carets, help."""
    finding = Finding(
        code="H201",
        message="unknown field or def `wating`",
        span=Span(file="bad.yaml", line=42, column=13, length=6),
        help="did you mean `waiting`?",
        source="  ranks are wating",
    )
    assert list(format_finding(finding)) == [
        "bad.yaml:42:13: error[H201]: unknown field or def `wating`",
        "    42 |   ranks are wating",
        "       |             ^^^^^^",
        "       = help: did you mean `waiting`?",
    ]


def test_carets_stand_below_tabs_and_wide_characters() -> None:
    """Tabs are repeated, wide characters take two columns."""
    assert carets("\tab", 2, 2) == "\t^^"
    assert carets("名 x", 3, 1) == "   ^"
    assert carets("x", 5, 1) == "    ^"


def test_findings_are_sorted_and_told_once() -> None:
    """Order is by file, line and column, whatever the order they were found in."""
    late = Finding(code="H1", message="b", span=Span(file="a", line=9, column=1))
    early = Finding(code="H9", message="a", span=Span(file="a", line=2, column=5))
    assert sorted_findings([late, early, late]) == (early, late)
    assert RuleErrors([late, early]).findings == (early, late)


def test_source_lines_are_attached_by_file() -> None:
    """A finding in a file that is not there stays without a source line."""
    here = Finding(code="H1", message="a", span=Span(file="a", line=2, column=1))
    gone = Finding(code="H1", message="a", span=Span(file="b", line=2, column=1))
    sources = [finding.source for finding in with_sources([here, gone], {"a": ("x", "y")})]
    assert sources == ["y", None]
