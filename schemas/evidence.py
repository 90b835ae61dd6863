"""Why a rule decided as it did: one value per clause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.truth import Truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a clause stands; line and column count from 1. ``line`` is 0 where it is unknown."""

    file: str = ""
    line: int = 0
    column: int = 0
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One clause with its value, the ranks that say yes, no and unknown, and the parts of it."""

    text: str
    value: Truth
    span: Span = Span()
    detail: str = ""
    yes: RankSet = NOBODY
    no: RankSet = NOBODY
    unknown: RankSet = NOBODY
    missing: tuple[str, ...] = ()
    children: tuple[Evidence, ...] = ()

    def deciding(self) -> Iterator[Evidence]:
        """The leaves that made the value what it is: of a false ``and`` the false ones, and so on.

        A clause without parts decides by itself.
        """
        parts = [child for child in self.children if child.value is self.value]
        if not parts:
            yield self
        for part in parts:
            yield from part.deciding()

    def walk(self) -> Iterator[Evidence]:
        """This clause and all below it, outermost first."""
        yield self
        for child in self.children:
            yield from child.walk()
