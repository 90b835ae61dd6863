"""What alarms are worth: false ones before the hang, and how long after it the true one came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.detector.detectors import Alarms
from bench.detector.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One detector on one job; ``latency`` is in seconds, infinite where no alarm came."""

    false_alarms: int
    suspicions: int
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One detector on several jobs."""

    jobs: int
    false_alarms: int
    jobs_hit: int
    suspicions: int
    latency: float


def judge(trace: Trace, alarms: Alarms) -> Outcome:
    """Split the alarms of a job at its hang."""
    true = [at - trace.hang_at for at in alarms.at if at > trace.hang_at]
    return Outcome(
        false_alarms=len(alarms.at) - len(true),
        suspicions=alarms.suspicions,
        latency=true[0] if true else math.inf,
    )


def total(outcomes: Sequence[Outcome]) -> Score:
    """Sums, and the median latency."""
    return Score(
        jobs=len(outcomes),
        false_alarms=sum(outcome.false_alarms for outcome in outcomes),
        jobs_hit=sum(outcome.false_alarms > 0 for outcome in outcomes),
        suspicions=sum(outcome.suspicions for outcome in outcomes),
        latency=median(outcome.latency for outcome in outcomes),
    )


def overall(scores: Sequence[Score]) -> Score:
    """Sums over shapes, and the median of their latencies: no shape counts more for its jobs."""
    return Score(
        jobs=sum(score.jobs for score in scores),
        false_alarms=sum(score.false_alarms for score in scores),
        jobs_hit=sum(score.jobs_hit for score in scores),
        suspicions=sum(score.suspicions for score in scores),
        latency=median(score.latency for score in scores),
    )
