"""Kleene's three truth values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Truth(Enum):
    """True, false or unknown. ``UNKNOWN`` is what could not be decided, never a kind of false."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, value: bool | None) -> Truth:
        """The truth value of a boolean, ``None`` being unknown."""
        if value is None:
            return cls.UNKNOWN
        return cls.TRUE if value else cls.FALSE

    def __invert__(self) -> Truth:
        return {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE}.get(self, Truth.UNKNOWN)

    def __and__(self, other: Truth) -> Truth:
        if Truth.FALSE in (self, other):
            return Truth.FALSE
        return Truth.UNKNOWN if Truth.UNKNOWN in (self, other) else Truth.TRUE

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)

    def __bool__(self) -> bool:
        raise TypeError("a Truth has three values: compare it with Truth.TRUE")


def all_of(truths: Iterable[Truth]) -> Truth:
    """Kleene's conjunction; true over nothing."""
    result = Truth.TRUE
    for truth in truths:
        result = result & truth
    return result


def any_of(truths: Iterable[Truth]) -> Truth:
    """Kleene's disjunction; false over nothing."""
    return ~all_of(~truth for truth in truths)
