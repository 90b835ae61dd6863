"""What the training log says about progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whyhang.schemas.rankset import RankSet
from whyhang.schemas.words import Phase, ProgressState

EventKind = Literal[
    "progress", "eval", "checkpoint_save_start", "checkpoint_save_end", "init", "compile", "end"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What a preset read in one piece of a log.

    ``seconds_per_step`` is what the line itself reports, ``rank`` the one of a known prefix.
    """

    kind: EventKind
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    loss: float | None = None
    seconds_per_step: float | None = None
    rank: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """One line of ``progress.jsonl``: progress or a phase marker, when it was seen."""

    at: str
    monotonic_seconds: float
    epoch: float | None = None
    step: int | None = None
    phase: Phase = "train"
    rank: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The detector's view at sample 0; None where unknown."""

    state: ProgressState = "unknown"
    preset: str | None = None
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    stalled_seconds: float | None = None
    threshold_seconds: float | None = None
    median_interval_seconds: float | None = None
    phase: Phase | None = None
    last_line: str | None = None
    per_rank_step: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A log or kernel line that tells of a fault (``rank_failed``, ``watchdog_timeout``, …).

    ``kind`` names the event; ``ranks`` is whom it names; ``exit_code`` as the line gives it
    (negative: the signal's number).
    """

    kind: str
    line: str
    source: Literal["log", "kernel"] = "log"
    ranks: RankSet = field(default_factory=RankSet)
    node: str | None = None
    device: str | None = None
    exit_code: int | None = None
    at: str | None = None
