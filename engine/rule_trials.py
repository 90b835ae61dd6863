"""A trial: one world judged by the real engine, and how it compares with what a test expects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from whyhang.engine.explain import reasons_of
from whyhang.engine.judge import Court, reach, suspect_ranks
from whyhang.rules.ruleset import Rule, SuppressRule
from whyhang.rules.test_cases import Expectation
from whyhang.rules.test_names import Entry, find_entry
from whyhang.schemas.evidence import Evidence
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import Verdict

NOBODY_TEXT = "nobody"
NO_GROUPS = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """What a test expected and what was found; ``evidence`` says why it was found."""

    expectation: Expectation
    what: str
    expected: str
    found: str
    evidence: Evidence | None = None
    of: str = ""


@dataclass(slots=True)
class Trial:
    """What the engine makes of one world; everything is found out once, when it is asked for."""

    court: Court
    _verdict: Verdict | None = None
    _evidence: dict[str, Evidence] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        if self._verdict is None:
            self._verdict = reach(self.court)
        return self._verdict

    def truth(self, entry: Entry) -> Truth:
        """Whether the condition of a rule or suppression holds."""
        return self.court.evaluator.truth(entry.when).one()

    def result(self, entry: Entry) -> str:
        """fired, not, inconclusive or suppressed."""
        truth = self.truth(entry)
        if truth is Truth.UNKNOWN:
            return "inconclusive"
        if truth is Truth.FALSE:
            return "not"
        if isinstance(entry, SuppressRule):
            return "suppressed"
        quiet = any(self.truth(one) is Truth.TRUE for one in self.court.ruleset.suppress)
        return "suppressed" if quiet else "fired"

    def suspects(self, rule: Rule) -> RankSet:
        """Whom a rule names."""
        return suspect_ranks(self.court.evaluator, rule)

    def evidence(self, entry: Entry) -> Evidence:
        """Why a rule or suppression came out as it did."""
        if entry.id not in self._evidence:
            self._evidence[entry.id] = self.court.explainer.explain(entry.when)
        return self._evidence[entry.id]


def check(trial: Trial, expected: Expectation) -> Iterator[Mismatch]:
    """All that differs from an expectation: first of its rule, then of the verdict."""
    yield from check_rule(trial, expected)
    yield from check_verdict(trial, expected)


def check_rule(trial: Trial, expected: Expectation) -> Iterator[Mismatch]:
    """What differs of the rule that an expectation is about."""
    entry = None if expected.rule is None else find_entry(trial.court.ruleset, expected.rule)
    if entry is None:
        return
    result = trial.result(entry)
    wanted = expected.result or "fired"
    if result != wanted:
        yield Mismatch(
            expectation=expected,
            what="result",
            expected=wanted,
            found=result,
            evidence=trial.evidence(entry),
            of=_title(entry),
        )
    if expected.suspects is not None and isinstance(entry, Rule):
        found = trial.suspects(entry)
        if found != expected.suspects:
            yield Mismatch(
                expectation=expected,
                what="suspects",
                expected=_ranks(expected.suspects),
                found=_ranks(found),
                of=_title(entry),
            )
    if expected.because:
        evidence = trial.evidence(entry)
        words = "; ".join(_words(evidence))
        for text in expected.because:
            if text not in words:
                yield Mismatch(
                    expectation=expected,
                    what="because",
                    expected=text,
                    found=words,
                    evidence=evidence,
                    of=_title(entry),
                )


def check_verdict(trial: Trial, expected: Expectation) -> Iterator[Mismatch]:
    """What differs of the verdict."""
    pairs = []
    if asks_for_verdict(expected):
        verdict = trial.verdict
        winner = None
        if expected.winner is not None:
            entry = find_entry(trial.court.ruleset, expected.winner)
            winner = expected.winner if entry is None else entry.id
        pairs = [
            ("verdict", expected.verdict, verdict.verdict),
            ("category", expected.category, verdict.category),
            ("confidence", expected.confidence, verdict.confidence),
            ("winner", winner, verdict.rule or "none"),
        ]
        if expected.suspects is not None and expected.rule is None:
            ranks = verdict.suspects.ranks
            pairs.append(("suspects", _ranks(expected.suspects), _ranks(ranks)))
        if expected.none is not None:
            fired = (verdict.rule, *verdict.also) if verdict.rule else verdict.also
            wanted = "no rule fires" if expected.none else "some rule fires"
            found = f"{', '.join(fired)} fired" if fired else "no rule fires"
            if expected.none is bool(fired):
                pairs.append(("none", wanted, found))
        if expected.message is not None and not _matches(expected.message, verdict.headline):
            pairs.append(("message", expected.message, verdict.headline))
        if expected.position is not None:
            places = "; ".join(position.frame for position in verdict.suspects.positions)
            if expected.position not in places:
                pairs.append(("position", expected.position, places or "none"))
        if expected.groups is not None:
            groups = ", ".join(verdict.suspects.groups)
            pairs.append(("groups", expected.groups, groups or NO_GROUPS))
    for what, wanted_, found_ in pairs:
        if wanted_ is not None and wanted_ != found_:
            yield Mismatch(
                expectation=expected,
                what=what,
                expected=str(wanted_),
                found=str(found_),
                evidence=trial.verdict.evidence,
                of=trial.verdict.headline,
            )


def asks_for_verdict(expected: Expectation) -> bool:
    """Whether an expectation is about the verdict as a whole."""
    asked = (
        expected.verdict,
        expected.category,
        expected.confidence,
        expected.winner,
        expected.message,
        expected.position,
        expected.groups,
        expected.none,
    )
    about_suspects = expected.rule is None and expected.suspects is not None
    return about_suspects or any(value is not None for value in asked)


def _words(evidence: Evidence) -> Iterator[str]:
    if evidence.value is Truth.UNKNOWN:
        yield from reasons_of(evidence)
    for leaf in evidence.deciding():
        yield f"{leaf.text} {leaf.detail}".strip()


def _matches(pattern: str, text: str) -> bool:
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def _ranks(ranks: RankSet) -> str:
    return str(ranks) or NOBODY_TEXT


def _title(entry: Entry) -> str:
    return f"{'rule' if isinstance(entry, Rule) else 'suppression'} {entry.id}"
