"""What is right for an incident, and how a verdict compares with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.incident import Incident
from whyhang.schemas.verdict import Verdict

HANGS = ("local_hang", "global_hang")
Grade = Literal["exact", "superset", "subset", "none", "wrong", "-"]
GRADES: tuple[Grade, ...] = ("exact", "superset", "subset", "none", "wrong", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An accepted answer. ``suspects`` is empty where nobody may be named."""

    verdict: str
    suspects: frozenset[int] = frozenset()
    categories: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An incident and its accepted answers, the expected one first.

    ``sure`` tells how firmly its source established them. ``numbered`` is false where somebody is
    at fault, but the source has no rank numbers: then names are not judged.
    """

    name: str
    kind: str
    load: Callable[[], Incident]
    answers: Sequence[Answer]
    sure: str = "high"
    numbered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What came of one question. ``given`` is None where judging failed with ``problem``."""

    question: Question
    given: Verdict | None
    problem: str = ""
    verdict: bool = False
    suspects: Grade = "-"
    category: bool = False
    accused: bool = False

    @property
    def names(self) -> bool:
        """Whether the expected answer is a hang that names ranks."""
        expected = self.question.answers[0]
        return expected.verdict in HANGS and bool(expected.suspects)


def grade(wanted: frozenset[int], named: frozenset[int]) -> Grade:
    """How the named ranks compare with the wanted ones, of which there is one at least."""
    if named == wanted:
        return "exact"
    if not named:
        return "none"
    if named < wanted:
        return "subset"
    if wanted < named and len(named) <= 2 * len(wanted):
        return "superset"
    return "wrong"


def score(question: Question, given: Verdict) -> Score:
    """Compare a verdict with the answers of a question.

    A false accusation is a hang that names ranks where no answer names any, or wrong ones.
    """
    named = frozenset(given.suspects.ranks)
    same = [answer for answer in question.answers if answer.verdict == given.verdict]
    naming = [answer for answer in same or question.answers if answer.suspects]
    naming = naming or [answer for answer in question.answers if answer.suspects]
    hang = given.verdict in HANGS
    found: Grade = "-"
    accused = hang and bool(named) and question.numbered
    if naming and any(answer.verdict in HANGS for answer in naming):
        grades = [grade(answer.suspects, named) for answer in naming]
        found = min(grades, key=GRADES.index)
        if found == "none" and any(not answer.suspects for answer in same):
            found = "exact"
        accused = hang and found == "wrong"
    return Score(
        question=question,
        given=given,
        verdict=bool(same),
        suspects=found,
        category=any(given.category in answer.categories for answer in same),
        accused=accused,
    )
