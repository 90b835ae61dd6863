"""Evaluated groups: who belongs, who may belong, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whyhang.engine.classes import Partition
from whyhang.engine.columns import Column
from whyhang.engine.quantify import Tally, decide
from whyhang.engine.truthset import NO_REASONS, TruthSet
from whyhang.engine.world import ScopeName
from whyhang.rules.ast import Quantifier
from whyhang.schemas.truth import Truth, all_of, any_of


@dataclass(frozen=True, slots=True)
class Members:
    """A group as bitmaps over the table of its kind; ``reasons`` say why some are doubtful."""

    kind: ScopeName
    members: int
    doubtful: int = 0
    reasons: Mapping[str, int] = field(default_factory=lambda: NO_REASONS)

    def without(self, other: Members) -> Members:
        """The rest of this group; who may be in ``other`` may be in the rest."""
        members = self.members & ~other.members & ~other.doubtful
        doubtful = (self.members | self.doubtful) & ~other.members & ~members
        return Members(self.kind, members, doubtful, {**self.reasons, **other.reasons})

    def sorts(self, answers: TruthSet) -> Partition:
        """The members and doubtful members by what they answer: what a tally counts."""
        sides = answers.yes, answers.no, answers.unknown
        bitmaps = (part & side for part in (self.members, self.doubtful) for side in sides)
        return Partition((), tuple(bits for bits in bitmaps if bits))

    def tally(self, answers: TruthSet, inside: int) -> Tally:
        """Count the answers of those ``inside``."""
        members, doubtful = self.members & inside, self.doubtful & inside
        return Tally(
            yes=(answers.yes & members).bit_count(),
            no=(answers.no & members).bit_count(),
            unknown=(answers.unknown & members).bit_count(),
            doubtful_yes=(answers.yes & doubtful).bit_count(),
            doubtful_no=(answers.no & doubtful).bit_count(),
            doubtful_unknown=(answers.unknown & doubtful).bit_count(),
        )


def agreement(
    quantifier: Quantifier, amount: float | int | None, group: Members, column: Column, inside: int
) -> tuple[Truth, int]:
    """Whether enough of a group share one value, and the largest class that does.

    Those whose value is unknown may all share any value, or one that nobody else has.
    """
    asked = (group.members | group.doubtful) & inside
    unknown = asked & ~column.known
    largest, tallies = 0, []
    for _, owners in (*column.items(), (None, 0)):
        same = owners & asked
        tallies.append(group.tally(TruthSet(asked, same, asked & ~same & ~unknown), inside))
        largest = max(largest, same & group.members, key=int.bit_count)
    return _agreement(quantifier, amount, tallies), largest


def _agreement(
    quantifier: Quantifier, amount: float | int | None, classes: Sequence[Tally]
) -> Truth:
    """One alone agrees with nobody: ``any`` asks for two."""
    if quantifier in ("any", "none"):
        found = any_of(decide("at_least", tally, 2) for tally in classes)
        return found if quantifier == "any" else ~found
    if quantifier == "at_most":
        return all_of(decide("at_most", tally, amount) for tally in classes)
    if quantifier == "exactly":
        least = _agreement("at_least", amount, classes)
        return least & _agreement("at_most", amount, classes)
    return any_of(decide(quantifier, tally, amount) for tally in classes)
