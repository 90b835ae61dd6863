"""`diff`: exit status and formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}, "log": {"step": 3}}
OLD = "version: 1\n"
NEW = "version: 1\nlists: {communication: {append: [callbacks.on_step]}}\ndetect: {stall: 3m}\n"


@pytest.fixture
def arguments(write_incident: Write, tmp_path: Path) -> list[str]:
    """Two rule files and a store with one incident."""
    for name, text in (("old.yaml", OLD), ("new.yaml", NEW)):
        (tmp_path / name).write_text(text)
    store = write_incident(HUNG).parent
    return ["diff", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"), "--on", str(store)]


def test_text(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What changes is printed, and the exit status says that something does."""
    assert main(arguments) == 1
    text = capsys.readouterr().out
    assert "1 of 1 recorded incident changes" in text
    assert "before  local_hang (user_code, high), suspects 2, by pytorch/local-hang" in text
    assert "alarm" in text
    assert "list communication: + callbacks.on_step" in text
    assert "detect stall: auto -> 180 s" in text


def test_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The document holds both sides of each incident."""
    assert main([*arguments, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (incident,) = document["incidents"]
    assert incident["before"]["suspects"] == "2"
    assert incident["after"]["alarm"]["suspected"] == 180
    assert {"alarm", "verdict"} <= set(incident["parts"])
    assert [entry["kind"] for entry in document["entries"]] == ["detect", "list"]


def test_markdown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The comment has one row for the incident, in bold what is new."""
    main([*arguments, "--format", "markdown"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "### Hang rules: 1 of 1 recorded incident changes"
    (row,) = [line for line in lines if line.startswith("| `1780")]
    assert "| Local hang (user_code, high) → **Global hang (collective_wait, medium)** |" in row
    assert "| 2 |" in row
    assert row.endswith("| `pytorch/local-hang` → `pytorch/unmatched-collectives` |")
    assert "- list `communication`: + `callbacks.on_step`" in lines
    assert "- detect `stall`: `auto` → `180 s`" in lines


def test_nothing_changes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The same file twice: 0."""
    assert main([arguments[0], arguments[1], *arguments[1:2], *arguments[3:]]) == 0
    assert "none of 1 recorded incident changes" in capsys.readouterr().out


def test_usage(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules with errors, or a store without incidents: 2."""
    (tmp_path / "new.yaml").write_text("version: 1\nrules: 3\n")
    assert main(arguments) == 2
    assert main([*arguments[:-1], str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err
