"""A job that tests play to the watch."""

from __future__ import annotations

from collections.abc import Iterable

from whyhang.engine.watch import Transition, Watch
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.progress import EventKind, LogLine

AUTO = DetectConfig()
STALL = DetectConfig(stall=20.0)


class Job:
    """Plays a job to a watch: one tick a second, lines at their time."""

    def __init__(self, config: DetectConfig = AUTO) -> None:
        self.watch = Watch(config, 0.0)
        self.now = 0.0
        self.changes: list[Transition] = []

    def wait(self, seconds: float, every: float = 1.0) -> Job:
        end = self.now + seconds
        while self.now + every <= end:
            self.now += every
            self.tick()
        self.now = end
        return self

    def tick(self) -> None:
        change = self.watch.tick(self.now)
        while change is not None:
            self.changes.append(change)
            change = self.watch.tick(self.now)

    def say(
        self,
        kind: EventKind = "progress",
        *,
        step: int | None = None,
        total: int | None = None,
        epoch: float | None = None,
        rank: int | None = None,
        seconds_per_step: float | None = None,
        text: str = "",
    ) -> Job:
        line = LogLine(
            kind=kind,
            step=step,
            total=total,
            epoch=epoch,
            rank=rank,
            seconds_per_step=seconds_per_step,
            text=text,
        )
        self.watch.see(self.now, line, at=f"t{self.now}", source="log")
        return self

    def steps(
        self,
        numbers: Iterable[int],
        gap: float,
        *,
        total: int | None = None,
        rank: int | None = None,
        text: str = "",
    ) -> Job:
        for number in numbers:
            self.wait(gap).say(step=number, total=total, rank=rank, text=text)
        return self

    def states(self) -> list[str]:
        self.tick()
        return [change.state for change in self.changes]
