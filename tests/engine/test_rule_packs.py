"""The tests of the shipped rules: they pass, and no small change of the rules escapes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.engine.rule_coverage import measure, share
from whyhang.engine.rule_mutation import run_mutants
from whyhang.engine.rule_required import untested
from whyhang.engine.rule_test_report import FileReport, as_text
from whyhang.engine.rule_tests import Suite, load_suites, run_test, stage

REPOSITORY = Path(__file__).parents[2]
PACK = REPOSITORY / "tests/packs/pytorch_test.yaml"
STARTER = REPOSITORY / "hang_test.yaml"


def load(path: Path) -> Suite:
    """The suite of one test file."""
    return load_suites([path])[0]


@pytest.mark.timeout(900)  # a minute of work, and the machine may be busy
@pytest.mark.parametrize(
    "path",
    [pytest.param(PACK, marks=pytest.mark.long, id="pack"), pytest.param(STARTER, id="starter")],
)
def test_all_as_expected_and_no_mutant_survives(path: Path) -> None:
    """Every test passes, and every mutant fails some test or is explained."""
    suite = load(path)
    tests = stage(suite)
    outcomes = tuple(map(run_test, tests))
    mutation = run_mutants(suite, tests)
    report = FileReport(file=path.name, outcomes=outcomes, mutation=mutation)
    assert not report.failed, "\n".join(as_text([report]))
    assert not mutation.needless, "\n".join(as_text([report]))
    assert not mutation.findings


def test_every_rule_is_expected_to_fire_and_not_to_and_to_be_undecided() -> None:
    """Each rule has tests for its three results, each suppression for acting and not acting."""
    missing = list(untested(load(PACK), "inconclusive"))
    assert not missing, "\n".join(missing)


@pytest.mark.long
def test_clauses_of_the_pack_are_covered() -> None:
    """All but those that only guard decided something both ways."""
    suite = load(PACK)
    clauses = measure(suite, stage(suite))
    assert len(clauses) > 150
    assert share(clauses) > 0.95
