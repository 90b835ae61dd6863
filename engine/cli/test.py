"""``whyhang test``: unit tests of rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyhang.engine.rule_test_report import FileReport
    from whyhang.engine.rule_tests import Suite

DEFAULT_PATHS = ("hang_test.yaml", "hang.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``test``."""
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="test files, or rule files with `tests` beside their rules "
        f"(default: {' or '.join(DEFAULT_PATHS)})",
    )
    parser.add_argument(
        "-k",
        dest="expression",
        metavar="EXPR",
        help="only tests whose name contains EXPR; `and`, `or`, `not` combine texts",
    )
    parser.add_argument(
        "--coverage", action="store_true", help="list clauses that never decide anything"
    )
    parser.add_argument(
        "--mutate",
        action="store_true",
        help="change the rules in small ways and list the changes that no test notices",
    )
    parser.add_argument(
        "--require-tests",
        action="store_true",
        help="fail if a rule is not expected both to fire and not to",
    )
    parser.add_argument("--format", choices=("text", "json", "junit"), default="text")


def run(options: argparse.Namespace) -> int:
    """Run the tests: 0 all as expected, 1 failures or survivors, 2 a broken file."""
    from whyhang.engine.rule_test_report import as_json, as_junit, as_text
    from whyhang.engine.rule_tests import load_suites
    from whyhang.rules.findings import RuleErrors, format_findings
    from whyhang.schemas.errors import UsageError

    if options.mutate and options.expression is not None:
        raise UsageError(
            "--mutate needs all tests", hint="what the others would notice would seem unnoticed"
        )
    try:
        suites = load_suites(options.files or _default())
        reports = tuple(_report(suite, options) for suite in suites)
    except RuleErrors as error:
        for line in format_findings(error.findings):
            print(line, file=sys.stderr)
        return error.exit_status
    if options.expression is not None and not any(report.outcomes for report in reports):
        raise UsageError(f"no test is called like `{options.expression}`")
    lines: Iterator[str]
    if options.format == "json":
        lines = iter([as_json(reports)])
    else:
        lines = as_junit(reports) if options.format == "junit" else as_text(reports)
    for line in lines:
        print(line)
    return 1 if any(report.failed for report in reports) else 0


def _default() -> list[Path]:
    """The test file beside the rules, else the rules themselves."""
    from whyhang.schemas.errors import UsageError

    for path in map(Path, DEFAULT_PATHS):
        if path.is_file() and (path.name != DEFAULT_PATHS[-1] or _holds_tests(path)):
            return [path]
    raise UsageError(
        "there is no hang_test.yaml here, and no `tests` in a hang.yaml",
        hint="name the files, or write hang_test.yaml: `whyhang schema --test` says what may "
        "stand there",
    )


def _holds_tests(path: Path) -> bool:
    """Whether a file of rules seems to hold tests, or cannot be read, which is then said."""
    try:
        return "tests:" in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True


def _report(suite: Suite, options: argparse.Namespace) -> FileReport:
    from whyhang.engine.rule_choice import chooser
    from whyhang.engine.rule_coverage import measure
    from whyhang.engine.rule_mutation import run_mutants
    from whyhang.engine.rule_required import untested
    from whyhang.engine.rule_test_report import FileReport
    from whyhang.engine.rule_tests import run_test, stage
    from whyhang.rules.findings import RuleErrors, with_sources

    tests = stage(suite, chooser(options.expression or ""))
    outcomes = tuple(map(run_test, tests))
    mutation = None
    if options.mutate and not any(outcome.failed for outcome in outcomes):
        mutation = run_mutants(suite, tests)
        if mutation.findings:
            lines = {suite.file.file: suite.file.lines}
            raise RuleErrors(with_sources(mutation.findings, lines))
    return FileReport(
        file=suite.file.file,
        outcomes=outcomes,
        coverage=measure(suite, tests) if options.coverage else None,
        mutation=mutation,
        untested=tuple(untested(suite)) if options.require_tests else (),
    )
