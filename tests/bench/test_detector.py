"""The simulation of detectors over made-up jobs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.detector.__main__ import failures, main
from bench.detector.detectors import DETECTORS, Alarms, fixed, longest_gap, ours
from bench.detector.score import Score, judge
from bench.detector.shapes import SHAPES, play
from bench.detector.trace import Record, Trace

SHORT = 0.2
# One false alarm: nothing tells a first silence of five minutes from a hang.
UNFORESEEABLE = "unmarked checkpoints of 300 s"


def trace(*moments: float, hang_at: float) -> Trace:
    """A job that wrote a line at each of these moments."""
    records = tuple(Record(at=at, text=f"step {index}\n") for index, at in enumerate(moments))
    return Trace(shape="made up", records=records, hang_at=hang_at)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_job_is_caught_without_a_false_alarm(shape: str) -> None:
    """The watch understands what each job prints, finds its hang, and accuses no healthy one."""
    job = play(shape, 0, SHORT)
    outcome = judge(job, ours(job))
    assert math.isfinite(outcome.latency)
    assert outcome.false_alarms <= (shape == UNFORESEEABLE)


def test_a_seed_gives_one_job() -> None:
    """The same seed gives the same job and another one another."""
    shape = "RLHF, lognormal 120 s"
    assert play(shape, 3, SHORT) == play(shape, 3, SHORT)
    assert play(shape, 3, SHORT) != play(shape, 4, SHORT)


def test_a_fixed_rule_alarms_in_each_long_silence() -> None:
    """Once in each silence beyond the limit, the last one being the hang."""
    job = trace(10.0, 20.0, 100.0, 110.0, hang_at=115.0)
    assert fixed(50.0)(job).at == (70.0, 160.0)
    outcome = judge(job, fixed(50.0)(job))
    assert (outcome.false_alarms, outcome.latency) == (1, 45.0)


def test_the_longest_gap_so_far_is_the_measure() -> None:
    """Before any gap is known an hour, then a multiple of the longest."""
    assert longest_gap(5.0)(trace(10.0, hang_at=15.0)).at == (3610.0,)
    assert longest_gap(5.0)(trace(10.0, 20.0, 90.0, hang_at=95.0)).at == (70.0, 440.0)


def test_a_hang_that_nobody_noticed() -> None:
    """Without an alarm after the hang the latency is infinite."""
    assert judge(trace(1.0, hang_at=2.0), Alarms(at=())).latency == math.inf


def test_limits() -> None:
    """Too many false alarms and too long a latency are named; a patient rule may have fewer."""
    good = Score(jobs=1, false_alarms=1, jobs_hit=1, suspicions=0, latency=400.0)
    bad = Score(jobs=1, false_alarms=2, jobs_hit=1, suspicions=0, latency=500.0)
    none = Score(jobs=1, false_alarms=0, jobs_hit=0, suspicions=0, latency=1800.0)
    assert list(failures({"whyhang": good, "fixed 600 s": bad, "fixed 1800 s": none})) == []
    assert len(list(failures({"whyhang": bad, "fixed 600 s": good}))) == 2


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each shape and one for all of them."""
    main(["--seeds", "1", "--scale", "0.05"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[2:]] == [
        f"| {name}" for name in [*SHAPES, "**all**"]
    ]


def test_the_page_shows_the_table() -> None:
    """docs/detection.md has the row of each shape, and columns for the detectors of today."""
    page = (Path(__file__).parents[2] / "docs" / "detection.md").read_text()
    table = page.partition("<!-- begin detection -->")[2].partition("<!-- end detection -->")[0]
    head, _, *rows = (line.strip("| ").split(" | ") for line in table.split("\n") if line)
    assert head == ["job", *DETECTORS]
    assert [row[0] for row in rows] == [*SHAPES, "**all**"]
