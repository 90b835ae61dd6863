"""Series in an expanding notation: ``0s+30sx3`` is 0 s, 30 s, 60 s and 90 s.

A series is items with blanks between: a value, ``VALUExN`` (the value, then N times more),
``VALUE+STEPxN`` or ``VALUE-STEPxN``. ``_`` is a value that is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
UNKNOWN = "_"
# A typing error must not ask for gigabytes.
MAX_LENGTH = 1_000

_ITEM = re.compile(r"(?P<value>_|[^\s+]+?)(?:(?P<sign>[+-])(?P<step>[^\s+-]+?))?(?:x(?P<n>\d+))?\Z")


def expand(text: str, number: Callable[[str], float]) -> tuple[float | None, ...]:
    """The numbers of a series; ``number`` reads one. Raises ValueError."""
    return _limited(_numbers(text, number))


def expand_words(text: str, word: Callable[[str], T]) -> tuple[T | None, ...]:
    """The words of a series, which have no steps. Raises ValueError."""
    return _limited(_words(text, word))


def step_of(text: str, number: Callable[[str], float]) -> float | None:
    """The first step of a series, None if it has none."""
    for item in text.split():
        match = _ITEM.match(item)
        if match is not None and match["step"]:
            return number(match["step"])
    return None


def _numbers(text: str, number: Callable[[str], float]) -> Iterator[float | None]:
    for value, sign, step, count in _items(text):
        if value == UNKNOWN:
            if step:
                raise ValueError("an unknown value has no step")
            yield from [None] * (count + 1)
            continue
        start = number(value)
        growth = number(step) * (-1 if sign == "-" else 1) if step else 0.0
        for position in range(count + 1):
            yield start + growth * position


def _words(text: str, word: Callable[[str], T]) -> Iterator[T | None]:
    for value, _, step, count in _items(text):
        if step:
            raise ValueError(f"`{value}` is a word and has no step")
        found = None if value == UNKNOWN else word(value)
        yield from [found] * (count + 1)


def _items(text: str) -> Iterator[tuple[str, str, str, int]]:
    for item in text.split():
        match = _ITEM.match(item)
        if match is None:
            raise ValueError(f"not a series: `{item}`")
        count = int(match["n"] or 0)
        if match["step"] and match["n"] is None:
            raise ValueError(f"`{item}` does not say how often: write `{item}x10`")
        if count >= MAX_LENGTH:
            raise ValueError(f"`{item}` has more than {MAX_LENGTH} values")
        yield match["value"], match["sign"] or "", match["step"] or "", count


def _limited(values: Iterator[T]) -> tuple[T, ...]:
    found: list[T] = []
    for value in values:
        found.append(value)
        if len(found) > MAX_LENGTH:
            raise ValueError(f"a series has at most {MAX_LENGTH} values")
    if not found:
        raise ValueError("an empty series")
    return tuple(found)
