"""A recorded incident judged again: alarms, timelines of rules, and what a change would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.verdict import Verdict

RuleState = Literal["not", "pending", "inconclusive", "fired", "suppressed", "acts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """When detection speaks up, counted in seconds of silence since the last progress.

    ``suspected`` and ``confirmed`` may lie beyond ``recorded``, the silence that was seen: then
    they say what would happen if it went on. ``earlier`` counts the alarms before the last stall,
    each of which progress took back. ``estimated``: no history was recorded, so that the rhythm
    is that of the median interval.
    """

    threshold: float
    suspected: float
    confirmed: float
    recorded: float
    earlier: int = 0
    estimated: bool = False

    @property
    def is_raised(self) -> bool:
        """Whether the recorded silence is long enough for it."""
        return self.confirmed <= self.recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One incident under one set of rules.

    ``moments`` are the times of the samples in seconds after the first, ``verdicts`` what is said
    at each of them; ``states`` holds the states of each rule and suppression at these moments.
    ``alarm`` is None where nothing of the log was recorded; ``happened`` is the silence at which
    the job was really suspected, None where that is not known.
    """

    incident: str
    verdict: Verdict
    moments: tuple[float, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    states: Mapping[str, tuple[RuleState, ...]]
    alarm: Alarm | None = None
    happened: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """An incident that is not judged as expected: which part, what was expected, what was found."""

    incident: str
    part: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """An entry of the rules that differs; None where one side has no such entry."""

    kind: str
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChange:
    """An incident whose outcome differs, and in which parts."""

    incident: str
    parts: tuple[str, ...]
    before: Replayed
    after: Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs between two versions of the rules on some incidents."""

    old: str
    new: str
    items: tuple[ItemChange, ...]
    incidents: tuple[IncidentChange, ...]
    total: int

    @property
    def unchanged(self) -> int:
        """How many incidents are judged as before."""
        return self.total - len(self.incidents)
