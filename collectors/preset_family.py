"""What training frameworks print: families of line patterns, as data.

Patterns are searched in a clean piece (see :mod:`whyhang.collectors.normalise`). Named groups:
``step``, ``total``, ``epoch``, ``loss``, ``seconds`` and ``ms`` (both a step's duration). They stay
unanchored where the shape allows it, since real logs carry prefixes that nobody foresees, and have
no nested quantifiers, since they run on the host of the training.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from whyhang.collectors.pattern_literals import required_literal
from whyhang.schemas.progress import EventKind

FLOAT = r"[-+]?(?:(?i:nan|inf(?:inity)?)|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
STEP = r"(?P<step>\d+)"
TOTAL = r"(?P<total>\d+)"
EPOCH = r"(?P<epoch>\d+)"
LOSS = rf"(?P<loss>{FLOAT})"
SECONDS = rf"(?P<seconds>{FLOAT})"
MS = rf"(?P<ms>{FLOAT})"
# What tqdm draws behind the description: `  2%|▏  | 20/1250 [01:17<1:18:55,  3.85s/it`.
BAR = rf"\s*\d{{1,3}}%\|[^|]*\|\s*{STEP}/{TOTAL} \[[^\]<]*<[^\],]*(?:,\s*[^\],]*)?"
BAR_LOSS = rf"(?:.*?\b[\w/]*[Ll]oss(?:_step)?={LOSS})?"


def printed(key: str, number: str) -> str:
    """A member of a printed dict; Transformers 5 prints its numbers as strings."""
    return rf"'{key}': '?{number}'?"


DICT_EPOCH = printed("epoch", rf"(?P<epoch>{FLOAT})")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """One shape of line; ``literal`` stands in all of them, "" where none is known."""

    kind: EventKind
    literal: str
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Frameworks that print alike.

    ``latch``: bars have no description, so once the training bar's total is known, bars with
    another total belong to other phases. ``ignored``: lines that say nothing though they look so.
    ``hints``: a line that tells of progress has one of these
    in lower case; they spare a foreign log most of the regexes. ``literals``: every line that the
    family reads has one of these; None where that is not known. ``ends_only``: there may be one
    line an epoch only, always of the last step.
    """

    name: str
    aliases: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    latch: bool = False
    literals: tuple[bytes, ...] | None = None
    ends_only: bool = False
    ignored: re.Pattern[str] | None = None
    patterns: tuple[LinePattern, ...]


_ORDER: tuple[EventKind, ...] = (
    "end",
    "eval",
    "checkpoint_save_end",
    "checkpoint_save_start",
    "progress",
    "compile",
    "init",
)


def in_order(patterns: Iterable[LinePattern]) -> tuple[LinePattern, ...]:
    """The patterns in the order in which they are tried."""
    return tuple(sorted(patterns, key=lambda pattern: _ORDER.index(pattern.kind)))


def family(
    name: str,
    *aliases: str,
    hints: tuple[str, ...],
    lines: Mapping[EventKind, tuple[str, ...]],
    latch: bool = False,
    any_case: tuple[str, ...] = (),
    ends_only: bool = False,
    ignored: str | None = None,
) -> Family:
    """Compile a family. ``any_case``: letters may be of either case, and these are its literals."""
    flags = re.IGNORECASE if any_case else 0
    patterns = tuple(
        LinePattern(kind, "" if any_case else required_literal(text) or "", re.compile(text, flags))
        for kind in _ORDER
        for text in lines.get(kind, ())
    )
    return Family(
        name=name,
        aliases=aliases,
        hints=hints,
        latch=latch,
        ends_only=ends_only,
        ignored=None if ignored is None else re.compile(ignored),
        literals=_encoded(any_case or [pattern.literal for pattern in patterns]),
        patterns=patterns,
    )


def _encoded(literals: Iterable[str]) -> tuple[bytes, ...] | None:
    texts = tuple(dict.fromkeys(literals))
    if "" in texts:
        return None
    # What holds a longer literal holds the shorter one in it.
    return tuple(
        text.encode()
        for text in texts
        if not any(other != text and other in text for other in texts)
    )
