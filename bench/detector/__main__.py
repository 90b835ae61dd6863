"""``python -m bench.detector``: false alarms and latency on synthetic jobs; status 1 past a limit.

Every job prints the lines of a real framework. They go through the presets into the real watch;
only the tailing of a file is left out. The rules it is compared with see the same lines. The jobs
are made up, so trust the order of the detectors, not the digits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from bench.detector.detectors import DETECTORS
from bench.detector.score import Score, judge, overall, total
from bench.detector.shapes import SHAPES, play

OURS = "whyhang"
# Rules that may have fewer false alarms, at the price of a fixed, long latency.
PATIENT = ("fixed 1800 s",)
LATENCY_LIMIT = 450.0


def measure(seeds: Sequence[int], scale: float = 1.0) -> dict[str, dict[str, Score]]:
    """The score of each detector on the jobs of each shape."""
    table: dict[str, dict[str, Score]] = {}
    for shape in SHAPES:
        traces = [play(shape, seed, scale) for seed in seeds]
        table[shape] = {
            name: total([judge(trace, detect(trace)) for trace in traces])
            for name, detect in DETECTORS.items()
        }
    return table


def failures(totals: Mapping[str, Score]) -> Iterator[str]:
    """Which limits do not hold."""
    mine = totals[OURS]
    for name, score in totals.items():
        if name not in (OURS, *PATIENT) and mine.false_alarms >= score.false_alarms:
            yield f"{mine.false_alarms} false alarms, {name} has {score.false_alarms}"
    if mine.latency > LATENCY_LIMIT:
        yield f"median latency {mine.latency:.0f} s, limit {LATENCY_LIMIT:.0f} s"


def markdown(table: Mapping[str, Mapping[str, Score]], totals: Mapping[str, Score]) -> str:
    """A row for each shape: false alarms (jobs hit), then the median latency in seconds."""
    rows = [["job", *DETECTORS], ["---"] * (1 + len(DETECTORS))]
    for shape, scores in [*table.items(), ("**all**", totals)]:
        rows.append([shape, *(cell(scores[name]) for name in DETECTORS)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cell(score: Score) -> str:
    """``false alarms (jobs hit), latency``."""
    return f"{score.false_alarms} ({score.jobs_hit}), {score.latency:.0f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print the table, and answer 1 where a limit is passed."""
    parser = argparse.ArgumentParser(prog="python -m bench.detector", description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="jobs of each shape")
    parser.add_argument("--scale", type=float, default=1.0, help="length of the jobs")
    options = parser.parse_args(arguments)
    table = measure(range(options.seeds), options.scale)
    totals = {name: overall([row[name] for row in table.values()]) for name in DETECTORS}
    print(markdown(table, totals))
    print(
        f"\n{totals[OURS].jobs} jobs; false alarms (jobs hit), median latency. Suspicions of"
        f" whyhang, which cost a job nothing: {totals[OURS].suspicions}."
    )
    failed = list(failures(totals))
    for failure in failed:
        print(f"FAILED: {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
