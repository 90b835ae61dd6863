"""What a job wrote and when: the input of every detector."""

from __future__ import annotations

import random
from dataclasses import dataclass

# Wall time of second 0, for the timestamps that lines carry.
EPOCH = 1_780_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Text that appeared in the log at a moment, in seconds; it ends in ``\\n`` or ``\\r``."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A job that hangs at ``hang_at``; a watch that begins at ``attach_at`` knows what was before.

    ``records`` end at the hang.
    """

    shape: str
    records: tuple[Record, ...]
    hang_at: float
    attach_at: float = 0.0


class Script:
    """Writes a trace down: time passes with :meth:`wait`, lines appear with :meth:`say`."""

    def __init__(self, shape: str, seed: int, scale: float = 1.0) -> None:
        self._shape = shape
        self.random = random.Random(f"{shape}/{seed}")
        self.now = 0.0
        self._scale = scale
        self._records: list[Record] = []
        self._attach_at = 0.0

    def count(self, usual: int) -> int:
        """How many of something this trace has; short traces have fewer."""
        return max(1, round(usual * self._scale))

    def wait(self, seconds: float, spread: float = 0.0) -> None:
        """Let time pass, more or less by the relative ``spread``."""
        self.now += max(0.01, seconds * self.random.gauss(1.0, spread)) if spread else seconds

    def between(self, low: float, high: float) -> None:
        """Let a time pass that is anything between the two."""
        self.now += self.random.uniform(low, high)

    def say(self, text: str, end: str = "\n") -> None:
        """Write a line now."""
        self._records.append(Record(at=self.now, text=text + end))

    def attach(self) -> None:
        """The watch begins now; the log so far is history."""
        self._attach_at = self.now

    def hang(self, earliest: float = 0.6) -> Trace:
        """The trace up to a moment in its last part, or in its last 60 % after the attachment."""
        begin = self._attach_at
        hang_at = begin + self.random.uniform(earliest, 1.0) * (self.now - begin)
        return Trace(
            shape=self._shape,
            records=tuple(record for record in self._records if record.at <= hang_at),
            hang_at=hang_at,
            attach_at=begin,
        )
