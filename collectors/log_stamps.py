"""Timestamps that log lines carry. For display and for old logs only, never for a live stall."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from itertools import pairwise

_TIME = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6})\d*)?"
_YEAR_FIRST = re.compile(rf"\b(\d{{4}})[-/](\d\d)[-/](\d\d)[T ]{_TIME}(Z|[+-]\d\d:?\d\d)?")
_US = re.compile(rf"\b(\d\d)/(\d\d)/(\d{{4}}|\d\d) {_TIME}")
_NO_YEAR = re.compile(rf"(?:\b[IWEF](\d\d)(\d\d)|\[(\d\d)/(\d\d)) {_TIME}")
_BAR_ELAPSED = re.compile(r"(?<!\d)\d+/\d+ \[(?:(\d+):)?(\d+):(\d\d)<")
# Stamps of another time zone are off by whole quarters of an hour.
_QUARTER = 900.0
_ZONE_SLACK = 30.0


def parse_stamp(text: str, near: float) -> float | None:
    """Seconds since the epoch of the first timestamp in ``text``; None where there is none.

    ``near`` gives the year where the stamp has none. Without a zone, local time is meant.
    """
    head = text[:200]
    match = _YEAR_FIRST.search(head)
    if match is not None:
        year, month, day = (int(match[i]) for i in (1, 2, 3))
        return _seconds(year, month, day, match.groups()[3:7], match[8])
    match = _US.search(head)
    if match is not None:
        year = int(match[3]) + (2000 if len(match[3]) == 2 else 0)
        return _seconds(year, int(match[1]), int(match[2]), match.groups()[3:7], None)
    match = _NO_YEAR.search(head)
    if match is not None:
        month, day = int(match[1] or match[3]), int(match[2] or match[4])
        this_year = datetime.fromtimestamp(near).year
        guesses = (
            _seconds(year, month, day, match.groups()[4:8], None)
            for year in (this_year - 1, this_year, this_year + 1)
        )
        return min((g for g in guesses if g is not None), key=lambda g: abs(g - near), default=None)
    return None


def zone_skew(last_stamp: float | None, modified: float) -> float:
    """Seconds by which a log's stamps are ahead of this host's idea of local time.

    Known only where the last stamped line was also the last write: then both differ by a whole
    number of quarters of an hour.
    """
    if last_stamp is None:
        return 0.0
    ahead = last_stamp - modified
    quarters = round(ahead / _QUARTER) * _QUARTER
    return quarters if abs(ahead - quarters) <= _ZONE_SLACK and abs(quarters) <= 14 * 3600 else 0.0


def bar_elapsed(text: str) -> float | None:
    """Seconds since its start that a progress bar shows; None if the text is no bar."""
    match = _BAR_ELAPSED.search(text)
    if match is None:
        return None
    return int(match[1] or 0) * 3600.0 + int(match[2]) * 60.0 + int(match[3])


def intervals(moments: Iterable[float | None]) -> tuple[float, ...]:
    """Positive differences of consecutive known moments, in seconds."""
    known = [moment for moment in moments if moment is not None]
    return tuple(b - a for a, b in pairwise(known) if b > a)


def _seconds(
    year: int, month: int, day: int, clock: tuple[str | None, ...], zone: str | None
) -> float | None:
    hour, minute, second, fraction = clock
    micros = int((fraction or "0").ljust(6, "0"))
    try:
        moment = datetime(
            year, month, day, int(hour or 0), int(minute or 0), int(second or 0), micros
        )
        if zone is None:
            return moment.timestamp()
        if zone == "Z":
            return moment.replace(tzinfo=timezone.utc).timestamp()
        digits = zone.replace(":", "")
        offset = (int(digits[1:3]) * 60 + int(digits[3:5])) * 60.0
        utc = moment.replace(tzinfo=timezone.utc).timestamp()
        return utc - offset if digits[0] == "+" else utc + offset
    except (ValueError, OverflowError, OSError):
        return None
