"""The log of a job that already runs: where it is, and how old its last progress is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from whyhang.collectors.log_stamps import bar_elapsed, intervals, parse_stamp, zone_skew
from whyhang.collectors.normalise import Piece, normalise
from whyhang.collectors.presets import PresetReader
from whyhang.schemas.progress import LogLine, Progress
from whyhang.schemas.words import Phase, ProgressState

_READ_BYTES = 1 << 20
_MEDIANS_ALLOWED = 10.0
_FUTURE_SLACK = 60.0
_GAPS = 64
_PHASES: dict[str, Phase] = {
    "progress": "train",
    "eval": "eval",
    "checkpoint_save_start": "checkpoint",
    "checkpoint_save_end": "train",
    "compile": "compile",
    "end": "end",
    "init": "init",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAge:
    """How long ago the log last told of progress.

    ``seconds`` counts from ``at`` (seconds since the epoch), which is the line's own timestamp
    (``stamped``) or else the file's time of modification. All are None where the log cannot be
    read; ``last`` is None where no progress line was found. ``gaps`` are the seconds between
    progress lines of one stretch of training, as far as their timestamps or bars tell them.
    """

    seconds: float | None = None
    at: float | None = None
    stamped: bool = False
    preset: str | None = None
    last: LogLine | None = None
    phase: Phase | None = None
    gaps: tuple[float, ...] = ()
    median_interval_seconds: float | None = None
    per_rank_step: tuple[tuple[int, int], ...] = ()


def find_log(pids: Iterable[int], proc: Path = Path("/proc")) -> Path | None:
    """The regular file behind stdout or stderr of these processes that was written last.

    A file that was deleted, or that this mount namespace does not show, is named by its
    ``/proc/PID/fd/N``. None where all write to terminals, pipes or nowhere.
    """
    newest: tuple[int, int, Path] | None = None
    for pid in pids:
        for number in (1, 2):
            link = proc / str(pid) / "fd" / str(number)
            try:
                status = link.stat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                name = link.readlink()
            except OSError:
                continue
            path = name if _is_same(name, status) else link
            # Of two files written in the same moment the one with more in it says more.
            found = (status.st_mtime_ns, status.st_size, path)
            if newest is None or found[:2] > newest[:2]:
                newest = found
    return None if newest is None else newest[2]


def is_closed(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether we may not see what a process has open."""
    try:
        (proc / str(pid) / "fd" / "1").readlink()
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def log_age(path: Path, now: float, preset: str = "auto", pattern: str | None = None) -> LogAge:
    """How old the last progress line in the log's last 1 MiB is at ``now`` (seconds since 1970)."""
    try:
        with path.open("rb") as log:
            status = os.fstat(log.fileno())
            log.seek(max(0, status.st_size - _READ_BYTES))
            data = log.read(_READ_BYTES)
    except (OSError, ValueError):
        return LogAge()
    lines, last_stamp, reader = _read(data, status.st_mtime, preset, pattern)
    skew = zone_skew(last_stamp, status.st_mtime)
    rising, gaps = _rising(lines), _gaps(lines)
    at: float | None = None
    if rising:
        at = rising[-1][1]
    at = None if at is None else at - skew
    stamped = at is not None and at <= min(now, status.st_mtime) + _FUTURE_SLACK
    at = at if stamped else status.st_mtime
    steps: dict[int, int] = {}
    for line, _ in rising:
        if line.rank is not None and line.step is not None:
            steps[line.rank] = line.step
    return LogAge(
        seconds=None if at is None else max(0.0, now - at),
        at=at,
        stamped=stamped,
        preset=reader.preset,
        last=rising[-1][0] if rising else None,
        phase=_PHASES[lines[-1][0].kind] if lines else None,
        gaps=gaps,
        median_interval_seconds=_median_interval(gaps, rising),
        per_rank_step=tuple(sorted(steps.items())),
    )


