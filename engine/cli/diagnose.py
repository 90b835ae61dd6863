"""``whyhang diagnose PATH``: verdict and reports from recorded evidence."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.cli.overrides import add_set_option, read_overrides
from whyhang.engine.cli.rules_option import add_rules_option, read_rules
from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.schemas.incident import Incident


STDIN = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``diagnose``."""
    parser.add_argument(
        "path",
        type=Path,
        help="incident directory, directory of dumps, or a pasted file; - reads stdin",
    )
    add_rules_option(parser)
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument("--write", action="store_true", help="write the reports into PATH")
    add_set_option(parser)
    parser.add_argument("--exit-code", action="store_true", help="exit 1 when the job hangs")


def run(options: argparse.Namespace) -> int:
    """Judge the evidence and print the verdict."""
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.cli.terminal import print_diagnosis, replace_file, write_out
    from whyhang.engine.diagnose import diagnose
    from whyhang.engine.incidents import read_evidence

    if options.write and (options.path.is_file() or options.path == STDIN):
        raise UsageError(
            "--write puts its files into a directory, and PATH is a file",
            hint="put the dumps into a directory of their own and give that",
        )
    overrides = read_overrides(options)
    incident = _read_pasted() if options.path == STDIN else read_evidence(options.path)
    rules = read_rules(options, overrides=overrides)
    diagnosis = diagnose(incident, rules, version=VERSION)
    command = f"whyhang diagnose {shlex.quote(str(options.path))}"
    if options.config:
        command += f" -c {shlex.quote(str(options.config))}"
    for name, value in overrides.items():
        command += f" --set {shlex.quote(f'{name}={value}')}"
    files: tuple[str, ...] = ()
    if options.write:
        from whyhang.engine.reports import render_reports

        reports = render_reports(diagnosis)
        for name, text in reports.items():
            replace_file(options.path / name, text)
        files = tuple(str(options.path / name) for name in reports)
    if options.format == "json":
        from whyhang.schemas.verdict_codec import encode_verdict

        write_out(encode_verdict(diagnosis.verdict).decode())
    elif options.format == "markdown":
        from whyhang.renderers.markdown import render_markdown

        write_out(render_markdown(diagnosis, files=files, command=command))
    else:
        print_diagnosis(diagnosis, files, command=command)
    return 1 if options.exit_code and diagnosis.verdict.is_hang else 0


def _read_pasted() -> Incident:
    """The evidence in a paste on stdin."""
    import tempfile

    from whyhang.engine.imported import read_dumps

    with tempfile.TemporaryDirectory(prefix="whyhang-") as directory:
        pasted = Path(directory) / "stdin"
        pasted.write_bytes(sys.stdin.buffer.read())
        return read_dumps(pasted, called="stdin")
