"""`diagnose` and `render`: verdict and reports from recorded evidence."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {
    "trainers": {"*": "backward", 2: "data"},
    "workers": {"*": "worker_idle", 2: "worker_blocked"},
}
PASTED = b"""\
Process 14867: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 14867 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3252)
    main (train.py:60)
"""


@pytest.fixture
def incident(write_incident: Write) -> Path:
    """A local hang at rank 2 on disk."""
    return write_incident(HUNG)


def test_json_is_the_verdict(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--format json` prints the verdict document and nothing else."""
    assert main(["diagnose", str(incident), "--format", "json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["format"] == "whyhang.verdict/1"
    assert verdict["verdict"] == "local_hang"
    assert verdict["suspects"]["rank_list"] == [2]
    assert verdict["suspects"]["positions"][0]["kind"] == "dataloader"
    assert verdict["rules_digest"].startswith("sha256:")


def test_exit_code_only_on_request(incident: Path) -> None:
    """A hang is a finding only where the caller asks for an exit code."""
    assert main(["diagnose", str(incident)]) == 0
    assert main(["diagnose", str(incident), "--exit-code"]) == 1


def test_reports_are_written_beside_the_evidence(incident: Path) -> None:
    """`--write` leaves the reports of the incident, each of them filled."""
    main(["diagnose", str(incident), "--write"])
    names = {path.name for path in incident.iterdir() if path.is_file()}
    assert {
        "diagnosis.md",
        "verdict.json",
        "report.txt",
        "stacks.folded",
        "flame.svg",
        "flame-trainer.svg",
        "flame-dataloader.svg",
    } <= names
    assert "rank 2" in (incident / "diagnosis.md").read_text()


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("folded", "read_shard"),
        ("svg", "<svg"),
        ("report", "Stack Trace Analysis Report"),
        ("markdown", "rank 2"),
        ("json", '"local_hang"'),
    ],
)
def test_each_output_again(
    form: str, text: str, incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`render` makes one output from the evidence."""
    assert main(["render", str(incident), "--as", form]) == 0
    assert text in capsys.readouterr().out


def test_filters(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kind, ranks and sample narrow what is drawn."""
    main(["render", str(incident), "--as", "folded", "--kind", "dataloader"])
    assert "backward" not in capsys.readouterr().out
    main(["render", str(incident), "--as", "folded", "--ranks", "0-1", "--sample", "0"])
    out = capsys.readouterr().out
    assert "read_shard" not in out
    assert "sample 0" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["diagnose", "/nowhere"],
        ["render", "/nowhere", "--as", "svg"],
        ["diagnose", "INCIDENT", "-c", "/nowhere.yaml"],
        ["render", "INCIDENT", "--as", "svg", "--ranks", "x"],
        ["render", "INCIDENT", "--as", "svg", "--sample", "9"],
    ],
)
def test_mistakes_are_usage_errors(
    arguments: list[str], incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path or option ends with status 2 and one clear message."""
    filled = [str(incident) if word == "INCIDENT" else word for word in arguments]
    assert main(filled) == 2
    assert capsys.readouterr().err.startswith("whyhang: ")


def test_links_among_evidence_are_not_followed(incident: Path, tmp_path: Path) -> None:
    """Evidence from elsewhere that holds a link in the place of a report overwrites nothing."""
    mine = tmp_path / "mine"
    mine.write_text("keep")
    (incident / "flame.svg").symlink_to(mine)
    assert main(["diagnose", str(incident), "--write"]) == 0
    assert mine.read_text() == "keep"
    assert (incident / "flame.svg").read_text().startswith("<svg")
    assert not list(incident.glob("*.part"))


def test_reports_that_cannot_be_written(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A place that cannot be written is a usage error, not one of ours."""
    (incident / "report.txt").mkdir()
    assert main(["diagnose", str(incident), "--write"]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert not list(incident.glob("*.part"))
    output = str(incident / "nowhere" / "x.svg")
    assert main(["render", str(incident), "--as", "svg", "-o", output]) == 2


def test_a_terminal_without_unicode(
    incident: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where stdout knows no check marks the verdict is printed all the same."""
    out = tmp_path / "out.txt"
    with out.open("w", encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["diagnose", str(incident)]) == 0
    assert "Local hang: rank 2" in out.read_text(encoding="ascii")


def test_the_command_can_be_pasted(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path with blanks is quoted in the command that makes the page again."""
    place = incident.rename(incident.with_name("my incident"))
    main(["diagnose", str(place), "--format", "markdown"])
    assert f"whyhang diagnose '{place}'" in capsys.readouterr().out


@pytest.mark.parametrize(("pasted", "status"), [(PASTED, 0), (b"hello\n", 2)])
def test_a_paste_on_stdin(
    pasted: bytes,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`-` reads a pasted stack from stdin; one without a stack is an error that says so."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pasted)))
    assert main(["diagnose", "-"]) == status
    printed = capsys.readouterr()
    assert ("all_reduce" in printed.out) == (status == 0)
    assert ("stdin holds no stack" in printed.err) == (status == 2)
    assert ("names its rank" in printed.err) == (status == 2)
