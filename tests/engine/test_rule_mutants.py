"""Mutants of rules: which there are, and which of them tests notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.engine.judge import judge, open_court
from whyhang.engine.rule_coverage import holes, measure, share
from whyhang.engine.rule_mutants import Mutant, mutants
from whyhang.engine.rule_mutation import Mutation, run_mutants
from whyhang.engine.rule_tests import Suite, load_suites, run_test, stage
from whyhang.engine.rule_trials import Trial, check
from whyhang.engine.rule_worlds import build_incident

RULES = """\
version: 1
include: []
vars: {quorum: 90%, still: 10s, unused: 7}
defs:
  slow: cpu.rate < 20%
sets:
  odd: ranks that are (not slow)
suppress:
  - {id: quiet, when: log.stalled_for < 5m}
rules:
  - id: r
    when: (log.stalled and count(odd) >= 1) for 10s
    verdict: local_hang
    suspects: odd
  - id: s
    when: at least $quorum of ranks are (stack unchanged for $still)
    verdict: slow
"""
TESTS = """\
rules: hang.yaml
defaults: {world: 20, ranks: {"*": {stack: m.f, cpu: 0%}}}
tests:
  - name: one is busy
    ranks: {3: {cpu: 30%}}
    expect:
      - {rule: quiet, result: not}
      - {winner: r, suspects: "3"}
      - {rule: s}
  - name: a stall that is just long enough
    log: {stalled_for: 6m}
    expect: [{rule: quiet, result: not}, {rule: r, result: not}]
  - name: a short stall
    log: {stalled_for: 4m}
    ranks: {3: {cpu: 15%}}
    expect: [{rule: quiet, result: suppressed}, {rule: r, result: not}]
