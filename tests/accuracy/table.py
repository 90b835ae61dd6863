"""Scores as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.accuracy.answers import Score
from whyhang.schemas.verdict import CONFIDENCES

HEADINGS = (
    "",
    "incidents",
    "verdict",
    "suspects exact",
    "superset",
    "wrong",
    "category",
    "accused",
)


@dataclass(frozen=True, slots=True)
class Totals:
    """What came of a group of questions."""

    scores: Sequence[Score]

    @property
    def naming(self) -> list[Score]:
        """The scores of those whose expected answer names ranks."""
        return [one for one in self.scores if one.names]

    @property
    def verdict(self) -> float:
        """The share of right verdicts; 1 where there is none to give."""
        return _share(sum(one.verdict for one in self.scores), len(self.scores))

    @property
    def exact(self) -> float:
        """The share of those that name ranks whose ranks are exactly right."""
        return _share(sum(one.suspects == "exact" for one in self.naming), len(self.naming))

    @property
    def category(self) -> float:
        """The share of right categories."""
        return _share(sum(one.category for one in self.scores), len(self.scores))

    @property
    def accused(self) -> int:
        """The number of false accusations."""
        return sum(one.accused for one in self.scores)

    @property
    def failed(self) -> int:
        """The number of incidents that could not be judged."""
        return sum(one.given is None for one in self.scores)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def markdown(scores: Sequence[Score]) -> Iterator[str]:
    """The lines of the table: all, by kind, by how sure the source and the verdict are."""
    yield _row(HEADINGS)
    yield _row(["---", *["---:"] * (len(HEADINGS) - 1)])
    yield _total("all", scores)
    for kind in dict.fromkeys(one.question.kind for one in scores):
        yield _total(f"kind: {kind}", [one for one in scores if one.question.kind == kind])
    for sure in CONFIDENCES:
        chosen = [one for one in scores if one.question.sure == sure]
        if chosen and len(chosen) != len(scores):
            yield _total(f"source sure: {sure}", chosen)
    for level in CONFIDENCES:
        chosen = [one for one in scores if one.given and one.given.confidence == level]
        if chosen:
            yield _total(f"verdict's confidence: {level}", chosen)


def misses(scores: Iterable[Score]) -> Iterator[str]:
    """One line for each score that is not wholly right."""
    for one in scores:
        wrong = one.names and one.suspects != "exact"
        if one.verdict and one.category and not wrong and not one.accused:
            continue
        wanted = one.question.answers[0]
        said = one.problem
        if one.given is not None:
            ranks = one.given.suspects.ranks.format(8)
            said = f"{one.given.verdict} {one.given.category} {ranks or '-'} ({one.given.rule})"
        mark = "ACCUSED " if one.accused else "" if one.verdict else "verdict "
        yield (
            f"- {mark}{one.question.name}: {said}; expected {wanted.verdict} "
            f"{'/'.join(sorted(wanted.categories))} {sorted(wanted.suspects) or '-'}"
        )


def _total(name: str, scores: Sequence[Score]) -> str:
    totals = Totals(scores)
    naming = totals.naming
    return _row(
        [
            name,
            len(scores),
            f"{sum(one.verdict for one in scores)} ({totals.verdict:.0%})",
            f"{sum(one.suspects == 'exact' for one in naming)}/{len(naming)}",
            sum(one.suspects == "superset" for one in naming),
            sum(one.suspects == "wrong" for one in naming),
            sum(one.category for one in scores),
            totals.accused,
        ]
    )


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
