"""The detector of whyhang and the simple rules that it is compared with, each over a trace."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from bench.detector.trace import EPOCH, Record, Trace
from whyhang.collectors.log_files import judge_age, log_age
from whyhang.collectors.tail import Chunk
from whyhang.engine.log_watch import LogWatch
from whyhang.schemas.config import Config

# How long after the hang an alarm is waited for.
PATIENCE = 6 * 3600.0
# Longer steps of time would look like a suspended host.
TICK_SECONDS = 5.0
# What a rule that learns from gaps waits before it knows any: NVRx's initial timeout.
INITIAL_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """When a detector spoke. ``suspicions`` are those of its own that cost the job nothing."""

    at: tuple[float, ...]
    suspicions: int = 0


Detector = Callable[[Trace], Alarms]


def ours(trace: Trace) -> Alarms:
    """The real watch over the real lines, one poll a second; a confirmed stall is its alarm."""
    log = LogWatch([], Config(), trace.attach_at)
    recall(log, trace)
    confirmed: list[float] = []
    suspicions = 0
    for now, data in polls(trace):
        if data:
            log.read(Chunk(source="train.log", data=data), now)
        if log.announced_restart():
            log.restart(now)
        for change in log.transitions(now):
            suspicions += change.state == "suspect" and now <= trace.hang_at
            if change.state == "confirmed":
                confirmed.append(now)
        if confirmed and confirmed[-1] > trace.hang_at:
            break
    return Alarms(at=tuple(confirmed), suspicions=suspicions)


def recall(log: LogWatch, trace: Trace) -> None:
    """Read what was logged before the watch, as ``whyhang watch`` does."""
    past = [record for record in trace.records if record.at <= trace.attach_at]
    if not past:
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "train.log"
        path.write_text("".join(record.text for record in past))
        os.utime(path, (EPOCH + past[-1].at,) * 2)
        age = log_age(path, EPOCH + trace.attach_at)
    log.prime(judge_age(age), age.gaps, trace.attach_at, stepped=True)


def polls(trace: Trace) -> Iterator[tuple[float, bytes]]:
    """The moments at which the watch looks, and what it reads there.

    It looks each second at which there is something to read, and every five seconds else.
    """
    records = [record for record in trace.records if record.at > trace.attach_at]
    now, read = trace.attach_at, 0
    while now < trace.hang_at + PATIENCE:
        coming = records[read].at if read < len(records) else math.inf
        now = min(now + TICK_SECONDS, max(now + 1.0, coming))
        fresh = list(takewhile(lambda record: record.at <= now, records[read:]))  # noqa: B023
        read += len(fresh)
        yield now, "".join(record.text for record in fresh).encode()


def fixed(seconds: float) -> Detector:
    """No line for so long."""
    return lambda trace: silences(trace, lambda longest: seconds)


def longest_gap(times: float) -> Detector:
    """No line for a multiple of the longest silence so far."""
    return lambda trace: silences(
        trace, lambda longest: times * longest if longest else INITIAL_SECONDS
    )


def silences(trace: Trace, limit: Callable[[float], float]) -> Alarms:
    """An alarm in each silence that outlasts its limit, a function of the longest one before."""
    seen = [record for record in trace.records if record.at > trace.attach_at]
    last, longest = trace.attach_at, 0.0
    alarms = []
    for record in [*seen, Record(at=math.inf, text="")]:
        if record.at - last > limit(longest):
            alarms.append(last + limit(longest))
        if last > trace.attach_at:
            longest = max(longest, record.at - last)
        last = record.at
    return Alarms(at=tuple(alarms))


DETECTORS: dict[str, Detector] = {
    "whyhang": ours,
    "fixed 600 s": fixed(600.0),
    "fixed 1800 s": fixed(1800.0),
    "5 x longest gap": longest_gap(5.0),
}
