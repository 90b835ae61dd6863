"""The values that something can still have after a few comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from whyhang.rules import ast
from whyhang.rules.fields import FIELDS

Texts = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Numbers between two ends, and texts: those allowed (None: all) less those excluded.

    ``whole`` says that only whole numbers count.
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False
    allowed: Texts | None = None
    excluded: Texts = frozenset()

    def both(self, other: Domain) -> Domain:
        """The values that are in both."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, high_closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        allowed = self.allowed
        if other.allowed is not None:
            allowed = other.allowed if allowed is None else allowed & other.allowed
        return Domain(
            low=low,
            high=high,
            low_open=low_open,
            high_open=not high_closed,
            whole=self.whole or other.whole,
            allowed=allowed,
            excluded=self.excluded | other.excluded,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no value is left."""
        if self.allowed is not None and not self.allowed - self.excluded:
            return True
        low, high = self.low, self.high
        if self.whole and math.isfinite(low):
            low = math.floor(low) + 1 if self.low_open else math.ceil(low)
            return low > high or (low == high and self.high_open)
        return low > high or (low == high and (self.low_open or self.high_open))


def domain_of(value: ast.Value) -> Domain:
    """What a value can be at all."""
    if isinstance(value, ast.Count):
        return Domain(low=0, whole=True)
    if isinstance(value, ast.Share):
        return Domain(low=0, high=1)
    info = FIELDS.get(value.name) if isinstance(value, ast.Field) else None
    if info is None:
        return Domain()
    if info.values:
        return Domain(allowed=frozenset(info.values))
    if info.type in ("duration", "percent"):
        return Domain(low=0)
    return Domain(whole=info.type == "int")


def compared(
    op: ast.Comparison, constant: bool | int | float | str, positive: bool, flipped: bool
) -> Domain:
    """What a comparison with a constant leaves; ``flipped`` where the constant stands left."""
    if flipped:
        op = _FLIPPED[op]
    if not positive:
        op = _NEGATED[op]
    if isinstance(constant, str):
        return membership([constant], op == "==") if op in ("==", "!=") else Domain()
    if isinstance(constant, bool) or op == "!=":
        return Domain()
    number = float(constant)
    return {
        "==": Domain(low=number, high=number),
        "<": Domain(high=number, high_open=True),
        "<=": Domain(high=number),
        ">": Domain(low=number, low_open=True),
        ">=": Domain(low=number),
    }[op]


def membership(texts: Iterable[str], positive: bool) -> Domain:
    """One of a few texts, or none of them."""
    found = frozenset(texts)
    return Domain(allowed=found) if positive else Domain(excluded=found)


_FLIPPED: dict[ast.Comparison, ast.Comparison] = {
    "==": "==",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_NEGATED: dict[ast.Comparison, ast.Comparison] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
