"""When detection would speak up on a recorded history: the watch again, on the job's own clock."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.threshold import confirm_seconds
from whyhang.engine.watch import Transition, Watch
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import EventKind, LogLine, ProgressEvent
from whyhang.schemas.replay import Alarm
from whyhang.schemas.words import Phase

# A long silence is walked in so many steps; crossings are exact all the same.
STEPS = 400
# Longer than any threshold that makes sense; the steps grow, so that this costs nothing.
HORIZON_SECONDS = 1e9
# Enough gaps for a rhythm, where only its median is known.
SEEDED_GAPS = 16
_KINDS: dict[Phase, EventKind] = {
    "eval": "eval",
    "checkpoint": "checkpoint_save_start",
    "init": "init",
    "compile": "compile",
    "end": "end",
}


def replay_alarm(incident: Incident, config: DetectConfig) -> Alarm | None:
    """The alarm of a configuration on an incident; None where its log was not read."""
    progress = incident.progress
    if progress.stalled_seconds is None:
        return None
    span = incident.samples[-1].monotonic_seconds if incident.samples else 0.0
    recorded = progress.stalled_seconds + span
    if not incident.history:
        return _estimate(incident, config, recorded)
    walk = _Walk(config, incident.history[0].monotonic_seconds)
    for event in incident.history:
        walk.to(event.monotonic_seconds)
        walk.see(event, progress.total)
    earlier = walk.confirmed
    return walk.silence(earlier=earlier, recorded=recorded, estimated=False)


def _estimate(incident: Incident, config: DetectConfig, recorded: float) -> Alarm:
    """The same from the summary alone: steps at the median interval, then silence."""
    progress = incident.progress
    walk = _Walk(config, 0.0)
    if progress.step is not None:
        event = ProgressEvent(at="", monotonic_seconds=0.0, step=progress.step)
        walk.see(event, progress.total)
    if progress.median_interval_seconds is not None:
        walk.watch.seed([progress.median_interval_seconds] * SEEDED_GAPS)
    if progress.phase is not None and progress.phase != "train":
        walk.watch.enter(progress.phase, 0.0)
    return walk.silence(earlier=0, recorded=recorded, estimated=True)


class _Walk:
    """A watch that is led through time; ticks are no signs of a suspended host here."""

    def __init__(self, config: DetectConfig, started: float) -> None:
        self._config = config
        self._now = self._advanced = started
        self.watch = Watch(config, started)
        self.confirmed = 0

    def see(self, event: ProgressEvent, total: int | None) -> None:
        """Take in what was recorded of a line."""
        line = _line(event, total)
        self.watch.see(self._now, line, event.at, event.source)
        if line.kind == "progress":
            self._advanced = self._now

    def to(self, moment: float) -> None:
        """Let time pass until a moment, and count the alarms on the way."""
        step = max(1.0, (moment - self._now) / STEPS)
        while self._now < moment:
            self._now = min(moment, self._now + step)
            self.confirmed += sum(change.state == "confirmed" for change in self._tick())

    def silence(self, *, earlier: int, recorded: float, estimated: bool) -> Alarm:
        """The alarm if nothing more is heard."""
        end = self._now + HORIZON_SECONDS
        step = 1.0
        while self._now < end:
            for change in self._tick():
                if change.state == "suspect":
                    return self._alarm(change, earlier, recorded, estimated)
            self._now += step
            # Whoever waits for days need not do so by the second.
            step = max(1.0, (self._now - self._advanced) / STEPS)
        raise AssertionError("every threshold ends before the horizon")

    def _alarm(self, change: Transition, earlier: int, recorded: float, estimated: bool) -> Alarm:
        threshold = change.threshold_seconds
        late = change.silent_seconds - threshold
        suspected = change.at - late - self._advanced
        return Alarm(
            threshold=round(threshold, 1),
            suspected=round(suspected, 1),
            confirmed=round(suspected + confirm_seconds(self._config, threshold), 1),
            recorded=round(recorded, 1),
            earlier=earlier,
            estimated=estimated,
        )

    def _tick(self) -> Iterator[Transition]:
        self.watch.worked(self._now)
        while (change := self.watch.tick(self._now)) is not None:
            yield change


def _line(event: ProgressEvent, total: int | None) -> LogLine:
    """The line that left this event, as far as it matters."""
    if event.step is not None and event.phase in ("train", "end"):
        return LogLine(
            kind="progress", step=event.step, total=total, epoch=event.epoch, rank=event.rank
        )
    kind = _KINDS.get(event.phase, "checkpoint_save_end")
    return LogLine(kind=kind, step=event.step, rank=event.rank)
