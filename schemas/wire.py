"""What the codecs of JSON documents share: readers that name a fault, and words that may be new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from whyhang.schemas.errors import FormatError
from whyhang.schemas.rankset import MAX_RANK

T = TypeVar("T")


def reader(decoder: msgspec.json.Decoder[T], what: str) -> Callable[[bytes], T]:
    """A function that decodes, or says in a FormatError what is wrong."""

    def read(data: bytes) -> T:
        try:
            return decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise FormatError(f"not {what}: {error}") from error

    return read


def choice(value: str | None, choices: tuple[Any, ...], default: Any) -> Any:
    """``value`` where it is one of ``choices``: files of newer releases may know more words."""
    return value if value in choices else default


def rank_or_none(number: int | None) -> int | None:
    """A rank, or a number of ranks; None where it is none."""
    return number if number is not None and 0 <= number <= MAX_RANK else None
