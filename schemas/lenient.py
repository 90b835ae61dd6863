"""Reading documents in which a value is not what it should be: that value is lost, not the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from whyhang.schemas.errors import FormatError

T = TypeVar("T")

# A document with more faults than this is another document.
MOST_FAULTS = 64
_PLACE = re.compile(r"at `\$([^`]*)`\Z")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")


def decode_leniently(data: bytes, decode: Callable[[bytes], T]) -> tuple[T, tuple[str, ...]]:
    """What ``decode`` makes of a JSON document without its faulty values, and which those were.

    ``decode`` names the place of a fault at the end of its message (``at `$.nodes[0].name` ``).
    Bytes that are no UTF-8 are replaced. Raises FormatError where nothing can be saved.
    """
    try:
        return decode(data), ()
    except FormatError as error:
        fault = error
    try:
        document = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise fault from None
    dropped: list[str] = []
    for _ in range(MOST_FAULTS):
        try:
            return decode(json.dumps(document).encode()), tuple(dropped)
        except FormatError as error:
            fault = error
        place = _PLACE.search(fault.message)
        if place is None or not _remove(document, place[1]):
            break
        dropped.append(fault.message)
    raise fault


def _remove(document: Any, place: str) -> bool:
    """Take out the value at a place; the whole mapping where only that is known."""
    steps: list[str | int] = []
    for name, number, anywhere in _STEP.findall(place):
        if anywhere:
            break
        steps.append(name or int(number))
    if not steps:
        return False
    for step in steps[:-1]:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return False
    try:
        del document[steps[-1]]
    except (LookupError, TypeError):
        return False
    return True
