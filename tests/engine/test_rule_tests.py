"""Running rule tests: what agrees, what differs and why."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from whyhang.engine.rule_choice import chooser
from whyhang.engine.rule_required import untested
from whyhang.engine.rule_test_report import FileReport, as_json, as_junit, as_text
from whyhang.engine.rule_tests import Suite, load_suites, run_test, stage
from whyhang.rules.findings import RuleErrors

RULES = """\
version: 1
include: []
defs:
  busy: top.function == "read"
suppress:
  - id: quiet
    when: log.progressing
rules:
  - id: readers
    when: log.stalled and any rank is busy
    verdict: local_hang
    category: dataloader
    suspects: ranks that are busy
    message: "{{ ranks }} read"
"""
TESTS = """\
rules: hang.yaml
stacks: {base: [train.main], waits: [base, lib.wait], reads: [base, lib.read]}
tests:
  - name: one
    world: 4
    ranks: {"*": waits, 3: reads}
    expect:
"""


def write(folder: Path, expect: str, tests: str = TESTS) -> Path:
    """A test file beside its rules."""
    (folder / "hang.yaml").write_text(RULES)
    path = folder / "hang_test.yaml"
    path.write_text(tests + expect)
    return path


def load(folder: Path, expect: str, tests: str = TESTS) -> Suite:
    """The suite of a test file."""
    return load_suites([write(folder, expect, tests)])[0]


def differences(suite: Suite) -> list[tuple[str, str, str]]:
    """What, expected, found of all mismatches."""
    return [
        (one.what, one.expected, one.found)
        for test in stage(suite)
        for one in run_test(test).mismatches
    ]


@pytest.mark.parametrize(
    "expect",
    [
        '{rule: readers, suspects: "3"}',
        "{rule: readers, result: fired, because: [any rank is busy, yes 3]}",
        "{rule: quiet, result: not}",
        '{verdict: local_hang, category: dataloader, winner: readers, suspects: "3"}',
        '{message: "3 read"}',
        '{message: "3*ad"}',
        "{position: lib.py, none: false}",
        "{confidence: high}",
    ],
)
def test_what_agrees(tmp_path: Path, expect: str) -> None:
    """Every kind of assertion can hold."""
    assert differences(load(tmp_path, f"      - {expect}\n")) == []


@pytest.mark.parametrize(
    ("expect", "difference"),
    [
        ("{rule: readers, result: not}", ("result", "not", "fired")),
        ("{rule: readers, result: inconclusive}", ("result", "inconclusive", "fired")),
        ("{rule: readers, result: suppressed}", ("result", "suppressed", "fired")),
        ("{rule: quiet, result: suppressed}", ("result", "suppressed", "not")),
        ('{rule: readers, suspects: "2"}', ("suspects", "2", "3")),
        ('{suspects: ""}', ("suspects", "nobody", "3")),
        ("{verdict: slow}", ("verdict", "slow", "local_hang")),
        ("{category: other}", ("category", "other", "dataloader")),
        ("{confidence: low}", ("confidence", "low", "high")),
        ('{message: "4*"}', ("message", "4*", "3 read")),
        ("{position: main}", ("position", "main", "read /workspace/lib.py:1")),
        ("{none: true}", ("none", "no rule fires", "readers fired")),
    ],
)
def test_what_differs(tmp_path: Path, expect: str, difference: tuple[str, str, str]) -> None:
    """Every kind of assertion can fail, and says what was found instead."""
    assert differences(load(tmp_path, f"      - {expect}\n")) == [difference]


def test_because_must_be_found(tmp_path: Path) -> None:
    """A reason that is not among the deciding clauses is a difference."""
    found = differences(load(tmp_path, "      - {rule: readers, because: [the moon]}\n"))
    assert [(what, expected) for what, expected, _ in found] == [("because", "the moon")]


def test_a_suppressed_rule(tmp_path: Path) -> None:
    """A rule that holds while a suppression acts is suppressed, and nothing wins."""
    tests = TESTS.replace("    expect", "    log: advancing\n    expect")
    suite = load(
        tmp_path,
        "      - {rule: quiet, result: suppressed}\n      - {verdict: no_hang, none: true}\n",
        tests,
    )
    assert differences(suite) == []


def test_times(tmp_path: Path) -> None:
    """Each expectation looks at its own time."""
    tests = TESTS.replace("    expect", "    timeline: {log.stalled_for: 0s+30sx9}\n    expect")
    suite = load(
        tmp_path,
        '      - {at: 90s, none: true}\n      - {at: 2m, rule: readers, suspects: "3"}\n',
        tests,
    )
    assert differences(suite) == []
    assert len(stage(suite)[0].trials) == 2


def test_todo_never_fails(tmp_path: Path) -> None:
    """A known gap is reported and no failure; once it is closed, that is said."""
    expect = "      - {verdict: slow}\n    todo: true\n"
    outcome = run_test(stage(load(tmp_path, expect))[0])
    assert not outcome.agrees
    assert not outcome.failed
    lines = list(as_text([FileReport(file="t", outcomes=(outcome,))]))
    assert lines[0].startswith("TODO  ")
    assert lines[-1] == "t: 0 passed, 1 todo"
    done = run_test(stage(load(tmp_path, expect.replace("slow", "local_hang")))[0])
    lines = list(as_text([FileReport(file="t", outcomes=(done,))]))
    assert lines[0].startswith("TODO PASSES  ")
    assert lines[-1] == "t: 0 passed, 1 todo that pass"


def test_a_failure_shows_why(tmp_path: Path) -> None:
    """Expected, found, and the clauses that decided it, with their ranks."""
    outcome = run_test(stage(load(tmp_path, "      - {rule: readers, result: not}\n"))[0])
    text = "\n".join(as_text([FileReport(file="t", outcomes=(outcome,))]))
    path = tmp_path / "hang_test.yaml"
    assert text.splitlines()[:4] == [
        f"FAIL  {path}:4:11  one",
        f"  {path}:8:9: result of rule readers",
        "    expected  not",
        "    found     fired",
    ]
    assert "true    log.stalled   no step for 600 s" in text
    assert "any rank is busy   yes 3; no 0-2" in text
    assert text.splitlines()[-1] == "t: 0 passed, 1 failed"


def test_all_broken_files_are_told_at_once(tmp_path: Path) -> None:
    """Unknown rules, missing rule files and broken rules, in several files."""
    first = write(tmp_path, "      - {rule: reader}\n")
    second = tmp_path / "second.yaml"
    second.write_text(TESTS.replace("hang.yaml", "gone.yaml") + "      - {verdict: slow}\n")
    third = tmp_path / "third.yaml"
    (tmp_path / "bad.yaml").write_text(RULES.replace("any rank is busy", "any rank is bsy"))
    third.write_text(TESTS.replace("hang.yaml", "bad.yaml") + "      - {verdict: slow}\n")
    with pytest.raises(RuleErrors) as caught:
        load_suites([first, second, third])
    found = [(Path(f.span.file).name, f.span.line, f.code) for f in caught.value.findings]
    assert found == [
        ("bad.yaml", 10, "H201"),
        ("hang_test.yaml", 8, "H501"),
        ("second.yaml", 1, "H503"),
    ]
    assert caught.value.findings[1].help == "did you mean `readers`?"


def test_an_incident_that_is_not_there(tmp_path: Path) -> None:
    """A recorded incident that cannot be read is an error at its test."""
    tests = TESTS[: TESTS.index("    world")] + "    incident: gone/\n    expect:\n"
    with pytest.raises(RuleErrors, match=r"H503.*gone"):
        stage(load(tmp_path, "      - {verdict: slow}\n", tests))


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", ["a rank stops", "a rank sleeps", "Nodes sleep"]),
        ("sleep", ["a rank sleeps", "Nodes sleep"]),
        ("rank and sleep", ["a rank sleeps"]),
        ("nodes or stops", ["a rank stops", "Nodes sleep"]),
        ("not sleep", ["a rank stops"]),
        ("sleep and not rank", ["Nodes sleep"]),
    ],
)
def test_choice(expression: str, chosen: list[str]) -> None:
    """Names are chosen by the texts that they contain."""
    names = ["a rank stops", "a rank sleeps", "Nodes sleep"]
    assert list(filter(chooser(expression), names)) == chosen


def test_what_is_untested(tmp_path: Path) -> None:
    """A rule must be expected to fire and not to, a suppression to act and not to."""
    suite = load(tmp_path, "      - {rule: readers}\n      - {rule: quiet, result: not}\n")
    lines = [line.partition(": ")[2] for line in untested(suite)]
    assert lines == [
        "no test expects rule `readers` to be `not`",
        "no test expects suppression `quiet` to be `suppressed`",
    ]
    assert len(list(untested(suite, "inconclusive"))) == 3


def test_json_and_junit(tmp_path: Path) -> None:
    """The other formats tell the same; XML is escaped."""
    tests = TESTS.replace("name: one", "name: <one> & two")
    outcome = run_test(stage(load(tmp_path, "      - {verdict: slow}\n", tests))[0])
    report = FileReport(file="t", outcomes=(outcome,), untested=("a",))
    document = json.loads(as_json([report]))
    test = document["files"][0]["tests"][0]
    assert (document["failed"], test["name"], test["agrees"]) == (True, "<one> & two", False)
    assert test["mismatches"][0]["expected"] == "slow"
    tree = ElementTree.fromstring("\n".join(as_junit([report])))
    suite = tree.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    case = suite.find("testcase")
    assert case is not None
    assert case.get("name") == "<one> & two"