def read_old_log(
    path: Path,
    now_wall: float,
    floor: float = 120.0,
    *,
    preset: str = "auto",
    pattern: str | None = None,
) -> Progress:
    """The progress of a job that nobody watched, judged by the age of its last progress line.

    Stalled when older than ``floor`` seconds and than ten of its usual intervals, as far as the
    log's own timestamps tell those. Unknown where the log shows no progress at all.
    """
    return judge_age(log_age(path, now_wall, preset, pattern), floor)


def judge_age(age: LogAge, floor: float = 120.0) -> Progress:
    """The same from an age that is known."""
    state: ProgressState = "unknown"
    threshold: float | None = None
    if age.last is not None and age.seconds is not None:
        threshold = max(floor, _MEDIANS_ALLOWED * (age.median_interval_seconds or 0.0))
        state = "stalled" if age.seconds > threshold else "advancing"
    last = age.last
    return Progress(
        state=state,
        preset=age.preset,
        step=None if last is None else last.step,
        total=None if last is None else last.total,
        epoch=None if last is None else last.epoch,
        stalled_seconds=None if last is None else age.seconds,
        threshold_seconds=threshold,
        median_interval_seconds=age.median_interval_seconds,
        phase=age.phase,
        last_line=None if last is None else last.text,
        per_rank_step=dict(age.per_rank_step),
    )


def _read(
    data: bytes, modified: float, preset: str, pattern: str | None
) -> tuple[list[tuple[LogLine, float | None]], float | None, PresetReader]:
    """The lines that say something, each with its timestamp, and the last timestamp of all."""
    reader = PresetReader(preset, pattern)
    lines: list[tuple[LogLine, float | None]] = []
    last_stamp: float | None = None
    # `auto` answers late, so lines are matched with their pieces by what they say.
    stamps: dict[str, float | None] = {}
    for piece in normalise(data):
        stamp = _stamp(piece, modified)
        last_stamp = stamp if stamp is not None else last_stamp
        stamps[piece.text[:_TEXT_KEY]] = stamp
        for line in reader.feed(piece.text, None if piece.local else piece.rank):
            lines.append((line, stamps.get(line.text[:_TEXT_KEY])))
    return lines, last_stamp, reader


# LogLine.text is cut; this much of it is there and is enough to tell progress lines apart.
_TEXT_KEY = 300


def _stamp(piece: Piece, modified: float) -> float | None:
    stamp = None if piece.stamp is None else parse_stamp(piece.stamp, modified)
    return parse_stamp(piece.text, modified) if stamp is None else stamp


def _rising(
    lines: Iterable[tuple[LogLine, float | None]],
) -> list[tuple[LogLine, float | None]]:
    """The progress lines that moved on; a counter that starts anew is taken for a new epoch."""
    rising: list[tuple[LogLine, float | None]] = []
    for line, stamp in lines:
        if line.kind != "progress":
            continue
        before = rising[-1][0] if rising else None
        same = before is not None and (before.step, before.epoch) == (line.step, line.epoch)
        if same and line.step is not None:
            continue
        if line.step is None and before is not None and before.step is not None:
            continue
        rising.append((line, stamp))
    return rising


def _gaps(lines: Iterable[tuple[LogLine, float | None]]) -> tuple[float, ...]:
    """The last gaps of training: no evaluation, checkpoint or start lies within one."""
    runs: list[list[tuple[LogLine, float | None]]] = [[]]
    for line, stamp in lines:
        if line.kind == "progress":
            runs[-1].append((line, stamp))
        else:
            runs.append([])
    moved = [_rising(run) for run in runs]
    stamped = [gap for run in moved for gap in intervals(stamp for _, stamp in run)]
    drawn = [gap for run in moved for gap in intervals(bar_elapsed(line.text) for line, _ in run)]
    return tuple((stamped or drawn)[-_GAPS:])


def _median_interval(
    gaps: tuple[float, ...], rising: list[tuple[LogLine, float | None]]
) -> float | None:
    if gaps:
        return median(gaps)
    recent = rising[-_GAPS:]
    reported = [line.seconds_per_step for line, _ in recent if line.seconds_per_step is not None]
    return median(reported) if reported else None


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        other = path.stat()
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)
