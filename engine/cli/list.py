"""``whyhang list``: the incidents that are kept."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from whyhang.engine.cli.rules_option import add_rules_option, read_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``list``."""
    parser.add_argument("store", type=Path, nargs="?", help="default: the path of `store:`")
    add_rules_option(parser)


def run(options: argparse.Namespace) -> int:
    """One line an incident, oldest first."""
    from whyhang.engine.store import incident_directories
    from whyhang.renderers.clean import one_line
    from whyhang.renderers.words import moment
    from whyhang.schemas.errors import FormatError, UsageError
    from whyhang.schemas.verdict_codec import decode_verdict

    store = options.store or Path(read_rules(options, lenient=True).config.store.path)
    if not store.is_dir():
        raise UsageError(f"no such store: {store}", hint="give the directory of incidents")
    found = list(incident_directories(store))
    for directory in found:
        try:
            verdict = decode_verdict((directory / "verdict.json").read_bytes())
            text = f"{verdict.verdict:<12}  {one_line(verdict.headline)}"
        except (OSError, FormatError):
            text = f"not judged yet: whyhang diagnose {directory}"
        print(f"{directory.name}  {moment(_taken_at(directory.name))}  {text}")
    if not found:
        print(f"no incidents in {store}", file=sys.stderr)
    return 0


def _taken_at(print_id: str) -> str:
    """When the collection began, from the print ID."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(int(print_id) // 10**9, timezone.utc).isoformat()
