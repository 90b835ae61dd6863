"""``whyhang check``: all errors in hang.yaml, each with its line and a remedy."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.cli.overrides import add_set_option, read_overrides

if TYPE_CHECKING:
    from whyhang.rules.findings import Finding

DEFAULT_PATH = "hang.yaml"
TEST_SUFFIXES = ("_test.yaml", "_test.yml")
_COLORS = {"error": "31", "warning": "33", "info": "36"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_HEAD = re.compile(r"(?P<place>.*?): (?P<severity>error|warning|info)(?P<code>\[H\d+\])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang check``."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"files of rules, or tests in *_test.yaml (default: {DEFAULT_PATH})",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="github: annotations on the changed files of a pull request",
    )
    add_set_option(parser)
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning"),
        default="error",
        help="the least severity that makes the exit status 1 (default: error)",
    )


def run(options: argparse.Namespace) -> int:
    """Check the files: 0 nothing to say, 1 findings, 2 a file cannot be read."""
    from whyhang.rules.load import check_files

    paths = [Path(name) for name in options.files or [DEFAULT_PATH]]
    rules = [path for path in paths if not is_test_file(path)]
    findings = check_files(rules, overrides=read_overrides(options))
    tests = [path for path in paths if is_test_file(path)]
    if tests:
        findings += _check_tests(tests)
    for line in report(findings, options.format, colored=_wants_color()):
        print(line)
    if options.format == "text":
        print(summary(findings, paths))
    fatal = ("error",) if options.fail_on == "error" else ("error", "warning")
    return 1 if any(finding.severity in fatal for finding in findings) else 0


def is_test_file(path: Path) -> bool:
    """Whether a file holds tests of rules, by its name."""
    return path.name.endswith(TEST_SUFFIXES)


def _check_tests(paths: Iterable[Path]) -> tuple[Finding, ...]:
    """What keeps test files from being run."""
    from whyhang.engine.rule_tests import load_suites
    from whyhang.rules.findings import RuleErrors

    try:
        load_suites(paths)
    except RuleErrors as error:
        return tuple(error.findings)
    return ()


def report(findings: Sequence[Finding], format: str, *, colored: bool) -> Iterator[str]:
    """The findings as lines of the format."""
    if format == "json":
        yield json.dumps([_as_json(finding) for finding in findings], indent=2)
    elif format == "github":
        yield from map(_as_github, findings)
    else:
        from whyhang.rules.findings import format_findings

        lines = format_findings(findings)
        yield from map(_color, lines) if colored else lines


def summary(findings: Iterable[Finding], paths: Sequence[Path]) -> str:
    """How many findings of which severity there are."""
    counts = Counter(finding.severity for finding in findings)
    files = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    parts = [
        f"{counts[severity]} {severity}{'' if counts[severity] == 1 else 's'}"
        for severity in ("error", "warning", "info")
        if counts[severity]
    ]
    return f"{files}: {', '.join(parts) or 'nothing to complain about'}"


def _as_json(finding: Finding) -> dict[str, object]:
    span = finding.span
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "length": span.length,
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "help": finding.help,
    }


def _as_github(finding: Finding) -> str:
    span = finding.span
    text = finding.message + (f"\n{finding.help}" if finding.help else "")
    properties = {
        "file": span.file,
        "line": str(span.line),
        "col": str(span.column),
        "endColumn": str(span.column + span.length),
        "title": finding.code,
    }
    given = ",".join(f"{name}={_escape(value, ':,')}" for name, value in properties.items())
    return f"::{_GITHUB_LEVELS[finding.severity]} {given}::{_escape(text)}"


def _escape(text: str, more: str = "") -> str:
    """The text with the characters escaped that end a workflow command's parts."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _wants_color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _color(line: str) -> str:
    """A line with its severity, carets and help in color."""
    head = _HEAD.match(line)
    if head is not None:
        color = _COLORS[head["severity"]]
        rest = line[head.end() :]
        return f"\033[1m{head['place']}:\033[0m \033[1;{color}m{head[2]}{head[3]}\033[0m{rest}"
    if re.match(r" +\| +\^+\Z", line):
        return line.replace("^", "\033[1;32m^", 1) + "\033[0m"
    return line
