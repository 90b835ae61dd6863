"""From the files of a job's log to the state of its progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence

from whyhang.collectors.log_events import find_events
from whyhang.collectors.log_patterns import PATTERNS
from whyhang.collectors.tail import Chunk, Tailer
from whyhang.engine.log_source import LINES_KEPT, LogSource, is_theirs, shown
from whyhang.engine.stamp import utc_now
from whyhang.engine.streams import LogFile
from whyhang.engine.watch import Transition, Watch
from whyhang.schemas.config import Config
from whyhang.schemas.progress import LogEvent, LogLine, Progress

NOTABLE_KEPT = 2000
# Enough for a rhythm, where only its median is known.
PRIMED_GAPS = 16
# A collective's timeout is about to end the job, and with it the evidence. A traceback is not
# urgent: programs print them and go on; one whose process ends is noticed by its end.
_URGENT = frozenset(("watchdog_timeout",))
_URGENT_LITERALS = tuple(one.literal for one in PATTERNS if one.kind in _URGENT)
# torchrun's agent, where its own log is shown, before the processes of the next attempt.
_RESTARTS = "will restart worker group"


class LogWatch:
    """Tails the logs and keeps a :class:`Watch` told. ``now`` is always monotonic seconds."""

    def __init__(self, logs: Sequence[LogFile], config: Config, now: float) -> None:
        self.watch = Watch(config.detect, now)
        self.preset: str | None = None
        self._progress = config.progress
        # What stood in a file before the job is none of its progress.
        self._tailers = (
            Tailer([log.path for log in logs if log.start], start="end", wake=True),
            Tailer([log.path for log in logs if not log.start], wake=True),
        )
        # Where those files end now, before anybody reads what their past tells.
        self._tailers[0].poll(now)
        self._named = self._progress.preset
        self._sources: dict[str, LogSource] = {}
        self._lines: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._notable: deque[str] = deque(maxlen=NOTABLE_KEPT)
        self._stepped = False
        self._restarts = False
        self._told = now
        self.has_timed_out = False

    def poll(self, now: float) -> None:
        """Read what is new."""
        for tailer in self._tailers:
            for chunk in tailer.poll(now):
                self.read(chunk, now)

    def transitions(self, now: float) -> Iterator[Transition]:
        """The changes of state that the time brings; a fault ends the wait of a suspicion only."""
        if self.has_timed_out:
            self.watch.hasten()
        while (change := self.watch.tick(now)) is not None:
            yield change
            if self.has_timed_out:
                self.watch.hasten()

    def prime(self, past: Progress, gaps: Sequence[float], now: float, *, stepped: bool) -> None:
        """Begin with what an old log tells: its last step and its rhythm, not its silence.

        ``gaps`` are those between its progress lines, as far as they tell the time. ``stepped``:
        the processes of now are known to have made steps; the log may be older.
        """
        if past.step is None:
            return
        line = LogLine(
            kind="progress",
            step=past.step,
            total=past.total,
            epoch=past.epoch,
            text=past.last_line or "",
        )
        self.watch.see(now, line, utc_now(time.time_ns()))
        if gaps:
            self.watch.seed(gaps)
        elif past.median_interval_seconds is not None:
            self.watch.seed([past.median_interval_seconds] * PRIMED_GAPS)
        self.preset = past.preset
        if past.preset is not None and self._progress.pattern is None:
            self._named = past.preset
        self._stepped = stepped

    def restart(self, now: float) -> None:
        """Another attempt of the job began: nothing of the one before counts."""
        self.watch.restart(now)
        self._stepped = self._restarts = self.has_timed_out = False

    def announced_restart(self) -> bool:
        """Whether the launcher has said since the last call that it starts the ranks again."""
        announced, self._restarts = self._restarts, False
        return announced

    def progress(self, now: float) -> Progress:
        """The view at this moment."""
        return self.watch.progress(now, self.preset)

    @property
    def has_steps(self) -> bool:
        """Whether the job has made a step since this attempt started."""
        return self._stepped

    @property
    def excerpt(self) -> tuple[str, ...]:
        """The last lines of all logs."""
        lines = (shown(line) for line in self._lines)
        return tuple(line.decode("utf-8", "replace") for line in lines if is_theirs(line))

    def events(self) -> tuple[LogEvent, ...]:
        """The faults that the log has told of."""
        return find_events(self._notable)

    def close(self) -> None:
        """Close the files."""
        for tailer in self._tailers:
            tailer.close()

    def read(self, chunk: Chunk, now: float) -> None:
        """Take in new bytes of one file."""
        if chunk.source not in self._sources:
            made = LogSource(self._named, self._progress.pattern, self._lines)
            self._sources[chunk.source] = made
        source = self._sources[chunk.source]
        wall = time.time_ns()
        at = ""
        for came, line in source.progress(chunk, now):
            # Lines that were kept until a preset was found have a rhythm, too.
            if came > self._told or not at:
                self._told = max(self._told, came)
                at = utc_now(wall - int((now - self._told) * 1e9))
            self.watch.see(self._told, line, at, chunk.source)
            if line.kind == "progress":
                self.preset = source.preset
                self._stepped = True
                self.has_timed_out = False
        self._note_faults(source.notable(chunk))
        if source.others_moved():
            self.watch.alive(now)

    def _note_faults(self, lines: Sequence[str]) -> None:
        """Keep the few lines that may tell of a fault, however much is logged after them."""
        self._restarts |= any(_RESTARTS in line for line in lines)
        self._notable.extend(lines)
        if any(literal in line for line in lines for literal in _URGENT_LITERALS) and any(
            event.kind in _URGENT for event in find_events(lines)
        ):
            self.has_timed_out = True
