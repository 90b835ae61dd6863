"""The phases of a job that its log marks, and how long each may be silent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from whyhang.engine.threshold import phase_limit, phase_threshold
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.words import Phase

_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    name: Phase
    opened: float
    allowed: float


class Phases:
    """Which phase is open, how long earlier ones took, what is left of each one's limit.

    Begin and end markers need not pair: a phase ends by its end marker or by progress, and its
    limit bounds it. Opening it again before any progress uses up what is left of the limit, so
    that a marker repeated for ever hides nothing. Times are seconds of the job's own time.
    """

    def __init__(self, config: DetectConfig) -> None:
        self._config = config
        self._open: _Open | None = None
        self._history: dict[Phase, deque[float]] = {}
        self._spent: dict[Phase, float] = {}

    @property
    def current(self) -> Phase | None:
        """The open phase; None while training."""
        return None if self._open is None else self._open.name

    def open(self, phase: Phase, moment: float, *, moved: bool) -> bool:
        """Open a phase; whether that is a sign of life. ``moved``: its own counter moved."""
        if self._open is not None and self._open.name == phase:
            return moved
        if self._open is not None:
            self._spend(self._open, moment)
            self._open = None
        left = phase_limit(self._config, phase) - self._spent.get(phase, 0.0)
        if left <= 0.0 and not moved:
            return False
        self._open = _Open(name=phase, opened=moment, allowed=max(left, 0.0))
        return True

    def close(self, phase: Phase, moment: float) -> bool:
        """An end marker was seen; whether that phase was open."""
        if self._open is None or self._open.name != phase:
            return False
        self._spend(self._open, moment)
        self._remember(self._open, moment)
        self._open = None
        return True

    def progressed(self, moment: float) -> None:
        """Progress ends any phase and renews all limits."""
        if self._open is not None:
            self._remember(self._open, moment)
            self._open = None
        self._spent.clear()

    def restart(self) -> None:
        """Another attempt: no phase of the last one is open. What was learned stays."""
        self._open = None
        self._spent.clear()

    def threshold(self, train: float) -> float:
        """Seconds of silence that are suspect now, ``train`` being those of training."""
        if self._open is None:
            return train
        history = tuple(self._history.get(self._open.name, ()))
        limit = phase_threshold(self._config, self._open.name, train, history)
        return max(train, min(limit, self._open.allowed))

    def _spend(self, phase: _Open, moment: float) -> None:
        self._spent[phase.name] = self._spent.get(phase.name, 0.0) + moment - phase.opened

    def _remember(self, phase: _Open, moment: float) -> None:
        entries = self._history.setdefault(phase.name, deque(maxlen=_KEPT))
        entries.append(moment - phase.opened)
