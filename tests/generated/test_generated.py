"""The generator, and floors of what the built-in rules say of a few incidents of each kind."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.generated.__main__ import main
from tests.generated.job import FRAMEWORKS, make_job
from tests.generated.kinds import KINDS
from tests.generated.notation import bare_name, expand, read_sections
from tests.generated.score import judge_all, share
from tests.generated.write import write_incident
from whyhang.engine.incidents import read_evidence


def test_the_built_in_rules_reach_the_floors() -> None:
    """Most planted faults are found, and nobody whom we failed to read is ever named."""
    results = list(judge_all(list(KINDS), count=1, seed=7))
    missed = "\n".join(str(one) for one in results if not one.right)
    assert share(results) >= 0.85, missed
    assert not [str(one) for one in results if one.named & one.truth.innocent]


def test_the_same_seed_gives_the_same_incident(tmp_path: Path) -> None:
    """Every file of an incident is the same, byte for byte, when it is written again."""
    job, _ = KINDS["worker_single"](random.Random("again"))
    first, second = (write_incident(job, tmp_path / name) for name in ("one", "two"))
    again, _ = KINDS["worker_single"](random.Random("again"))
    third = write_incident(again, tmp_path / "three")
    for path in first.rglob("*.json*"):
        inner = path.relative_to(first)
        assert path.read_bytes() == (second / inner).read_bytes() == (third / inner).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_incidents_are_read_without_complaint(kind: str, tmp_path: Path) -> None:
    """Each rank of an asked node that has a process is read back with its stack and state."""
    job, truth = KINDS[kind](random.Random(kind))
    incident = read_evidence(write_incident(job, tmp_path / kind))
    assert "files" not in incident.sources or incident.sources["files"].ok
    assert incident.world_size == job.world
    assert len(incident.samples) == 2
    asked = {rank for one in job.machines if one.status in ("ok", "partial") for rank in one.ranks}
    there = {rank for rank in asked if not job.acts[rank].gone}
    for sample in incident.samples:
        trainers = {one.rank: one for one in sample.processes if one.kind == "trainer"}
        assert set(trainers) == there
        assert all(one.state == job.acts[one.rank or 0].state for one in trainers.values())
    assert truth.answers


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_section_can_be_expanded(framework: str) -> None:
    """No section is empty by mistake or refers to one that is not there."""
    empty = {name for name, lines in read_sections(framework).items() if not lines}
    assert empty <= {"data", "hook"}
    for name in read_sections(framework):
        for backend in ("gloo", "nccl"):
            assert expand(framework, name, backend) or name in empty


@pytest.mark.parametrize(
    ("qualified", "bare"),
    [
        ("Queue.get", "get"),
        ("main", "main"),
        ("<module>", "<module>"),
        ("outer.<locals>.wrapper", "wrapper"),
        ("outer.<locals>.Inner.run", "run"),
        ("Dataset.items.<locals>.<listcomp>", "<listcomp>"),
    ],
)
def test_bare_names(qualified: str, bare: str) -> None:
    """Older Pythons give the name of the code alone."""
    assert bare_name(qualified) == bare


def test_names_follow_python_and_tool(tmp_path: Path) -> None:
    """Qualified names stand where Python and py-spy give them, bare names elsewhere."""
    for python, wanted in (("3.10", "backward"), ("3.12", "Tensor.backward")):
        job = make_job(random.Random(3), frameworks=("ddp",), huge=0)
        job.python, job.tool = python, "py-spy 0.4.3"
        job.everyone(job.wait("wait.backward"))
        place = write_incident(job, tmp_path / python)
        line = next((place / "samples/0").glob("*.jsonl")).read_text().splitlines()[0]
        main_thread = json.loads(line)["threads"][-1]
        assert wanted in {frame["name"] for frame in main_thread["frames"]}


def test_a_floor_that_does_not_hold_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status is 1 and stderr names the kind; the incidents are kept where asked."""
    options = ["--kind", "stopped_single", "--count", "1", "--keep", str(tmp_path)]
    assert main([*options, "--min", "1.01"]) == 1
    assert "stopped_single: 100.0% is below 101.0%" in capsys.readouterr().err
    assert (tmp_path / "stopped_single-000" / "incident.json").is_file()