"""


def suite_of(folder: Path, rules: str = RULES, tests: str = TESTS) -> Suite:
    """The suite of a rule file and its tests."""
    (folder / "hang.yaml").write_text(rules)
    (folder / "hang_test.yaml").write_text(tests)
    return load_suites([folder / "hang_test.yaml"])[0]


def titles(suite: Suite) -> list[str]:
    """All mutants by title."""
    return [mutant.title for mutant in mutants(suite.ruleset, suite.own, suite.variables)]


def mutate(suite: Suite) -> Mutation:
    """A mutation run over all tests."""
    return run_mutants(suite, stage(suite))


def test_all_mutants(tmp_path: Path) -> None:
    """Each clause negated or dropped, each threshold halved and doubled, each window dropped."""
    assert sorted(titles(suite_of(tmp_path))) == sorted(
        [
            "suppression quiet: negate `log.stalled_for < 5m`",
            "suppression quiet: halve `5m` in `log.stalled_for < 5m`",
            "suppression quiet: double `5m` in `log.stalled_for < 5m`",
            "rule r: drop `for 10s`",
            "rule r: halve `10s` in `(log.stalled and count(odd) >= 1) for 10s`",
            "rule r: double `10s` in `(log.stalled and count(odd) >= 1) for 10s`",
            "rule r: drop `log.stalled`",
            "rule r: drop `count(odd) >= 1`",
            "rule r: negate `log.stalled`",
            "rule r: negate `count(odd) >= 1`",
            "rule r: halve `1` in `count(odd) >= 1`",
            "rule r: double `1` in `count(odd) >= 1`",
            "rule s: negate `at least $quorum of ranks are (stack unchanged for $still)`",
            "rule s: negate `stack unchanged for $still`",
            "def slow: negate `cpu.rate < 20%`",
            "def slow: halve `20%` in `cpu.rate < 20%`",
            "def slow: double `20%` in `cpu.rate < 20%`",
            "set odd: negate `slow`",
            "variable quorum: halve",
            "variable quorum: double",
            "variable still: halve",
            "variable still: double",
        ]
    )


def test_a_share_is_never_more_than_all(tmp_path: Path) -> None:
    """Twice 90 % of a group is all of it, but a process may use many cores."""
    suite = suite_of(tmp_path)
    values = {m.title: m.ruleset for m in mutants(suite.ruleset, suite.own, suite.variables)}
    assert values["variable quorum: double"].variables["quorum"] == 1.0
    rules = RULES.replace("cpu.rate < 20%", "cpu.rate < 100%").replace("90%", "100%")
    assert "def slow: double `100%` in `cpu.rate < 100%`" in titles(suite_of(tmp_path, rules))
    assert "variable quorum: double" not in titles(suite_of(tmp_path, rules))


def test_packs_that_are_included_are_not_mutated(tmp_path: Path) -> None:
    """Their own tests answer for them."""
    rules = RULES.replace("include: []", 'include: ["builtin:pytorch@1"]')
    rules = rules.replace("vars: {quorum: 90%, still: 10s, unused: 7}", "vars: {}")
    rules = rules.replace("odd", "strange").replace("quiet", "silent").replace("slow:", "lazy:")
    rules = rules.replace("not slow", "not lazy")
    suite = suite_of(
        tmp_path, rules, "rules: hang.yaml\ntests: [{name: a, expect: [{none: true}]}]\n"
    )
    assert {title.split(":")[0] for title in titles(suite)} == {
        *("suppression silent", "rule r", "rule s", "def lazy", "set strange"),
    }


def test_survivors_are_holes(tmp_path: Path) -> None:
    """What no test notices is listed with its place."""
    suite = suite_of(tmp_path)
    result = mutate(suite)
    survivors = {mutant.title: mutant.span for mutant in result.survivors}
    assert set(survivors) == {
        "rule r: drop `for 10s`",
        "rule r: halve `10s` in `(log.stalled and count(odd) >= 1) for 10s`",
        "rule r: drop `log.stalled`",
        "variable quorum: halve",
        "variable quorum: double",
        "variable still: halve",
    }
    assert result.killed == result.total - len(survivors)
    place = survivors["rule r: drop `log.stalled`"]
    assert (Path(place.file).name, place.line, place.column) == ("hang.yaml", 12, 12)


def test_a_hole_can_be_accepted(tmp_path: Path) -> None:
    """With a reason; an acceptance that is not needed or names no mutant is told."""
    accept = (
        "accept:\n"
        "  - {mutant: 'rule r: drop `log.stalled`', why: because}\n"
        "  - {mutant: 'rule r: negate `log.stalled`', why: because}\n"
        "  - {mutant: 'rule r: drop `log.staled`', why: because}\n"
    )
    result = mutate(suite_of(tmp_path, RULES, TESTS + accept))
    assert [mutant.title for mutant in result.accepted] == ["rule r: drop `log.stalled`"]
    assert [entry.mutant for entry in result.needless] == ["rule r: negate `log.stalled`"]
    (finding,) = result.findings
    assert (finding.code, finding.span.line) == ("H505", 20)
    assert finding.help == "did you mean `rule r: drop `log.stalled``?"


def test_todo_notices_nothing(tmp_path: Path) -> None:
    """A known gap does not count as a test."""
    todo = TESTS.replace("  - name: one is busy\n", "  - name: one is busy\n    todo: true\n")
    few, many = mutate(suite_of(tmp_path, RULES, todo)), mutate(suite_of(tmp_path))
    assert len(few.survivors) > len(many.survivors)


def by_hand(suite: Suite, mutant: Mutant) -> bool:
    """Whether a test notices a mutant, everything judged afresh."""
    for test in suite.file.tests:
        for expected in test.expect:
            world = build_incident(test.world, at=expected.at)
            if any(True for _ in check(Trial(open_court(mutant.ruleset, world)), expected)):
                return True
    return False


def test_short_cuts_change_nothing(tmp_path: Path) -> None:
    """Asking only what a change can reach finds the same survivors as judging all afresh."""
    rules = RULES + 'ignore:\n  - processes that are (proc.kind == "helper" and slow)\n'
    suite = suite_of(tmp_path, rules)
    survivors = {mutant.title for mutant in mutate(suite).survivors}
    for mutant in mutants(suite.ruleset, suite.own, suite.variables):
        assert by_hand(suite, mutant) is (mutant.title not in survivors), mutant.title


def test_mutants_leave_the_rules_alone(tmp_path: Path) -> None:
    """After a run the tests still pass: nothing was changed in place."""
    suite = suite_of(tmp_path)
    tests = stage(suite)
    before = judge(suite.ruleset, build_incident(suite.file.tests[0].world))
    run_mutants(suite, tests)
    assert all(run_test(test).agrees for test in tests)
    assert judge(suite.ruleset, build_incident(suite.file.tests[0].world)) == before


def test_titles_are_unique(tmp_path: Path) -> None:
    """The same change at two places is told apart."""
    rules = RULES.replace("log.stalled and count", "log.stalled and log.stalled and count")
    found = titles(suite_of(tmp_path, rules))
    assert len(set(found)) == len(found)
    assert "rule r: drop `log.stalled` (no. 2)" in found


def test_coverage(tmp_path: Path) -> None:
    """A clause is covered once it decided by being true and by being false."""
    suite = suite_of(tmp_path)
    clauses = measure(suite, stage(suite))
    found = {clause.text: (clause.true, clause.false) for clause in clauses}
    assert found == {
        "cpu.rate < 20%": (True, True),
        "slow": (True, True),
        "log.stalled_for < 5m": (True, True),
        "log.stalled": (True, False),
        "count(odd) >= 1": (True, True),
        "at least $quorum of ranks are (stack unchanged for $still)": (True, False),
        "stack unchanged for $still": (True, False),
    }
    assert share(clauses) == pytest.approx(4 / 7)
    assert [hole.span.line for hole in holes(clauses)] == [12, 16, 16]


def test_what_did_not_decide_is_not_covered(tmp_path: Path) -> None:
    """Beside a false clause, a true one decided nothing."""
    rules = "version: 1\ninclude: []\nrules:\n"
    rules += "  - {id: r, verdict: slow, when: log.slow and log.stalled}\n"
    tests = "rules: hang.yaml\ntests: [{name: a, expect: [{none: true}]}]\n"
    suite = suite_of(tmp_path, rules, tests)
    found = {c.text: (c.true, c.false) for c in measure(suite, stage(suite))}
    assert found == {"log.slow": (False, True), "log.stalled": (False, False)}


def test_ignored_processes_count_as_decided(tmp_path: Path) -> None:
    """What `ignore` takes out decided, although nobody counts it afterwards."""
    rules = RULES + 'ignore:\n  - processes that are (proc.kind == "trainer")\n'
    suite = suite_of(tmp_path, rules)
    found = {c.text: (c.true, c.false) for c in measure(suite, stage(suite))}
    assert found['proc.kind == "trainer"'] == (True, False)
