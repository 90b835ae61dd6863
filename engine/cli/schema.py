"""``whyhang schema``: the JSON Schemas of the file formats."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files

SCHEMAS = {
    "hang": "hang.v1.json",
    "hang_test": "hang_test.v1.json",
    "incident": "incident.v1.json",
    "verdict": "verdict.v1.json",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang schema``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--test",
        dest="format",
        action="store_const",
        const="hang_test",
        help="that of hang_test.yaml",
    )
    which.add_argument(
        "--incident",
        dest="format",
        action="store_const",
        const="incident",
        help="that of incident.json",
    )
    which.add_argument(
        "--verdict",
        dest="format",
        action="store_const",
        const="verdict",
        help="that of verdict.json",
    )
    parser.set_defaults(format="hang")


def run(options: argparse.Namespace) -> int:
    """Print the schema of hang.yaml, or of the format asked for."""
    from whyhang.schemas.errors import UsageError

    path = files("whyhang.schemas") / SCHEMAS[options.format]
    if not path.is_file():
        raise UsageError(f"this release has no schema of {options.format}")
    sys.stdout.write(path.read_text(encoding="utf-8"))
    return 0
