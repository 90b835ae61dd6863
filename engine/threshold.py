"""How long a job may stay silent: the adaptive formula, pure arithmetic on its past gaps.

A gap is the time between two lines whose step rose. The numbers are chosen so that steady jobs are
suspected after two minutes, well before a collective's usual timeout of ten destroys the evidence,
and jobs with a lively rhythm later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from whyhang.schemas.config import DetectConfig
from whyhang.schemas.words import Phase

MIN_GAPS = 5
WINDOW = 64
HEALED_KEPT = 8

_TIMES_MEDIAN = 10.0
_TIMES_SPREAD = 30.0
_TIMES_LONGEST = 3.0
_TIMES_HEALED = 1.5
# From the median absolute deviation to a standard deviation.
_MAD_TO_SIGMA = 1.4826
_TIMES_PHASE = 3.0
_PHASE_ENTRIES = 2
_FIXED_END_TIMES = 10.0

_PHASE_LIMITS: dict[Phase, float] = {
    "load": 10_800.0,
    "eval": 3600.0,
    "checkpoint": 1800.0,
    "compile": 1800.0,
    "end": 1800.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """What a job's silence is measured against; all in seconds.

    ``gaps`` of the training phase, ``healed`` gaps that crossed the threshold and ended by
    themselves, ``reported`` what the lines themselves say that the time to the next line is.
    """

    gaps: Sequence[float] = ()
    healed: Sequence[float] = ()
    reported: Sequence[float] = ()


def train_threshold(config: DetectConfig, rhythm: Rhythm, *, stepped: bool) -> float:
    """Seconds of silence that are suspect in training; ``stepped``: a step was seen before."""
    if config.stall is not None:
        return config.stall
    if not stepped:
        return config.first_step
    expected = _TIMES_MEDIAN * max(rhythm.reported, default=0.0)
    healed = _TIMES_HEALED * max(rhythm.healed, default=0.0)
    if len(rhythm.gaps) < MIN_GAPS:
        if not rhythm.reported:
            return max(config.warmup, healed)
        ceiling = max(config.ceiling, expected)
        return _clamp(max(expected, healed), config.floor, ceiling)
    middle = median(rhythm.gaps)
    spread = _MAD_TO_SIGMA * median(abs(gap - middle) for gap in rhythm.gaps)
    wanted = max(
        expected,
        healed,
        _TIMES_MEDIAN * middle,
        middle + _TIMES_SPREAD * spread,
        _TIMES_LONGEST * max(rhythm.gaps),
    )
    # Jobs whose steps take many minutes need more than the configured ceiling.
    return _clamp(wanted, config.floor, max(config.ceiling, _TIMES_MEDIAN * middle))


def phase_limit(config: DetectConfig, phase: Phase) -> float:
    """The longest time, in seconds, that a phase may take without any sign of movement."""
    configured = config.phases.get(phase)
    return configured if configured is not None else _PHASE_LIMITS.get(phase, config.first_step)


def phase_threshold(
    config: DetectConfig, phase: Phase, train: float, history: Sequence[float]
) -> float:
    """Seconds of silence that are suspect in an open phase, given how long earlier ones took.

    A fixed ``stall`` holds in phases too, unless the phase has a limit of its own in the
    configuration. Only the end of training gets more time: nothing is left to be printed there.
    """
    learned = len(history) >= _PHASE_ENTRIES
    limit = phase_limit(config, phase)
    if config.stall is not None and phase not in config.phases:
        if phase != "end":
            return train
        if not learned:
            return max(train, min(limit, _FIXED_END_TIMES * train))
        return max(train, min(limit, _TIMES_PHASE * max(history) + train))
    if not learned:
        return max(train, limit) if config.stall is not None else limit
    return max(train, min(limit, _TIMES_PHASE * max(history) + config.floor))


def confirm_seconds(config: DetectConfig, threshold: float) -> float:
    """How long a suspicion must last to be confirmed."""
    if config.confirm is not None:
        return config.confirm
    if config.stall is not None:
        return min(60.0, max(10.0, 0.25 * config.stall))
    return max(30.0, 0.25 * threshold)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), max(low, high))
