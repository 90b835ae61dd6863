"""Evidence of a long silence that is not suspect yet: the job may end in it.

A collective's timeout (ten minutes, often) destroys the evidence before a slow job's threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyhang.engine.log_watch import LogWatch
    from whyhang.engine.stall import Stall

# PyTorch's own.
USUAL_TIMEOUT_SECONDS = 600.0
# Two looks before a timeout can be compared; short timeouts are no reason to look all the time.
SHARE_OF_TIMEOUT = 0.4
LEAST_SECONDS = 30.0
KEPT_SAMPLES = 3


class EarlyLooks:
    """Looks at a silent job now and then, and keeps the newest few samples.

    ``begin`` makes a stall to write them into. A new one takes the place of a full one once two
    samples of its own can be compared.
    """

    def __init__(self, begin: Callable[[], Stall]) -> None:
        self._begin = begin
        self._every = self._due = 0.0
        self.expect(None)
        self._full: Stall | None = None
        self._current: Stall | None = None

    @property
    def stall(self) -> Stall | None:
        """What shows most of the silence; None where there was no look."""
        return self._full or self._current

    def expect(self, timeout_seconds: float | None) -> None:
        """Look in time for a timeout of collectives, as far as it is known."""
        timeout = min(timeout_seconds or USUAL_TIMEOUT_SECONDS, USUAL_TIMEOUT_SECONDS)
        self._every = self._due = max(LEAST_SECONDS, SHARE_OF_TIMEOUT * timeout)

    def look(self, silent_seconds: float, log: LogWatch) -> None:
        """Take a sample where one is due; forget all where the job has gone on."""
        if silent_seconds < self._every:
            self.drop()
        elif silent_seconds >= self._due:
            self._due = silent_seconds + self._every
            if self._current is not None and self._current.samples >= KEPT_SAMPLES:
                self._full, self._current = self._current, None
            self._current = self._current or self._begin()
            self._current.look(log, deep=False)
            if self._full is not None and self._current.samples > 1:
                self._full.discard()
                self._full = None

    def take(self) -> Stall | None:
        """Hand over what shows most, and forget the rest."""
        taken = self.stall
        self._full = None if self._full is taken else self._full
        self._current = None if self._current is taken else self._current
        self.drop()
        return taken

    def drop(self) -> None:
        """Forget all: the job went on, or others tell of the silence."""
        for stall in (self._full, self._current):
            if stall is not None:
                stall.discard()
        self._full = self._current = None
        self._due = self._every
