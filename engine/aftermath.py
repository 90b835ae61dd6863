"""What follows a verdict: more samples, later and later, until the job moves or the hour is over.

A hang may change its face (a timeout kills one rank, a reader arrives late), and a second look
tells a lasting hang from a long pause. Pure: it is told the time.
"""

from __future__ import annotations

from typing import Literal

from whyhang.schemas.verdict import Verdict

LOOKS_SECONDS = (600.0, 1800.0, 3600.0)
BETWEEN_SECONDS = 10.5

Look = Literal["light", "deep"]


class Aftermath:
    """The looks that are still due after a verdict given at ``concluded`` (monotonic seconds)."""

    def __init__(
        self,
        concluded: float,
        *,
        looks: tuple[float, ...] = LOOKS_SECONDS,
        between: float = BETWEEN_SECONDS,
    ) -> None:
        self._due = [concluded + seconds for seconds in looks]
        self._between = between
        self._deep_at: float | None = None

    def due(self, now: float) -> Look | None:
        """The look to take now: first one that stops nobody, then one with native frames."""
        if self._deep_at is not None:
            if now < self._deep_at:
                return None
            self._deep_at = None
            return "deep"
        if not self._due or now < self._due[0]:
            return None
        # One that the watcher slept through is not made up for.
        self._due = [moment for moment in self._due if moment > now]
        self._deep_at = now + self._between
        return "light"

    @property
    def is_over(self) -> bool:
        """Whether no look is left."""
        return not self._due and self._deep_at is None


def gist(verdict: Verdict) -> tuple[object, ...]:
    """What people are told of; another gist is a change."""
    return (
        verdict.verdict,
        verdict.category,
        verdict.confidence,
        tuple(verdict.suspects.ranks),
        verdict.suspects.nodes,
    )
