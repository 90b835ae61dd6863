"""``whyhang check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whyhang.engine.cli.check import report, summary
from whyhang.engine.cli.main import main
from whyhang.rules.findings import Finding
from whyhang.schemas.evidence import Span

HERE = Path(__file__).parent
WARNING = "version: 1\ninclude: []\ndefs:\n  a: >\n    log.slow\n    or log.stalled\n"


def test_a_good_file_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is wrong: one line says so."""
    path = str(HERE.parents[1] / "hang.yaml")
    assert main(["check", path]) == 0
    assert capsys.readouterr().out == f"{path}: nothing to complain about\n"


def test_findings_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    """All findings are printed, then how many there are; a pipe gets no color."""
    assert main(["check", str(HERE / "faults.yaml")]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert sum(": error[H" in line for line in lines) >= 10
    assert lines[-1].endswith(" errors")
    assert "\033" not in out


def test_a_file_that_cannot_be_read_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without files the one named hang.yaml is checked, and must be there."""
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2
    assert "cannot read hang.yaml" in capsys.readouterr().err


def test_warnings_are_0_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning alone does not fail a build."""
    path = tmp_path / "hang.yaml"
    path.write_text(WARNING)
    assert main(["check", str(path)]) == 0
    assert "2 warnings" in capsys.readouterr().out
    assert main(["check", "--fail-on", "warning", str(path)]) == 1


def test_json_and_github_carry_the_position(capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs get file, line and column of each finding, and nothing else."""
    path = str(HERE / "faults.yaml")
    main(["check", "--format", "json", path])
    found = json.loads(capsys.readouterr().out)
    assert {"file", "line", "column", "code", "message"} <= found[0].keys()
    main(["check", "--format", "github", path])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    assert all(line.startswith("::error file=") and ",col=" in line for line in lines)


def test_github_lines_are_escaped() -> None:
    """What would end a part of a workflow command is written as hex."""
    finding = Finding(
        code="H1", message="50%\nx", span=Span(file="a:b,c", line=2, column=3), help="y"
    )
    (line,) = report([finding], "github", colored=False)
    assert line == ("::error file=a%3Ab%2Cc,line=2,col=3,endColumn=4,title=H1::50%25%0Ax%0Ay")


def test_color_changes_no_text() -> None:
    """Without its escapes a colored report is the plain one."""
    finding = Finding(
        code="H1", message="m", span=Span(file="f", line=2, column=3), source="abc", help="y"
    )
    plain = list(report([finding], "text", colored=False))
    colored = "\n".join(report([finding], "text", colored=True))
    assert "\033" in colored
    for escape in ("\033[0m", "\033[1m", "\033[1;31m", "\033[1;32m"):
        colored = colored.replace(escape, "")
    assert colored.splitlines() == plain


def test_the_summary_counts() -> None:
    """Errors and warnings are counted apart."""
    findings = [
        Finding(code="H1", message="m"),
        Finding(code="H2", message="m"),
        Finding(code="H3", message="m", severity="warning"),
    ]
    assert summary(findings, [Path("a"), Path("b")]) == "2 files: 2 errors, 1 warning"
