"""`replay`: outcomes, timelines, expectations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}}


def test_text_shows_the_timeline(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Each rule that ever applies stands with its state after each sample."""
    assert main(["replay", str(write_incident(HUNG).parent)]) == 0
    text = capsys.readouterr().out
    assert "local_hang (user_code, high), suspects 2, by pytorch/local-hang" in text
    assert ["pytorch/local-hang", "pending", "FIRED"] in [
        line.split() for line in text.splitlines()
    ]
    assert "alarm: suspected after about" in text


def test_expectations_decide_the_exit_status(
    write_incident: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 where an incident is not judged as expected, 0 where all are."""
    incident = write_incident(HUNG)
    expect = tmp_path / "expect.yaml"
    expect.write_text(f'{incident.name}: {{verdict: local_hang, suspects: "2"}}\n')
    assert main(["replay", str(incident), "--expect", str(expect)]) == 0
    assert "1 of 1 incidents as expected" in capsys.readouterr().out
    expect.write_text(f"{incident.name}: {{verdict: slow}}\nother: {{verdict: slow}}\n")
    assert main(["replay", str(incident), "--expect", str(expect)]) == 1
    text = capsys.readouterr().out
    assert "NOT AS EXPECTED" in text
    assert "0 of 2 incidents as expected" in text


def test_its_own_json_is_an_expectation(
    write_incident: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was printed once can be demanded for ever."""
    incident = write_incident(HUNG)
    main(["replay", str(incident), "--format", "json"])
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert document["format"] == "whyhang.replay/1"
    assert document["incidents"][0]["moments"][0]["verdict"] == "inconclusive"
    expect = tmp_path / "expect.json"
    expect.write_text(printed)
    assert main(["replay", str(incident), "--expect", str(expect)]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {verdit: slow}", "unknown part `verdit`"),
        ("a: {suspects: x}", "not a rank"),
        ("[1]", "expected incidents"),
        ("a: slow", "expects nothing"),
        ("a: [", "expect.yaml"),
    ],
)
def test_bad_expectations(
    text: str,
    message: str,
    write_incident: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file that expects nothing, or nonsense, is an error and never passes."""
    expect = tmp_path / "expect.yaml"
    expect.write_text(text)
    assert main(["replay", str(write_incident(HUNG)), "--expect", str(expect)]) == 2
    assert message in capsys.readouterr().err


def test_its_own_json_is_an_expectation_where_no_rule_decides(
    write_incident: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An incident that no rule decides can be demanded too: `null` is no rule."""
    rules = tmp_path / "hang.yaml"
    rules.write_text("version: 1\ninclude: []\n")
    command = ["replay", str(write_incident(HUNG)), "-c", str(rules)]
    main([*command, "--format", "json"])
    expect = tmp_path / "expect.json"
    expect.write_text(capsys.readouterr().out)
    assert '"rule": null' in expect.read_text()
    assert main([*command, "--expect", str(expect)]) == 0


def test_a_store_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that leads nowhere is told apart from a store without incidents."""
    assert main(["replay", str(tmp_path / "nowhere")]) == 2
    assert "no such directory" in capsys.readouterr().err
