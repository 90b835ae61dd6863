"""Recorded evidence that is damaged, foreign or hostile: no crash, and nobody accused for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.incidents import read_evidence
from whyhang.engine.judge import judge
from whyhang.rules.load import load_ruleset
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import MemoryFacts, NodeFacts

Write = Callable[[Mapping[str, Any]], Path]
ALL_WAIT = {"ranks": 16, "trainers": {"*": "backward"}}


@pytest.fixture
def incident(write_incident: Write) -> Path:
    """Sixteen ranks, all of which wait."""
    return write_incident(ALL_WAIT)


def last_sample(incident: Path) -> Path:
    """The file of the last sample."""
    return incident / "samples" / "1" / "node0.jsonl"


def named(incident: Path) -> str:
    """The suspects of the built-in pack."""
    return str(judge(load_ruleset(), read_evidence(incident)).suspects.ranks)


def test_a_torn_line_is_no_exit(incident: Path) -> None:
    """The rank whose line was cut is unread; it has not ended for all we know."""
    file = last_sample(incident)
    file.write_bytes(file.read_bytes()[:-40])
    read = read_evidence(incident)
    assert (str(read.nodes[0].unread), read.nodes[0].status) == ("15", "partial")
    assert named(incident) == ""


def test_a_line_that_is_absent_is_an_exit(incident: Path) -> None:
    """A whole file without a rank's line says that it has ended."""
    file = last_sample(incident)
    file.write_bytes(b"\n".join(file.read_bytes().splitlines()[:-1]))
    assert named(incident) == "15"


@pytest.mark.parametrize("unknown", ["kind", "rank"])
def test_a_line_of_nobody_is_no_exit(unknown: str, incident: Path) -> None:
    """A trainer whose kind or rank was not recorded is not gone."""
    for number in ("0", "1"):
        file = incident / "samples" / number / "node0.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[5][unknown] = None
        file.write_text("\n".join(map(json.dumps, lines)))
    assert str(read_evidence(incident).nodes[0].unread) == "5"
    assert named(incident) == ""


def test_a_lost_sample_is_no_exit_of_all(incident: Path) -> None:
    """A sample that the index lists but nobody kept is left out and told of."""
    last_sample(incident).unlink()
    (incident / "samples" / "1").rmdir()
    read = read_evidence(incident)
    assert [sample.index for sample in read.samples] == [0]
    assert "samples/1" in (read.sources["files"].reason or "")


def test_faults_of_the_progress_file_are_told(incident: Path) -> None:
    """A torn history is as much worth a word as a torn sample."""
    (incident / "progress.jsonl").write_text("{")
    assert "progress.jsonl:1" in (read_evidence(incident).sources["files"].reason or "")


def test_pipes_and_broken_archives_do_not_stop_the_reader(incident: Path) -> None:
    """What would never end is not opened, what is no archive is told of."""
    os.mkfifo(incident / "samples" / "1" / "pipe.jsonl")
    os.mkfifo(incident / "events.jsonl")
    (incident / "samples" / "1" / "x.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00garbage")
    read = read_evidence(incident)
    assert len(read.samples[1].processes) == 16
    assert "x.jsonl.gz" in (read.sources["files"].reason or "")


def test_binary_garbage_and_long_lines(incident: Path) -> None:
    """Megabytes of nonsense cost themselves."""
    file = last_sample(incident)
    file.write_bytes(file.read_bytes() + b"\x00\xff" * 500_000 + b"\n" + b"[" * 1_000_000)
    read = read_evidence(incident)
    assert len(read.samples[1].processes) == 16
    assert not read.nodes[0].unread


def facts_file(incident: Path, text: str) -> Path:
    """Node facts beside the last sample."""
    path = incident / "samples" / "1" / "node0.facts.json"
    path.write_text(text)
    return path


def test_node_facts_are_read_back(incident: Path) -> None:
    """Facts belong to one sample and to the node that the document names."""
    facts_file(incident, '{"node": "node0", "memory": {"total_bytes": 7}}')
    first, last = read_evidence(incident).samples
    told = last.facts["node0"]
    assert isinstance(told, NodeFacts) and told.memory == MemoryFacts(total_bytes=7)
    assert first.facts == {}


@pytest.mark.parametrize("text", ["{torn", "[]", '"gpu"', "9" * 5000])
def test_damaged_node_facts_are_told_and_cost_nothing_else(text: str, incident: Path) -> None:
    """They are unknown with a reason, and no rank is gone for it."""
    facts_file(incident, text)
    read = read_evidence(incident)
    told = read.samples[1].facts["node0"]
    assert isinstance(told, Missing) and "node0.facts.json: not node facts" in told.reason
    assert told.reason in (read.sources["files"].reason or "")
    assert read.nodes[0].status == "ok" and named(incident) == ""


def test_node_facts_that_are_no_file_are_left_alone(incident: Path) -> None:
    """A pipe of that name never ends."""
    os.mkfifo(incident / "samples" / "1" / "node0.facts.json")
    assert read_evidence(incident).samples[1].facts == {}
