"""``whyhang fmt``, ``schema``, ``fields`` and ``--set``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main
from whyhang.rules.fields import FIELDS

ROOT = Path(__file__).parents[2]
MESSY = "rules:\n- {verdict: slow, id: a, when: log.slow and log.stalled_for > 5m}\nversion: 1\n"
Capture = pytest.CaptureFixture[str]


def test_fmt_writes_the_file(tmp_path: Path, capsys: Capture) -> None:
    """The first run formats, the second has nothing to do, and nothing is printed to stdout."""
    path = tmp_path / "hang.yaml"
    path.write_text(MESSY)
    assert main(["fmt", str(path)]) == 0
    assert path.read_text().startswith("version: 1\nrules:\n")
    assert main(["fmt", "--check", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_fmt_keeps_the_line_ends(tmp_path: Path) -> None:
    """A file with Windows line ends keeps them."""
    path = tmp_path / "hang.yaml"
    path.write_bytes(MESSY.replace("\n", "\r\n").encode())
    assert main(["fmt", str(path)]) == 0
    data = path.read_bytes()
    assert data.startswith(b"version: 1\r\n") and data.count(b"\n") == data.count(b"\r\n")


def test_fmt_can_only_look(tmp_path: Path, capsys: Capture) -> None:
    """--check and --diff write nothing and are 1 where a file would change."""
    path = tmp_path / "hang.yaml"
    path.write_text(MESSY)
    assert main(["fmt", "--check", str(path)]) == 1
    assert "would change" in capsys.readouterr().err
    assert main(["fmt", "--diff", str(path)]) == 1
    assert "+version: 1\n" in capsys.readouterr().out
    assert path.read_text() == MESSY


def test_fmt_refuses_errors_and_goes_on(tmp_path: Path, capsys: Capture) -> None:
    """A file with errors is told with its findings; the others are formatted all the same."""
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    bad.write_text("version: 1\nruls: []\n")
    good.write_text(MESSY)
    assert main(["fmt", str(bad), str(good)]) == 2
    assert "H011" in capsys.readouterr().err
    assert bad.read_text() == "version: 1\nruls: []\n"
    assert good.read_text() != MESSY


def test_schema_prints_the_file(capsys: Capture) -> None:
    """What is printed is the schema that ships."""
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "schemas" / "hang.v1.json").read_text()
    assert main(["schema", "--verdict"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "whyhang.verdict/1"


def test_fields_prints_the_table(capsys: Capture) -> None:
    """Every field has a line in each format."""
    assert main(["fields"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIELDS)
    assert main(["fields", "--format", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(FIELDS)
    assert main(["fields", "--format", "markdown"]) == 0
    assert "| `log.stalled` | bool | anywhere |" in capsys.readouterr().out


def test_set_shows_in_the_report(
    write_incident: Callable[[Mapping[str, Any]], Path], capsys: Capture
) -> None:
    """Rules with another value are told apart in every output of a diagnosis."""
    path = str(write_incident({"trainers": {"*": "backward", 1: "user_sleep"}}))
    assert main(["diagnose", path, "--set", "still=12s", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["overrides"] == ["still=12s"]
    assert main(["diagnose", path, "--set", "still=12s", "--format", "markdown"]) == 0
    assert "with `still=12s`" in capsys.readouterr().out.splitlines()[2]
    assert main(["diagnose", path, "--set", "still=12s"]) == 0
    assert "with still=12s" in capsys.readouterr().out
    assert main(["diagnose", path, "--set", "still=soon"]) == 2
    assert main(["check", "--set", "nothing=1", str(ROOT / "hang.yaml")]) == 2


def test_check_reads_files_of_tests(tmp_path: Path, capsys: Capture) -> None:
    """A file of tests is checked as such, by its name, and never as rules."""
    (tmp_path / "hang.yaml").write_text(MESSY)
    tests = tmp_path / "hang_test.yaml"
    tests.write_text("rules: hang.yaml\ntests:\n- {name: a, world: 2, expect: [{none: true}]}\n")
    assert main(["check", str(tests)]) == 0
    tests.write_text(tests.read_text().replace("world", "wrld"))
    capsys.readouterr()
    assert main(["check", str(tests)]) == 1
    assert "unknown key `wrld`; did you mean `world`?" in capsys.readouterr().out


def test_fmt_leaves_tests_alone(tmp_path: Path, capsys: Capture) -> None:
    """Only rules have a usual form; a file of tests is passed over."""
    tests = tmp_path / "hang_test.yaml"
    tests.write_text("rules:   hang.yaml\n")
    assert main(["fmt", str(tests)]) == 0
    assert tests.read_text() == "rules:   hang.yaml\n"
    assert "only rules are formatted" in capsys.readouterr().err


def test_schema_of_tests(capsys: Capture) -> None:
    """`--test` prints the schema that the tests' own files are checked by."""
    assert main(["schema", "--test"]) == 0
    assert "expect" in json.loads(capsys.readouterr().out)["definitions"]["test"]["properties"]
