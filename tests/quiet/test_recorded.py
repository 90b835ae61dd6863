"""Looks at real healthy jobs, kept as incidents, and described quiet worlds: nobody hangs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.job import ROOT
from tests.quiet.__main__ import rows
from tests.quiet.keep import keep, read_situations
from tests.quiet.looks import HANGS, Look, look
from tests.quiet.names import SITUATIONS, STARTING, VISIBLE
from whyhang.engine.incidents import read_incident
from whyhang.engine.rule_tests import load_suites

DATA = Path(__file__).parents[1] / "data"
RECORDED = sorted(path for path in (DATA / "quiet").iterdir() if path.is_dir())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_no_look_at_a_healthy_job_sees_a_hang(path: Path) -> None:
    """Neither with the job's log nor without, nor with a silent one where its work shows."""
    incident = read_incident(path)
    assert len(incident.samples) == 2
    assert {process.rank for process in incident.samples[1].processes} >= {0, 1, 2, 3}
    given = look(incident, read_situations(path))
    assert {"log", "no log"} <= given.keys()
    assert not [view for view, verdict in given.items() if verdict.verdict in HANGS]


def test_the_looks_came_upon_every_situation() -> None:
    """Each situation of the job was seen, and those whose work shows alone or among themselves."""
    seen = [read_situations(path) for path in RECORDED]
    assert {name for names in seen for name in names} == {STARTING, *SITUATIONS}
    assert any(set(names) <= set(VISIBLE) for names in seen)


def test_there_are_many_quiet_situations() -> None:
    """At least 20 looks and 20 worlds in which nobody may be said to hang."""
    assert len(RECORDED) >= 20
    worlds = load_suites([DATA / "cases" / "quiet.yaml"])[0].file.tests
    assert len(worlds) >= 20
    answers = {entry.verdict for world in worlds for entry in world.expect}
    assert answers <= {"no_hang", "slow", "inconclusive", None}


def test_a_hang_in_a_look_is_shown() -> None:
    """A view under which a hang was seen is told of, and bold in the table."""
    incident = read_incident(RECORDED[0])
    given = look(incident, ["start"])
    wrong = replace(given["no log"], verdict="global_hang")
    found = Look(
        number=3,
        situations=("start", "evaluation"),
        seconds=12.0,
        path=RECORDED[0],
        verdicts={"log": given["log"], "no log": wrong},
    )
    assert found.wrong == ("no log",)
    right, bold = rows(found)
    assert "**" not in right
    assert bold.startswith("| 3 | start -> evaluation | no log | **global_hang** ")


def test_a_kept_look_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    """Places are replaced, the samples are packed, and the verdicts stay the same."""
    source = tmp_path / "incidents" / "1"
    (source / "samples/0").mkdir(parents=True)
    (source / "incident.json").write_text(
        json.dumps(
            {
                "format": "whyhang.incident/1",
                "print_id": None,
                "samples": [{"index": 0, "at": None, "monotonic_seconds": 0.0}],
            }
        )
    )
    frame = {"name": "train", "filename": f"{ROOT}/train.py", "line": 3}
    below = {"name": "f", "filename": f"{tmp_path}/x/lib/site-packages/torch/f.py", "line": 4}
    process = {"node": "node0", "rank": 0, "pid": 7, "kind": "trainer", "cmdline": [str(tmp_path)]}
    thread = {"thread_name": "MainThread", "frames": [below, frame]}
    line = json.dumps({**process, "threads": [thread]})
    (source / "samples/0/node0.jsonl").write_text(line + "\n")
    verdicts = look(read_incident(source), ["start"])
    found = Look(number=1, situations=("start",), seconds=1.0, path=source, verdicts=verdicts)
    place = keep(found, tmp_path, tmp_path / "kept")
    assert place.name == "01_start"
    assert read_situations(place) == ("start",)
    kept = read_incident(place)
    assert look(kept, ["start"]) == verdicts
    (trainer,) = kept.samples[0].processes
    assert trainer.cmdline == ("/job",)
    assert isinstance(trainer.threads, tuple)
    paths = {frame.filename for frame in trainer.threads[0].stack.python}
    assert paths == {"/repo/train.py", "/venv/lib/python3/site-packages/torch/f.py"}
