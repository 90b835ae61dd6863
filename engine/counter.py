"""The order of progress: whether a line moved training on, however the framework counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from whyhang.schemas.progress import LogLine

_NEARLY_DONE = 0.9
_SMALL = 0.1
# So many moments with rising steps below the highest are no stragglers: the counter was set back.
_RESET_MOMENTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Progress: ``steps`` since the last one (None where not comparable).

    ``restarted``: another attempt began; ``new_epoch``: a counter began anew.
    """

    steps: int | None = None
    restarted: bool = False
    new_epoch: bool = False


@dataclass(slots=True)
class _Writer:
    """One who prints: each rank of each file has bars of its own."""

    lap: int = 0
    step: int | None = None
    total: int | None = None


@dataclass(slots=True)
class StepCounter:
    """Orders lines by (restarts, epoch, step); only what is higher than all before is progress.

    Steps fall for good reasons: a bar begins its next epoch, a job resumes from a checkpoint. They
    also fall for bad ones: torn lines, slower ranks, other loops. The former are taken for a new
    round when the counter had reached its end, when a restart was announced, or when the lower
    steps keep rising while the higher ones do not.
    """

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    per_rank: dict[int, int] = field(default_factory=dict)
    _key: tuple[int, int, int] | None = None
    _fraction: float | None = None
    _epoch_number: int | None = None
    _laps: bool = False
    _restart: bool = False
    _lower: int | None = None
    _lower_moments: list[float] = field(default_factory=list)
    _writers: dict[tuple[str | None, int | None], _Writer] = field(default_factory=dict)
    _moved: bool = False

    @property
    def started(self) -> bool:
        """Whether any progress was ever seen."""
        return self._moved

    @property
    def at_end(self) -> bool:
        """Whether the counter stands at its total."""
        return self.step is not None and self.total is not None and self.step >= self.total > 0

    @property
    def has_epochs(self) -> bool:
        """Whether the end of the counter may be that of an epoch only."""
        return self._laps or self._epoch_number is not None

    def announce_restart(self) -> None:
        """A marker of the job's start was seen: the next lower step belongs to a new attempt."""
        self._restart = self._moved

    def announce_epoch(self, epoch: float) -> None:
        """Lines that follow belong to this epoch."""
        self._epoch_number = int(epoch)

    def announce_total(self, total: int) -> None:
        """The log tells how many steps there will be."""
        self.total = total

    def restart(self) -> None:
        """Forget the steps: another attempt begins."""
        self.step = self.total = self._key = self._lower = None
        self.epoch = self._fraction = self._epoch_number = None
        self._laps = self._restart = self._moved = False
        self._lower_moments.clear()
        self._writers.clear()
        self.per_rank.clear()

    def advance(self, line: LogLine, moment: float, source: str | None = None) -> Move | None:
        """Whether the line is progress; None if not."""
        if line.step is None:
            move = self._stepless(line)
        else:
            move = self._stepped(line, line.step, moment, source)
        self._moved = self._moved or move is not None
        return move

    def _stepless(self, line: LogLine) -> Move | None:
        """Lines with an epoch's fraction only, or with nothing at all (any line counts)."""
        if line.epoch is None:
            return Move() if self.step is None else None
        if self.step is not None:
            # Where steps are known, such a line repeats what the bar has said.
            self.epoch = max(line.epoch, self.epoch or 0.0)
            return None
        if self._fraction is not None and line.epoch <= self._fraction:
            if not self._restart:
                return None
            self.restart()
            self._fraction = self.epoch = line.epoch
            return Move(restarted=True)
        self._fraction = self.epoch = line.epoch
        return Move()

    def _stepped(self, line: LogLine, step: int, moment: float, source: str | None) -> Move | None:
        writer = self._writers.setdefault((source, line.rank), _Writer())
        if line.epoch is not None:
            epoch = int(line.epoch)
        else:
            epoch = self._epoch_number or 0
            if _begins_anew(writer, step, line.total):
                writer.lap += 1
        before = writer.step
        writer.step = step
        writer.total = line.total if line.total is not None else writer.total
        if line.rank is not None:
            self.per_rank[line.rank] = step
        key = (writer.lap, epoch, step)
        if self._key is None or key > self._key:
            return self._take(line, key)
        if self._restart and (before is None or step != before):
            self._restart_at(line, source, (0, epoch, step))
            return Move(restarted=True)
        if self._was_set_back(step, moment):
            writer.lap = self._key[0] + 1
            return self._take(line, (writer.lap, epoch, step))
        return None

    def _take(self, line: LogLine, key: tuple[int, int, int]) -> Move:
        old = self._key
        same_round = old is not None and old[:2] == key[:2]
        self._laps = self._laps or key[0] > 0
        self._restart = False
        self._lower = None
        self._lower_moments.clear()
        self._key = key
        self.step = line.step
        self.total = line.total if line.total is not None else self.total
        if line.epoch is not None:
            self._epoch_number = int(line.epoch)
            self.epoch = line.epoch
        elif self._epoch_number is not None:
            self.epoch = float(self._epoch_number)
        elif self._laps:
            self.epoch = float(key[0])
        steps = key[2] - old[2] if old is not None and same_round else None
        return Move(steps=steps, new_epoch=old is not None and not same_round)

    def _restart_at(self, line: LogLine, source: str | None, key: tuple[int, int, int]) -> None:
        self.restart()
        self._writers[source, line.rank] = _Writer(step=line.step, total=line.total)
        if line.rank is not None and line.step is not None:
            self.per_rank[line.rank] = line.step
        self._take(line, key)

    def _was_set_back(self, step: int, moment: float) -> bool:
        """Whether lower steps rose at several moments while the highest stood still."""
        if self._lower is None or step < self._lower:
            self._lower_moments.clear()
        elif step == self._lower:
            return False
        self._lower = step
        if not self._lower_moments or moment > self._lower_moments[-1]:
            self._lower_moments.append(moment)
        return len(self._lower_moments) >= _RESET_MOMENTS


def _begins_anew(writer: _Writer, step: int, total: int | None) -> bool:
    """Whether a bar that was (nearly) full is drawn again from its begin."""
    if writer.step is None or writer.total is None or step >= writer.step:
        return False
    full = writer.step >= _NEARLY_DONE * writer.total
    size = total if total is not None else writer.total
    return full and step <= max(1.0, _SMALL * size)
