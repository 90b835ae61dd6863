"""Which rules a command takes: those named, those of the working directory, the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}}
RULES = """\
version: 1
include: []
rules:
  - id: mine
    summary: any stall
    when: log.stalled
    verdict: global_hang
"""


@pytest.fixture
def incident(write_incident: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local hang at rank 2; the current directory is an empty one beside it."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return write_incident(HUNG)


@pytest.mark.parametrize(
    "command",
    [["diagnose"], ["explain"], ["replay"], ["render", "--as", "markdown"]],
    ids=lambda command: command[0],
)
def test_the_working_directory_decides(
    command: list[str], incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a hang.yaml the built-in rules judge, with one its own rules do."""
    assert main([*command, str(incident)]) == 0
    assert "mine" not in capsys.readouterr().out
    Path("hang.yaml").write_text(RULES)
    assert main([*command, str(incident)]) == 0
    assert "mine" in capsys.readouterr().out


def test_the_file_named_goes_first(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-c` outranks the file of the working directory."""
    Path("hang.yaml").write_text(RULES)
    Path("other.yaml").write_text("version: 1\n")
    assert main(["diagnose", str(incident), "-c", "other.yaml"]) == 0
    assert "pytorch/local-hang" in capsys.readouterr().out


def test_a_broken_file_ends_what_can_wait(
    incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`explain` by other rules than those of the directory would mislead: it is refused."""
    Path("hang.yaml").write_text("version: 1\nfoo: 3\n")
    assert main(["explain", str(incident)]) == 2
    assert "unknown key `foo`" in capsys.readouterr().err


def test_a_broken_file_does_not_keep_a_report_from_being_made(
    incident: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`render` warns and goes on with the built-in rules, as `run` and `collect` do."""
    Path("hang.yaml").write_text("version: 1\nfoo: 3\n")
    assert main(["render", "--as", "markdown", str(incident)]) == 0
    printed = capsys.readouterr()
    assert "pytorch/local-hang" in printed.out
    assert "hang.yaml is not used" in printed.err


def test_prune_keeps_what_the_directory_says(incident: Path) -> None:
    """The limits of `store:` in ./hang.yaml are those of `prune`: nothing else may delete."""
    old = incident.with_name("1680890495107774003")
    old.mkdir()
    Path("hang.yaml").write_text("version: 1\nstore: {keep: 36500d}\n")
    assert main(["prune", str(incident.parent)]) == 0
    assert old.is_dir()


def test_list_looks_where_the_rules_say(incident: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a store named it is that of `store:` in ./hang.yaml."""
    Path("hang.yaml").write_text(f"version: 1\nstore: {{path: {incident.parent}}}\n")
    assert main(["list"]) == 0
    assert incident.name in capsys.readouterr().out
