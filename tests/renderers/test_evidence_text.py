"""Explanations as text: which clauses are shown, and how names are opened."""

from __future__ import annotations

from typing import Any

from whyhang.renderers.evidence_text import render_explanation
from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.explanation import Definition, Explanation, RuleExplanation
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import Verdict

YES, NO, OPEN = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
VERDICT = Verdict(
    verdict="local_hang",
    category="disk_io",
    confidence="high",
    headline="Rank 2 sleeps",
    rule="p/a",
)


def clause(text: str, value: Truth, *children: Evidence, **more: Any) -> Evidence:
    """A clause at line 3."""
    span = Span(file="hang.yaml", line=3, column=7)
    return Evidence(text=text, value=value, span=span, children=children, **more)


def shown(*rules: RuleExplanation, why_not: bool = False, **more: Any) -> list[str]:
    """The lines of an explanation below its head."""
    explanation = Explanation(verdict=VERDICT, rules=rules, **more)
    return list(render_explanation(explanation, why_not=why_not))[3:]


def rule(id: str, result: Any, evidence: Evidence, **more: Any) -> RuleExplanation:
    """A rule that says what it is about."""
    conclusion = ("local_hang", "disk_io", "high")
    return RuleExplanation(id=id, result=result, evidence=evidence, concludes=conclusion, **more)


def test_only_what_decides() -> None:
    """Of a false `and` the false clauses are shown, of a true one all."""
    parts = (clause("log.stalled", YES, detail="no step for 5 s"), clause("share(odd) < 1%", NO))
    both = clause("log.stalled and share(odd) < 1%", NO, *parts)
    assert shown(rule("p/a", "not", both), why_not=True) == [
        "p/a: NOT",
        "  ✗ share(odd) < 1%  [hang.yaml:3:7]",
    ]
    true = clause("log.stalled and x", YES, parts[0], clause("any rank is x", YES))
    assert shown(rule("p/a", "fired", true))[1:] == [
        "  ✓ log.stalled    no step for 5 s  [hang.yaml:3:7]",
        "  ✓ any rank is x  [hang.yaml:3:7]",
    ]


def test_names_are_opened() -> None:
    """A definition stands in front of what it means; one of several parts above them."""
    leaf = clause("share(odd) <= 50%", YES, detail="1 of 4")
    single = clause("few", YES, clause("share(odd) <= 50%", YES, detail="1 of 4"))
    several = clause("split", YES, clause("few and halted", YES, single, clause("x", YES)))
    lines = shown(rule("p/a", "fired", several))
    assert [line.split("  [")[0] for line in lines[1:]] == [
        "  ✓ split",
        "    ✓ few: share(odd) <= 50%  1 of 4",
        "    ✓ x",
    ]
    assert leaf == single.children[0]


def test_not_shows_what_it_negates() -> None:
    """Below a negation stand the clauses of what is negated, with their own marks."""
    waiting = clause("waiting", NO, clause("a or b", NO, clause("a", NO), clause("b", NO)))
    lines = shown(rule("p/a", "fired", clause("not waiting", YES, waiting)))
    assert [line.split("  [")[0] for line in lines[1:]] == [
        "  ✓ not waiting",
        "    ✗ a",
        "    ✗ b",
    ]


def test_missing_evidence_is_named_once() -> None:
    """An open clause gives the reason; the same again is not repeated."""
    parts = [clause(name, OPEN, missing=("RAS: refused",)) for name in ("any a", "any b")]
    lines = shown(rule("p/a", "inconclusive", clause("any a and any b", OPEN, *parts)))
    assert lines == [
        "p/a: INCONCLUSIVE",
        "  ? any a  RAS: refused  [hang.yaml:3:7]",
        "  ? any b  (same)  [hang.yaml:3:7]",
    ]


def test_suspects_are_explained_once() -> None:
    """Why ranks are suspects is told with the first rule that names them for that reason."""
    why = clause("odd", YES, clause("ranks that are out", YES, yes=RankSet([2]), detail="why"))
    more: dict[str, Any] = {"suspects": RankSet([2]), "who": why}
    fired = clause("any rank is out", YES)
    lines = shown(
        rule("p/a", "fired", fired, note="decides", **more), rule("p/b", "fired", fired, **more)
    )
    assert lines[0] == "p/a: FIRED  suspects 2  (decides)"
    assert "  why rank 2:" in lines
    assert lines[-1] == "  why rank 2: as for p/a"


def test_names_in_clauses_have_a_meaning() -> None:
    """A name in a clause that is not opened is told below, and no other."""
    definitions = (
        Definition(
            name="waiting", text="top in x\n  or top in y", span=Span(file="f", line=1, column=2)
        ),
        Definition(name="unused", text="top in z", span=Span(file="f", line=2, column=2)),
    )
    lines = shown(
        rule("p/a", "fired", clause("all ranks are waiting", YES)), definitions=definitions
    )
    assert lines[-2:] == ["where", "  waiting  top in x or top in y  [f:1:2]"]


def test_silent_rules_are_counted() -> None:
    """Without `--why-not` the others are only listed, idle suppressions left out."""
    calm = RuleExplanation(id="p/calm", result="not", evidence=clause("log.slow", NO))
    fired = rule("p/a", "fired", clause("any rank is x", YES))
    silent = rule("p/b", "not", clause("any rank is y", NO))
    lines = shown(fired, silent, suppressions=(calm,))
    assert lines[-1] == "1 rule did not fire (--why-not tells why): p/b"
    assert not any("calm" in line for line in lines)
    assert any(
        "suppression p/calm: NOT" in x for x in shown(fired, suppressions=(calm,), why_not=True)
    )


def test_text_from_outside_is_one_line() -> None:
    """Escapes and line breaks of foreign text do not reach the terminal."""
    lines = shown(rule("p/a", "fired", clause("any rank is x", YES, detail="a\n\x1b[31mb")))
    assert lines[-1] == "  ✓ any rank is x  a b  [hang.yaml:3:7]"
