"""The watch over one job's progress: a pure state machine that is told the time.

``warming -> advancing -> suspect -> confirmed``; progress heals a suspicion. Nothing here reads a
clock, a file or a process, so that a recorded history replays exactly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from whyhang.engine.counter import Move, StepCounter
from whyhang.engine.pace import Pace
from whyhang.engine.phases import Phases
from whyhang.engine.threshold import (
    HEALED_KEPT,
    MIN_GAPS,
    WINDOW,
    Rhythm,
    confirm_seconds,
    phase_limit,
    train_threshold,
)
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.progress import LogLine, Progress, ProgressEvent
from whyhang.schemas.words import Phase, ProgressState

WatchState = Literal["warming", "advancing", "slow", "suspect", "confirmed", "healed", "finishing"]

_HISTORY = 256
# Lines closer than this are one event: a poll reads them at once, a buffer is flushed at once.
_RESOLUTION_SECONDS = 1.0
# Lines that come all at once, yet report more work than this, were held in a buffer.
_BURST_SECONDS = 5.0
_REPORTS_KEPT = 5
_SUSPENDED_TIMES = 5.0
# A busy host is late by seconds; that much silence decides nothing.
_SUSPENDED_LEAST_SECONDS = 5.0
_TICKS_LEARNED = 5
_PROGRESS_STATES: dict[WatchState, ProgressState] = {
    "warming": "unknown",
    "suspect": "stalled",
    "confirmed": "stalled",
    "slow": "slow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of state; ``healed`` says that a suspicion ended by itself, then it advances.

    ``at`` is the caller's monotonic time, durations are seconds. ``silent_seconds`` counts from
    the last progress or sign of life.
    """

    state: WatchState
    previous: WatchState
    at: float
    silent_seconds: float
    threshold_seconds: float
    phase: Phase


