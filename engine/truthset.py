"""Kleene logic over many subjects at once: bitmaps of those that say yes and those that say no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from whyhang.schemas.truth import Truth

NO_REASONS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TruthSet:
    """The answers of ``members`` to one question; who is in neither bitmap is unknown.

    ``reasons`` maps why something is unknown to whom it concerns.
    """

    members: int
    yes: int
    no: int
    reasons: Mapping[str, int] = field(default_factory=lambda: NO_REASONS, compare=False)

    @property
    def unknown(self) -> int:
        """Who could not answer."""
        return self.members & ~(self.yes | self.no)

    def __invert__(self) -> TruthSet:
        return TruthSet(self.members, self.no, self.yes, self.reasons)

    def __and__(self, other: TruthSet) -> TruthSet:
        return TruthSet(
            self.members,
            self.yes & other.yes,
            self.no | other.no,
            merge_reasons(self.open_reasons(), other.open_reasons()),
        )

    def __or__(self, other: TruthSet) -> TruthSet:
        return ~(~self & ~other)

    def one(self) -> Truth:
        """The single answer of a question about the job."""
        if self.yes:
            return Truth.TRUE
        return Truth.FALSE if self.no else Truth.UNKNOWN

    def open_reasons(self) -> Mapping[str, int]:
        """The reasons with those who could not answer: who could needed no more evidence."""
        if not self.reasons:
            return NO_REASONS
        unknown = self.unknown
        return {reason: bits & unknown for reason, bits in self.reasons.items() if bits & unknown}

    def why_unknown(self) -> tuple[str, ...]:
        """The reasons that concern somebody who could not answer."""
        return tuple(sorted(self.open_reasons()))


def constant(members: int, truth: Truth, reasons: Mapping[str, int] = NO_REASONS) -> TruthSet:
    """The same answer for everybody."""
    return TruthSet(
        members,
        members if truth is Truth.TRUE else 0,
        members if truth is Truth.FALSE else 0,
        reasons,
    )


def merge_reasons(first: Mapping[str, int], second: Mapping[str, int]) -> Mapping[str, int]:
    """All reasons of two questions."""
    if not second:
        return first
    if not first:
        return second
    merged = dict(first)
    for reason, bits in second.items():
        merged[reason] = merged.get(reason, 0) | bits
    return merged
