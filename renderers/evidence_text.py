"""How every rule decided, for people: the deciding clauses with their values and positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whyhang.renderers import words
from whyhang.renderers.clean import one_line, shorten
from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.explanation import Definition, Explanation, RuleExplanation, RuleResult
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.truth import Truth

MARKS = {Truth.TRUE: "✓", Truth.FALSE: "✗", Truth.UNKNOWN: "?"}
RESULT_WORDS: dict[RuleResult, str] = {
    "fired": "FIRED",
    "suppressed": "SUPPRESSED",
    "inconclusive": "INCONCLUSIVE",
    "not": "NOT",
}
_CLAUSE_WIDTH = 60
_LONGEST_MEANING = 120
_INDENT = "  "
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, slots=True)
class _Line:
    depth: int
    value: Truth
    clause: str
    detail: str
    span: Span


def render_explanation(explanation: Explanation, *, why_not: bool = False) -> Iterator[str]:
    """The verdict and what decided; with ``why_not`` also what keeps the other rules silent."""
    verdict = explanation.verdict
    yield one_line(verdict.headline)
    by = f", by rule {verdict.rule}" if verdict.rule else ""
    yield f"{verdict.verdict}, {verdict.category}, {verdict.confidence} confidence{by}"
    suppressions = [e for e in explanation.suppressions if why_not or e.result == "fired"]
    rules = [e for e in explanation.rules if why_not or e.result != "not"]
    told: dict[tuple[Evidence, ...], str] = {}
    for entry in (*suppressions, *sorted(rules, key=_urgency)):
        yield ""
        yield from render_rule(entry, told)
    silent = [entry.id for entry in explanation.rules if entry not in rules]
    if silent:
        yield ""
        noun = "rule" if len(silent) == 1 else "rules"
        yield f"{len(silent)} {noun} did not fire (--why-not tells why): {', '.join(silent)}"
    yield from _glossary(explanation.definitions, (*suppressions, *rules))


def _glossary(
    definitions: Sequence[Definition], entries: Sequence[RuleExplanation]
) -> Iterator[str]:
    """What the names mean that stand in the clauses shown, one level deep."""
    clauses = {
        clause.text for entry in entries for clause in entry.evidence.walk() if not clause.children
    }
    named = set(re.findall(r"[A-Za-z_]\w*", " ".join(clauses)))
    found = [each for each in definitions if each.name in named]
    if found:
        yield ""
        yield "where"
        width = max(len(each.name) for each in found)
        for each in found:
            meaning = shorten(" ".join(one_line(each.text).split()), _LONGEST_MEANING)
            yield f"{_INDENT}{each.name:<{width}}  {meaning}  [{each.span}]"


def _urgency(entry: RuleExplanation) -> tuple[int, bool]:
    """What decides comes first."""
    order = list(RESULT_WORDS)
    return order.index(entry.result), entry.note != "decides"


def render_rule(entry: RuleExplanation, told: dict[tuple[Evidence, ...], str]) -> Iterator[str]:
    """One rule or suppression: its result, the deciding clauses, why its suspects are some.

    ``told`` remembers which rule has explained its suspects in the same way already.
    """
    if entry.is_suppression:
        result = {"fired": "ACTED", "inconclusive": "UNDECIDED"}.get(entry.result, "NOT")
        yield f"suppression {entry.id}: {result}" + _aside(entry.summary)
    else:
        suspects = f"  suspects {entry.suspects.format(words.SHOWN_RUNS)}" if entry.suspects else ""
        note = f"  ({entry.note})" if entry.note else ""
        yield f"{entry.id}: {RESULT_WORDS[entry.result]}{suspects}{note}{_aside(entry.summary)}"
    yield from _layout(tuple(_clauses(entry.evidence, 1)))
    if entry.who is not None and entry.suspects:
        before = told.setdefault(entry.who.children, entry.id)
        if before != entry.id:
            yield f"{_INDENT}why {words.ranks(entry.suspects)}: as for {before}"
            return
        yield f"{_INDENT}why {words.ranks(entry.suspects)}:"
        yield from _layout(tuple(_clauses(entry.who, 2, told=entry.suspects)))


def _aside(summary: str) -> str:
    return f" — {one_line(summary)}" if summary else ""


def _clauses(
    evidence: Evidence, depth: int, prefix: str = "", told: RankSet = NOBODY
) -> Iterator[_Line]:
    """The clauses that made the value what it is, definitions opened down to them.

    ``prefix`` is the name of what is defined; ``told`` are the ranks that need no telling.
    """
    parts = evidence.children
    if len(parts) == 1 and _NAME.match(evidence.text):
        yield from _clauses(parts[0], depth, f"{prefix}{evidence.text}: ", told)
    elif len(parts) == 1:
        meant = parts[0]
        while len(meant.children) == 1 and _NAME.match(meant.text):
            meant = meant.children[0]
        yield _line(evidence, depth, prefix, told, inner=meant)
        if meant.children:
            yield from _clauses(meant, depth + 1, "", told)
    elif not parts:
        yield _line(evidence, depth, prefix, told)
    else:
        deciding = [part for part in parts if part.value is evidence.value] or list(parts)
        if prefix and len(deciding) > 1:
            clause = prefix.removesuffix(": ")
            yield _Line(depth, evidence.value, clause, one_line(evidence.detail), evidence.span)
            prefix, depth = "", depth + 1
        for part in deciding:
            yield from _clauses(part, depth, prefix, told)


def _line(
    evidence: Evidence, depth: int, prefix: str, told: RankSet, inner: Evidence | None = None
) -> _Line:
    detail = _detail(evidence, told)
    if not detail and inner is not None and not inner.children:
        detail = _detail(inner, told)
    return _Line(depth, evidence.value, one_line(prefix + evidence.text), detail, evidence.span)


def _detail(evidence: Evidence, told: RankSet) -> str:
    """What was found; whom it is about, where that is not all of ``told``; what is missing."""
    parts = []
    about = evidence.yes | evidence.no | evidence.unknown
    if told and about and about != told:
        parts.append(words.ranks(about))
    parts += [one_line(evidence.detail)] if evidence.detail else []
    if evidence.value is Truth.UNKNOWN:
        parts += [one_line(reason) for reason in evidence.missing if reason not in evidence.detail]
    return "; ".join(parts)


def _layout(lines: Sequence[_Line]) -> Iterator[str]:
    """Lines in columns: mark and clause, what was found, where the clause stands."""
    clauses = (shorten(line.clause, _CLAUSE_WIDTH) for line in lines)
    heads = [
        f"{_INDENT * line.depth}{MARKS[line.value]} {clause}"
        for line, clause in zip(lines, clauses, strict=True)
    ]
    width = max((len(head) for head in heads), default=0)
    before = ""
    for head, line in zip(heads, lines, strict=True):
        place = f"  [{line.span}]" if line.span.line else ""
        detail = "(same)" if line.detail and line.detail == before else line.detail
        before = line.detail
        yield f"{head:<{width}}  {detail}{place}" if detail else f"{head}{place}"
