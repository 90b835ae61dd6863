"""Whether a job that advances does so far below its own usual pace."""

from __future__ import annotations

from collections import deque
from statistics import median

_KEPT = 512
_NEEDED = 10
_RECENT = 5
_SLOW_TIMES = 5.0
# A slow job must come well below the limit before it counts as recovered.
_RECOVERED_TIMES = 3.0


class Pace:
    """Seconds per step, over the job's long past and of late."""

    def __init__(self) -> None:
        self._paces: deque[float] = deque(maxlen=_KEPT)
        self._step: int | None = None

    def note(self, step: int | None, gap: float | None) -> None:
        """A progress line came ``gap`` seconds after the last one; None where that says nothing."""
        before = self._step
        if gap is not None and step is not None and before is not None and step > before:
            self._paces.append(gap / (step - before))
        self._step = step

    def clear(self) -> None:
        """Forget the past: another attempt has a pace of its own."""
        self._paces.clear()
        self._step = None

    def slow(self, *, already: bool) -> bool:
        """Whether the last steps take more than five times as long as usual."""
        if len(self._paces) < _NEEDED + _RECENT:
            return False
        recent = median(list(self._paces)[-_RECENT:])
        return recent > (_RECOVERED_TIMES if already else _SLOW_TIMES) * median(self._paces)
