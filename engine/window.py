"""Windows of time over the samples of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from whyhang.schemas.missing import Missing

# A window with a longer gap than so many sampling intervals says nothing of the time between.
GAP_INTERVALS = 3.0


class Window:
    """When the samples were taken, in seconds of their own clock.

    The sampling interval is the median time between two samples: what is planned is regular, and
    a watcher that was stopped leaves a single long gap.
    """

    def __init__(self, moments: Sequence[float]) -> None:
        self.moments = moments
        gaps = [after - before for before, after in pairwise(moments)]
        self.max_gap = GAP_INTERVALS * median(gaps) if gaps else 0.0

    def spans(self, first: int, last: int, seconds: float) -> bool:
        """Whether the samples from ``first`` to ``last`` are that far apart."""
        return self.moments[last] - self.moments[first] >= seconds

    def hole(self, first: int, last: int) -> Missing | None:
        """Why the window from ``first`` to ``last`` is unknown in between, if it is."""
        for before, after in pairwise(self.moments[first : last + 1]):
            if after - before > self.max_gap:
                return Missing(f"no sample was taken for {after - before:.0f} s in between")
        return None

    def age(self, sample: int) -> float:
        """How long before the last sample one was taken, in seconds."""
        return self.moments[-1] - self.moments[sample]

    def too_short(self, seconds: float) -> Missing | None:
        """Why a window that is not full yet is unknown."""
        return Missing(f"the samples span less than {seconds:g} s")


class HopefulWindow(Window):
    """Takes a window that is not full yet for one that will be filled as it has begun."""

    def too_short(self, seconds: float) -> Missing | None:
        """Nothing is missing but time."""
        return None
