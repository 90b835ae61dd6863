"""Which of several progress bars is that of the training."""

from __future__ import annotations

_ENOUGH_RISES = 3
_STUCK_BAR_RISES = 30
_NEARLY_DONE = 0.9


class BarLatch:
    """Tells the training bar from the bars of other phases, by what stands before it and its total.

    The first bar seen holds the latch. Another takes it over by rising when the holder is complete,
    never rose itself, or has stood still for long. A pinned total holds against all others.
    """

    def __init__(self) -> None:
        self._held: tuple[str, int] | None = None
        self._pinned = False
        self._named = False
        self._steps: dict[tuple[str, int], int] = {}
        self._rises: dict[tuple[str, int], int] = {}

    def pin(self, total: int) -> None:
        """Hold to bare bars of this total, which the log has announced."""
        self._held = ("", total)
        self._pinned = True

    def admits(
        self, about: str, step: int, total: int, *, named: bool = False
    ) -> tuple[bool, bool]:
        """Whether the bar is the training bar, and whether it moved.

        ``named``: its description says that it is; it need not rise first.
        """
        key = (about, total)
        last = self._steps.get(key)
        moved = last is not None and step != last
        self._steps[key] = step
        if last is None or step < last:
            self._rises[key] = 0
        elif moved:
            self._rises[key] += 1
        if self._held is None and not named and last is None and 0 < total <= step:
            return False, moved  # over when it was first seen: something short, before the training
        if self._held is None or (named and not self._named and not self._pinned):
            self._held, self._named = key, named
        if key == self._held:
            for other in self._rises:
                if other != key and moved:
                    self._rises[other] = 0
        elif self._may_take(key):
            self._held, self._named = key, named
        return key == self._held, moved

    def _may_take(self, key: tuple[str, int]) -> bool:
        held = self._held
        if held is None or self._pinned or self._rises[key] < _ENOUGH_RISES - 1:
            return False
        complete = self._steps.get(held, 0) >= _NEARLY_DONE * held[1]
        never_rose = self._rises.get(held, 0) < _ENOUGH_RISES - 1 and self._steps.get(held, 0) == 0
        return complete or never_rose or self._rises[key] >= _STUCK_BAR_RISES