class Watch:
    """Decides from progress lines and the time whether a job stands still.

    ``started`` is the monotonic time at which the job (or the watch) began. Tell it lines with
    :meth:`see` and the time with :meth:`tick`, at regular intervals: a tick that comes more than
    five times too late means that this host was suspended, and the job is credited with the time
    (see :meth:`worked` where it was the watcher that was busy).
    """

    def __init__(self, config: DetectConfig, started: float) -> None:
        self._config = config
        self._counter = StepCounter()
        self._state: WatchState = "warming"
        self._started = started
        self._suspended = 0.0
        self._last_tick: float | None = None
        self._tick_lengths: deque[float] = deque(maxlen=16)
        self._since = started
        self._advanced_at: float | None = None
        self._counted_at: float | None = None
        self._suspect_at = 0.0
        self._confirm_after = 0.0
        self._gaps: deque[float] = deque(maxlen=WINDOW)
        self._healed: deque[float] = deque(maxlen=HEALED_KEPT)
        self._reported: deque[float] = deque(maxlen=_REPORTS_KEPT)
        self._pace = Pace()
        self._at_once = 0.0
        self._buffered = False
        self._drop_gap = True
        self._phases = Phases(config)
        self._early_phase: Phase = "init"
        self._eval_step: tuple[int | None, int | None] | None = None
        self._hastened = False
        self._last_line: str | None = None
        self._pending: deque[Transition] = deque()
        self._history: deque[ProgressEvent] = deque(maxlen=_HISTORY)

    @property
    def state(self) -> WatchState:
        """The state now; never ``healed``, which is only passed through."""
        return self._state

    @property
    def phase(self) -> Phase:
        """What the job is doing, as far as its log tells."""
        if not self._counter.started:
            return self._early_phase
        return self._phases.current or "train"

    def see(self, now: float, line: LogLine, at: str = "", source: str | None = None) -> None:
        """Take in a line; ``at`` is the wall time for the history, ``source`` names the file."""
        moment = self._moment(now)
        phase_before = self.phase
        recorded = False
        if line.kind == "progress":
            move = self._counter.advance(line, moment, source)
            recorded = move is not None and self._advance(now, moment, line, move)
        elif line.kind == "eval":
            where = (line.step, line.total)
            moved = line.step is not None and where != self._eval_step
            self._eval_step = where
            self._open("eval", now, moment, moved=moved)
        elif line.kind == "checkpoint_save_start":
            self._open("checkpoint", now, moment)
        elif line.kind == "checkpoint_save_end":
            if self._phases.close("checkpoint", moment):
                self._show_life(now, moment)
        elif line.kind == "end":
            self._open("end", now, moment)
            self._enter_finishing(now, moment)
        else:
            self._begin(line, now, moment)
        if recorded or self.phase != phase_before:
            self._history.append(
                ProgressEvent(
                    at=at,
                    monotonic_seconds=now,
                    epoch=line.epoch if line.epoch is not None else self._counter.epoch,
                    step=line.step,
                    phase=self.phase,
                    rank=line.rank,
                    source=source,
                )
            )

    def tick(self, now: float) -> Transition | None:
        """Let time pass; the change of state it brings, if any. Call again for a second one."""
        moment = self._moment(now)
        if self._last_tick is None or now > self._last_tick:
            if self._last_tick is not None:
                self._tick_lengths.append(now - self._last_tick)
            self._last_tick = now
        if self._pending:
            return self._pending.popleft()
        limit = self._limit()
        silent = moment - self._since
        if self._state == "confirmed":
            return None
        if self._state == "suspect":
            if self._hastened or moment - self._suspect_at >= self._confirm_after:
                return self._change("confirmed", now, moment)
            return None
        if silent > limit:
            self._suspect_at = moment
            self._confirm_after = confirm_seconds(self._config, limit)
            return self._change("suspect", now, moment)
        return self._judge_pace(now, moment)

    def alive(self, now: float) -> None:
        """A bar of another phase moved: no progress, but a sign of life."""
        moment = self._moment(now)
        if self._counter.started:
            self._open(self._phases.current or "eval", now, moment, moved=True)
        elif self._config.stall is None:
            # Loading has no rhythm; a fixed threshold counts from the job's start.
            limit = phase_limit(self._config, "load")
            if moment - self._started <= limit:
                self._early_phase = "load"
                self._since = moment

    def enter(self, phase: Phase, now: float) -> None:
        """Others than the log tell of a phase (stacks, an open checkpoint)."""
        moment = self._moment(now)
        if self._counter.started:
            self._open(phase, now, moment)
        else:
            self._early_phase = phase

    def restart(self, now: float) -> None:
        """Another attempt of the job began: its processes are new."""
        moment = self._moment(now)
        self._counter.restart()
        self._forget_rhythm()
        self._phases.restart()
        self._early_phase = "init"
        self._since = self._started = moment
        self._advanced_at = self._counted_at = None
        self._hastened = False
        if self._state != "warming":
            self._pending.append(self._change("warming", now, moment))

    def hasten(self) -> None:
        """A fault was reported (a collective's timeout, a dead rank): confirm a suspicion at once.

        It makes nobody suspect: jobs survive faults. Progress takes it back.
        """
        self._hastened = self._state == "suspect"

    def worked(self, now: float) -> None:
        """The watcher itself was busy until ``now``: the late tick to come is no suspension."""
        self._last_tick = now

    def seed(self, gaps: Iterable[float]) -> None:
        """Begin with gaps, in seconds, that an old log's own timestamps tell."""
        self._gaps.extend(gap for gap in gaps if gap >= _RESOLUTION_SECONDS)

    def silent_for(self, now: float) -> float:
        """Seconds since the last progress; since the start where there was none."""
        moment = self._moment(now)
        return moment - (self._started if self._advanced_at is None else self._advanced_at)

    def progress(self, now: float, preset: str | None = None) -> Progress:
        """The view at ``now``, as it goes into an incident."""
        counter = self._counter
        return Progress(
            state=_PROGRESS_STATES.get(self._state, "advancing"),
            preset=preset,
            step=counter.step,
            total=counter.total,
            epoch=counter.epoch,
            stalled_seconds=self.silent_for(now),
            threshold_seconds=self._limit(),
            median_interval_seconds=median(self._gaps) if self._gaps else None,
            phase=self.phase,
            last_line=self._last_line,
            per_rank_step=dict(counter.per_rank),
        )

    def history(self) -> tuple[ProgressEvent, ...]:
        """The last 256 events that the decisions rest on."""
        return tuple(self._history)

    def _advance(self, now: float, moment: float, line: LogLine, move: Move) -> bool:
        """Take in progress; whether it is an event of its own (not within the same second)."""
        since_counted = None if self._counted_at is None else moment - self._counted_at
        own = since_counted is None or since_counted >= _RESOLUTION_SECONDS or move.new_epoch
        was_final = self._phases.current == "end"
        healed = self._state in ("suspect", "confirmed")
        if healed:
            if self._advanced_at is not None and not move.restarted:
                self._healed.append(moment - self._advanced_at)
            self._pending.append(self._change("healed", now, moment))
        self._phases.progressed(moment)
        if move.restarted:
            self._forget_rhythm()
            own, since_counted = True, None
        self._note_report(line, move, since_counted)
        if own:
            gap = None if self._drop_gap or healed or was_final else since_counted
            if gap is not None and gap >= _RESOLUTION_SECONDS:
                self._gaps.append(gap)
            self._pace.note(self._counter.step, gap)
            self._drop_gap = self._drop_gap and since_counted is None
            self._counted_at = moment
        self._advanced_at = self._since = moment
        self._hastened = False
        self._last_line = line.text or None
        if self._counter.at_end:
            self._open("end", now, moment)
            if not self._counter.has_epochs:
                self._enter_finishing(now, moment)
                return own
        if self._state not in ("advancing", "slow"):
            quietly = self._state == "healed"
            change = self._change("advancing", now, moment)
            if not quietly:
                self._pending.append(change)
        return own

    def _note_report(self, line: LogLine, move: Move, since_counted: float | None) -> None:
        """Keep what the line says about the time to the next one."""
        if line.seconds_per_step is None or not move.steps or line.seconds_per_step < 0:
            return
        expected = move.steps * line.seconds_per_step
        at_once = since_counted is not None and since_counted < _RESOLUTION_SECONDS
        self._at_once = self._at_once + expected if at_once else 0.0
        self._buffered = self._buffered or self._at_once >= _BURST_SECONDS
        self._reported.append(expected)

    def _judge_pace(self, now: float, moment: float) -> Transition | None:
        if self._state == "advancing" and self._pace.slow(already=False):
            return self._change("slow", now, moment)
        if self._state == "slow" and not self._pace.slow(already=True):
            return self._change("advancing", now, moment)
        return None

    def _begin(self, line: LogLine, now: float, moment: float) -> None:
        """Markers of initialisation and compilation."""
        if line.kind == "init" and line.epoch is not None:
            self._counter.announce_epoch(line.epoch)
            return
        if not self._counter.started:
            self._early_phase = "compile" if line.kind == "compile" else "init"
            if line.total is not None:
                self._counter.announce_total(line.total)
        elif line.kind == "compile":
            self._open("compile", now, moment)
        else:
            # A start in the midst of progress: the job resumes, perhaps from a lower step.
            self._counter.announce_restart()
            self._open("init", now, moment)

    def _open(self, phase: Phase, now: float, moment: float, *, moved: bool = False) -> None:
        if not self._counter.started:
            # Before the first step the wait for it bounds everything.
            if phase != "end":
                self._early_phase = phase
            return
        self._drop_gap = True
        if self._phases.open(phase, moment, moved=moved):
            self._show_life(now, moment)

    def _show_life(self, now: float, moment: float) -> None:
        """A phase began, moved or ended: no stall, unless it was confirmed already."""
        if self._state == "confirmed":
            return
        if self._state == "suspect":
            self._pending.append(self._change("healed", now, moment))
            self._change("advancing", now, moment)
        self._since = moment

    def _enter_finishing(self, now: float, moment: float) -> None:
        if self._counter.started and self._state not in ("finishing", "suspect", "confirmed"):
            quietly = self._state == "healed"
            change = self._change("finishing", now, moment)
            if not quietly:
                self._pending.append(change)

    def _forget_rhythm(self) -> None:
        self._gaps.clear()
        self._reported.clear()
        self._pace.clear()
        self._at_once = 0.0
        self._buffered = False
        self._drop_gap = True

    def _limit(self) -> float:
        """Seconds of silence that are suspect now."""
        # Lines that come in bursts say how long a step takes, not when the next line comes.
        trusted = not self._buffered or len(self._gaps) >= MIN_GAPS
        rhythm = Rhythm(
            gaps=self._gaps,
            healed=self._healed,
            reported=self._reported if trusted else (),
        )
        train = train_threshold(self._config, rhythm, stepped=self._counter.started)
        return self._phases.threshold(train)

    def _change(self, state: WatchState, now: float, moment: float) -> Transition:
        change = Transition(
            state=state,
            previous=self._state,
            at=now,
            silent_seconds=max(0.0, moment - self._since),
            threshold_seconds=self._limit(),
            phase=self.phase,
        )
        self._state = state
        return change

    def _moment(self, now: float) -> float:
        """The job's own time: ``now`` less what this host was suspended."""
        if self._last_tick is not None and len(self._tick_lengths) >= _TICKS_LEARNED:
            usual = median(self._tick_lengths)
            late = now - self._last_tick
            if late > max(_SUSPENDED_TIMES * usual, _SUSPENDED_LEAST_SECONDS):
                self._suspended += late - usual
                self._drop_gap = True
                self._last_tick = now
        return now - self._suspended
