"""Runs the tests of rule files on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from whyhang.engine.judge import open_court
from whyhang.engine.rule_trials import Mismatch, Trial, check
from whyhang.engine.rule_worlds import build_incident
from whyhang.rules.assemble import assemble
from whyhang.rules.findings import Finding, RuleErrors, with_sources
from whyhang.rules.load import load_source
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.sources import NotIncluded, Source, included, is_builtin, read_source
from whyhang.rules.test_cases import RuleTest, RuleTestFile
from whyhang.rules.test_file import read_test_file
from whyhang.rules.test_names import unknown_names
from whyhang.schemas.errors import FormatError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A test file with the rules that it is about.

    ``own`` names the rule files under test: a pack that they merely include has its own tests.
    ``variables`` are those that the own files define.
    """

    file: RuleTestFile
    ruleset: Ruleset
    own: frozenset[str]
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class StagedTest:
    """One test with its trials, one for each time that it looks at."""

    test: RuleTest
    trials: dict[float | None, Trial]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one test ended; a test that is `todo` never fails."""

    test: RuleTest
    mismatches: tuple[Mismatch, ...]

    @property
    def agrees(self) -> bool:
        """Whether everything came out as expected."""
        return not self.mismatches

    @property
    def failed(self) -> bool:
        """Whether it is a failure."""
        return not self.agrees and not self.test.todo


def load_suites(paths: Iterable[Path]) -> tuple[Suite, ...]:
    """The suites of test files. Raises RuleErrors with all that is wrong in any of them."""
    findings: list[Finding] = []
    suites = []
    for path in paths:
        try:
            file = read_test_file(path)
            suite = load_suite(file)
        except RuleErrors as error:
            findings.extend(error.findings)
            continue
        findings.extend(with_sources(unknown_names(file, suite.ruleset), {file.file: file.lines}))
        suites.append(suite)
    if findings:
        raise RuleErrors(findings)
    return tuple(suites)


def load_suite(file: RuleTestFile) -> Suite:
    """The rules of a test file, loaded. Raises RuleErrors, also where they cannot be read."""
    source = _source(file)
    ruleset, found = load_source(source, {})
    if any(finding.severity == "error" for finding in found):
        raise RuleErrors(found)
    assembly = assemble(source)
    own = frozenset(
        document.file
        for document in assembly.documents
        if document.file == source.name or not is_builtin(document.file)
    )
    return Suite(
        file=file,
        ruleset=ruleset,
        own=own,
        variables=frozenset(
            name for name, item in assembly.vars.items() if item.document.file in own
        ),
    )


def _source(file: RuleTestFile) -> Source:
    try:
        if isinstance(file.rules, Path):
            return read_source(file.rules)
        return included(file.rules, None)
    except (UsageError, NotIncluded) as error:
        hint = error.hint if isinstance(error, UsageError) else error.help
        finding = Finding(code="H503", message=error.message, span=file.rules_span, help=hint)
        raise RuleErrors(with_sources([finding], {file.file: file.lines})) from None


def stage(
    suite: Suite, chosen: Callable[[str], bool] = lambda name: True
) -> tuple[StagedTest, ...]:
    """The worlds of the chosen tests. Raises RuleErrors for incidents that cannot be read."""
    findings: list[Finding] = []
    worlds = []
    for test in suite.file.tests:
        if not chosen(test.name):
            continue
        try:
            worlds.append(StagedTest(test, _trials(suite, test)))
        except (UsageError, FormatError) as error:
            findings.append(
                Finding(code="H503", message=error.message, span=test.span, help=error.hint)
            )
    if findings:
        raise RuleErrors(with_sources(findings, {suite.file.file: suite.file.lines}))
    return tuple(worlds)


def _trials(suite: Suite, test: RuleTest) -> dict[float | None, Trial]:
    detect = suite.ruleset.config.detect
    return {
        at: Trial(open_court(suite.ruleset, build_incident(test.world, at=at, detect=detect)))
        for at in dict.fromkeys(expected.at for expected in test.expect)
    }


def run_test(world: StagedTest) -> Outcome:
    """Compare what comes out with what the test expects."""
    return Outcome(
        test=world.test,
        mismatches=tuple(
            mismatch
            for expected in world.test.expect
            for mismatch in check(world.trials[expected.at], expected)
        ),
    )
