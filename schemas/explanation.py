"""How every rule of a file decided on one incident, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.verdict import Verdict

RuleResult = Literal["fired", "suppressed", "inconclusive", "not"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleExplanation:
    """One rule or suppression: its result and the clauses that made it so.

    ``concludes`` is what the rule says when it fires (verdict, category, confidence), empty for a
    suppression. ``note`` tells how it stands to the others that fired. ``who`` shows why the
    ranks in ``suspects`` belong there.
    """

    id: str
    result: RuleResult
    evidence: Evidence
    concludes: tuple[str, ...] = ()
    summary: str = ""
    span: Span = Span()
    note: str = ""
    suspects: RankSet = NOBODY
    who: Evidence | None = None

    @property
    def is_suppression(self) -> bool:
        """Whether it is an entry of ``suppress:``."""
        return not self.concludes


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A name that conditions use (an entry of ``defs:`` or ``sets:``) and what it stands for."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The verdict on an incident, the suppressions and the rules in the order of their file."""

    verdict: Verdict
    definitions: tuple[Definition, ...] = ()
    suppressions: tuple[RuleExplanation, ...] = ()
    rules: tuple[RuleExplanation, ...] = ()
