"""The trainers of one attempt of the job: whether they still live, or others took their place."""

from __future__ import annotations

from collections.abc import Iterable

from whyhang.collectors.procfs import read_stat
from whyhang.schemas.process import Process

_ENDED = frozenset("ZXx")


class Attempt:
    """Knows trainers by pid and start time: a pid may be given anew."""

    def __init__(self, processes: Iterable[Process]) -> None:
        self._started: dict[int, int] = {}
        for process in processes:
            stat = read_stat(process.pid) if process.kind == "trainer" else None
            if stat is not None and stat.state not in _ENDED:
                self._started[process.pid] = stat.start_ticks

    @property
    def is_known(self) -> bool:
        """Whether there was any trainer."""
        return bool(self._started)

    def living(self) -> int:
        """How many of the trainers have not ended."""
        return sum(_lives(pid, ticks) for pid, ticks in self._started.items())

    @property
    def has_lost(self) -> bool:
        """Whether a trainer has ended."""
        return self.living() < len(self._started)

    @property
    def has_ended(self) -> bool:
        """Whether all of them have ended."""
        return self.is_known and self.living() == 0

    def replaced_by(self, processes: Iterable[Process]) -> Attempt | None:
        """The next attempt, once all have ended and others train."""
        if not self.has_ended:
            return None
        following = Attempt(processes)
        return following if following.is_known else None


def _lives(pid: int, ticks: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.start_ticks == ticks and stat.state not in _ENDED
