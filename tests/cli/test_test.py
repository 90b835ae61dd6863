"""``whyhang test``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from whyhang.engine.cli.main import main

RULES = """\
version: 1
include: []
rules:
  - id: readers
    when: any rank is (top.function == "read")
    verdict: local_hang
"""
TESTS = """\
rules: hang.yaml
tests:
  - name: somebody reads
    world: 2
    ranks: {"*": a.wait, 1: a.read}
    expect: [{rule: readers}]
  - name: nobody reads
    world: 2
    ranks: {"*": a.wait}
    expect: [{rule: readers, result: not}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with rules and tests, which is the current one."""
    (tmp_path / "hang.yaml").write_text(RULES)
    (tmp_path / "hang_test.yaml").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def break_a_test(folder: Path) -> None:
    """Let one expectation be wrong."""
    (folder / "hang_test.yaml").write_text(TESTS.replace("result: not", "result: fired"))


def test_all_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without files the tests of the directory run; all is well: 0, in one line."""
    assert main(["test"]) == 0
    assert capsys.readouterr().out == "hang_test.yaml: 2 passed\n"


def test_a_failure_is_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What differs is printed with the evidence."""
    break_a_test(folder)
    assert main(["test", "hang_test.yaml"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAIL  hang_test.yaml:7:11  nobody reads\n")
    assert 'false any rank is (top.function == "read")' in out
    assert out.endswith("hang_test.yaml: 1 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("readers, result", "reader, result", "hang_test.yaml:10:14: error[H501]: unknown rule"),
        ("  - name: n", "  - nme: n", "hang_test.yaml:7:5: error[H011]: unknown key `nme`"),
        ("hang.yaml", "gone.yaml", "hang_test.yaml:1:8: error[H503]: cannot read gone.yaml"),
    ],
)
def test_a_broken_file_is_2(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    """A file that cannot be used never passes: it says where it is broken, and nothing ran."""
    (folder / "hang_test.yaml").write_text(TESTS.replace(old, new))
    assert main(["test"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_broken_rules_are_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules with errors are never tested."""
    (folder / "hang.yaml").write_text(RULES.replace("any rank is", "any rank if"))
    assert main(["test"]) == 2
    assert "hang.yaml:5:20: error[H101]: unexpected `if`" in capsys.readouterr().err


def test_no_file_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There must be tests."""
    monkeypatch.chdir(tmp_path)
    assert main(["test"]) == 2
    assert "there is no hang_test.yaml" in capsys.readouterr().err


def test_choice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-k runs a part; a part that is empty is an error, and mutants need all."""
    break_a_test(folder)
    assert main(["test", "-k", "somebody"]) == 0
    assert capsys.readouterr().out == "hang_test.yaml: 1 passed\n"
    assert main(["test", "-k", "elsewhere"]) == 2
    assert main(["test", "-k", "somebody", "--mutate"]) == 2
    assert "needs all tests" in capsys.readouterr().err


def test_survivors_are_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mutant that no test notices is a finding; so is none where all are noticed."""
    assert main(["test", "--mutate", "--coverage"]) == 0
    out = capsys.readouterr().out
    assert out == ("hang_test.yaml: 2 passed, 100% of 2 clauses covered, 2 of 2 mutants noticed\n")
    fewer = TESTS[: TESTS.index("  - name: nobody")]
    (folder / "hang_test.yaml").write_text(fewer)
    (folder / "hang.yaml").write_text(RULES.replace("any rank is", "at least 1 rank is"))
    assert main(["test", "--mutate"]) == 1
    out = capsys.readouterr().out
    assert "SURVIVED  hang.yaml:5:20: rule readers: halve `1` in" in out


def test_mutants_wait_for_tests_that_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a failing test nothing can be said of mutants."""
    break_a_test(folder)
    assert main(["test", "--mutate"]) == 1
    assert "mutants" not in capsys.readouterr().out


def test_an_acceptance_of_nothing_is_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An accepted mutant must exist."""
    accept = "accept: [{mutant: rule readers, why: because}]\n"
    (folder / "hang_test.yaml").write_text(TESTS + accept)
    assert main(["test", "--mutate"]) == 2
    assert "error[H505]: there is no mutant `rule readers`" in capsys.readouterr().err


def test_required_tests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rule without a test for each answer is a finding."""
    assert main(["test", "--require-tests"]) == 0
    (folder / "hang_test.yaml").write_text(TESTS[: TESTS.index("  - name: nobody")])
    assert main(["test", "--require-tests"]) == 1
    out = capsys.readouterr().out
    assert "UNTESTED  hang.yaml:4:9: no test expects rule `readers` to be `not`\n" in out


def test_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and JUnit XML carry the same result and the same exit status."""
    assert main(["test", "--format", "json", "--mutate", "--coverage"]) == 0
    document = json.loads(capsys.readouterr().out)
    (file,) = document["files"]
    assert file["counts"]["passed"] == 2
    assert file["mutants"] == {
        "total": 2,
        "killed": 2,
        "survived": [],
        "accepted": [],
        "needless": [],
    }
    assert file["coverage"]["share"] == 1.0
    break_a_test(folder)
    assert main(["test", "--format", "junit"]) == 1
    tree = ElementTree.fromstring(capsys.readouterr().out)
    suite = tree.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_several_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file has its line; one that fails is enough."""
    other = folder / "other_test.yaml"
    other.write_text(TESTS)
    break_a_test(folder)
    assert main(["test", "hang_test.yaml", "other_test.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["hang_test.yaml: 1 passed, 1 failed", "other_test.yaml: 2 passed"]


def test_rules_without_tests_are_told_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file of tests the message says what is missing, not that the rules are no tests."""
    (folder / "hang_test.yaml").unlink()
    assert main(["test"]) == 2
    assert "there is no hang_test.yaml here" in capsys.readouterr().err
