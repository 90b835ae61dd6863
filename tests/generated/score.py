"""Judges generated incidents and counts what came of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.accuracy.answers import HANGS, Answer
from tests.generated.kinds import KINDS, Truth
from tests.generated.write import write_incident
from whyhang.engine.diagnose import diagnose
from whyhang.engine.incidents import read_evidence
from whyhang.rules.load import load_ruleset
from whyhang.schemas.verdict import VERDICTS, Verdict

GRADES = ("exact", "superset", "wrong", "accused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One incident, what is right and what was said."""

    kind: str
    name: str
    framework: str
    truth: Truth
    given: Verdict

    @property
    def named(self) -> frozenset[int]:
        """The ranks that were named."""
        return frozenset(self.given.suspects.ranks)

    @property
    def wanted(self) -> Answer:
        """The accepted answer nearest to what was said."""
        same = [one for one in self.truth.answers if one.verdict == self.given.verdict]
        return (same or list(self.truth.answers))[0]

    @property
    def grade(self) -> str:
        """How the named ranks compare with the wanted: exact, superset, accused or wrong.

        ``accused``: a hang that names somebody innocent, or anybody who could not be read by our
        own fault. ``wrong``: too few are named, or none.
        """
        wanted, named = self.wanted.suspects, self.named
        if named & self.truth.innocent:
            return "accused"
        if named == wanted:
            return "exact"
        if wanted and wanted < named and len(named) <= 2 * len(wanted):
            return "superset"
        return "accused" if named - wanted and self.given.verdict in HANGS else "wrong"

    @property
    def right(self) -> bool:
        """Whether an accepted verdict was given with exactly the right ranks."""
        return self.wanted.verdict == self.given.verdict and self.grade == "exact"

    def __str__(self) -> str:
        expected = " or ".join(
            f"{one.verdict} {sorted(one.suspects) or '-'}" for one in self.truth.answers
        )
        said = self.given
        ranks = said.suspects.ranks.format(8) or "-"
        return (
            f"{self.name} ({self.framework}): {said.verdict} {said.category} {said.confidence} "
            f"{ranks} by {said.rule}; expected {expected}"
        )


def judge_all(
    kinds: Sequence[str], *, count: int, seed: int, keep: Path | None = None, start: int = 0
) -> Iterator[Result]:
    """Write, read and judge incidents of these kinds; keep their directories if asked to."""
    ruleset = load_ruleset()
    for name in kinds:
        for number in range(start, start + count):
            job, truth = KINDS[name](random.Random(f"{name}/{seed}/{number}"))
            with TemporaryDirectory(prefix="whyhang-") as scratch:
                place = (keep or Path(scratch)) / f"{name}-{number:03d}"
                given = diagnose(read_evidence(write_incident(job, place)), ruleset).verdict
            yield Result(
                kind=name,
                name=place.name,
                framework=job.framework,
                truth=truth,
                given=given,
            )


def confusion(results: Sequence[Result]) -> Iterator[str]:
    """The table: kind by verdict, how the named ranks compare, and the share that is right."""
    words = [word.removesuffix("_hang") if word != "no_hang" else word for word in VERDICTS]
    yield f"{'kind':<20}" + "".join(f"{word:>13}" for word in (*words, *GRADES, "right"))
    for name in [*dict.fromkeys(one.kind for one in results), "all"]:
        part = [one for one in results if name in (one.kind, "all")]
        verdicts = Counter(one.given.verdict for one in part)
        grades = Counter(one.grade for one in part)
        counts = [*(verdicts[word] for word in VERDICTS), *(grades[word] for word in GRADES)]
        cells = "".join(f"{count:>13}" for count in counts)
        yield f"{name:<20}{cells}{share(part):>13.1%}"


def share(results: Sequence[Result]) -> float:
    """The share of results that are wholly right."""
    return sum(one.right for one in results) / len(results) if results else 1.0
