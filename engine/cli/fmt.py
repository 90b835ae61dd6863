"""``whyhang fmt``: one way to write a hang.yaml; comments stay, the meaning stays."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from whyhang.engine.cli.check import DEFAULT_PATH, is_test_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang fmt``."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help=f"files to format (default: {DEFAULT_PATH})"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file would change"
    )
    parser.add_argument(
        "--diff", action="store_true", help="write nothing; print what would change"
    )


def run(options: argparse.Namespace) -> int:
    """Format the files: 0 done, 1 would change, 2 a file has errors or cannot be read."""
    from whyhang.rules.findings import RuleErrors, format_findings

    status = 0
    for name in options.files or [DEFAULT_PATH]:
        if is_test_file(Path(name)):
            print(f"{name}: left as it is: only rules are formatted", file=sys.stderr)
            continue
        try:
            changed = _format(Path(name), options)
        except RuleErrors as error:
            print(*format_findings(error.findings), sep="\n", file=sys.stderr)
            print(f"{name}: not formatted: it has errors", file=sys.stderr)
            status = 2
            continue
        if changed and (options.check or options.diff):
            status = max(status, 1)
    return status


def _format(path: Path, options: argparse.Namespace) -> bool:
    """Format one file; whether it changes."""
    from whyhang.rules.fmt import format_source
    from whyhang.rules.sources import read_source
    from whyhang.schemas.errors import UsageError

    source = read_source(path)
    text = format_source(source)
    if text == source.text:
        return False
    if options.diff:
        print(*difference(source.text, text, str(path)), sep="\n")
    if options.check:
        print(f"{path}: would change", file=sys.stderr)
    if not options.check and not options.diff:
        try:
            windows = b"\r\n" in path.read_bytes()
            path.write_text(text, encoding="utf-8", newline="\r\n" if windows else "\n")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
        print(f"{path}: formatted", file=sys.stderr)
    return True


def difference(before: str, after: str, name: str) -> Iterator[str]:
    """The lines of a unified diff."""
    lines = before.splitlines(), after.splitlines()
    return difflib.unified_diff(*lines, name, f"{name} (formatted)", lineterm="")
