"""From the files of a job's log to the state of its progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from whyhang.collectors.log_events import find_events
from whyhang.collectors.log_gate import LogGate
from whyhang.collectors.normalise import Normaliser
from whyhang.collectors.presets import PresetReader
from whyhang.collectors.tail import Chunk, Tailer
from whyhang.engine.stamp import utc_now
from whyhang.engine.streams import LogFile
from whyhang.engine.watch import Transition, Watch
from whyhang.schemas.config import Config
from whyhang.schemas.progress import LogEvent, LogLine, Progress

LINES_KEPT = 400
NOTABLE_KEPT = 2000
# What a poll takes in of one file: the newest lines tell the progress, and the CPU is the job's.
LINES_PER_POLL = 2000
LINE_CHARACTERS = 4000
# Enough for a rhythm, where only its median is known.
PRIMED_GAPS = 16
OWN_PREFIX = b"whyhang: "
# A collective's timeout is about to end the job, and with it the evidence. A traceback is not
# urgent: programs print them and go on; one whose process ends is noticed by its end.
_URGENT = frozenset(("watchdog_timeout",))
# torchrun's agent, where its own log is shown, before the processes of the next attempt.
_RESTARTS = b"will restart worker group"


class LogWatch:
    """Tails the logs and keeps a :class:`Watch` told. ``now`` is always monotonic seconds."""

    def __init__(self, logs: Sequence[LogFile], config: Config, now: float) -> None:
        self.watch = Watch(config.detect, now)
        self.preset: str | None = None
        self._progress = config.progress
        # What stood in a file before the job is none of its progress.
        self._tailers = (
            Tailer([log.path for log in logs if log.start], start="end"),
            Tailer([log.path for log in logs if not log.start]),
        )
        # Where those files end now, before anybody reads what their past tells.
        self._tailers[0].poll(now)
        self._named = self._progress.preset
        self._normalisers: dict[str, Normaliser] = {}
        self._readers: dict[str, PresetReader] = {}
        self._others: dict[str, int] = {}
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._gates: dict[str, LogGate] = {}
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
        return tuple(self._lines)

    def events(self) -> tuple[LogEvent, ...]:
        """The faults that the log has told of."""
        return find_events(self._notable)

    def close(self) -> None:
        """Close the files."""
        for tailer in self._tailers:
            tailer.close()

    def read(self, chunk: Chunk, now: float) -> None:
        """Take in new bytes of one file."""
        source = chunk.source
        if source not in self._readers:
            self._normalisers[source] = Normaliser()
            self._readers[source] = PresetReader(self._named, self._progress.pattern)
            self._others[source] = 0
            self._gates[source] = LogGate()
        if not chunk.tentative:
            self._restarts |= _RESTARTS in chunk.data
        data = without_own(newest(chunk.data))
        if not chunk.tentative:
            self._lines.extend(_lines(data))
        reader = self._readers[source]
        wall = time.time_ns()
        for piece in self._normalisers[source].feed(data):
            for came, line in reader.feed_at(now, piece.text, piece.rank):
                # Lines that were kept until a preset was found have a rhythm, too.
                self._told = max(self._told, came)
                at = utc_now(wall - int((now - self._told) * 1e9))
                self.watch.see(self._told, line, at, source)
                if line.kind == "progress":
                    self.preset = reader.preset
                    self._stepped = True
                    self.has_timed_out = False
        if not chunk.tentative:
            self._note_faults(self._gates[source].feed(chunk.data))
        if reader.others > self._others[source]:
            self._others[source] = reader.others
            self.watch.alive(now)

    def _note_faults(self, lines: Iterable[bytes]) -> None:
        """Keep the few lines that may tell of a fault, however much is logged after them."""
        fresh = [line.decode("utf-8", "replace") for line in lines]
        self._notable.extend(fresh)
        if any(event.kind in _URGENT for event in find_events(fresh)):
            self.has_timed_out = True


def newest(data: bytes) -> bytes:
    """The last lines, as many as one poll takes in."""
    *dropped, tail = data.rsplit(b"\n", LINES_PER_POLL + 1)
    return b"\n".join([*dropped[1:], tail]) if len(dropped) > LINES_PER_POLL else data


def without_own(data: bytes) -> bytes:
    """Drop what whyhang itself wrote: with ``2>&1`` it stands in the log that is watched."""
    if OWN_PREFIX not in data:
        return data
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(OWN_PREFIX))


def _lines(data: bytes) -> Iterator[str]:
    """Lines for people: of a progress bar only its last state."""
    for raw in data.split(b"\n"):
        text = raw.rstrip(b"\r").rpartition(b"\r")[2][:LINE_CHARACTERS]
        if text.strip():
            yield text.decode("utf-8", "replace")
