"""``whyhang schema``: the JSON Schemas of the file formats."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files

SCHEMAS = {
    "hang": "hang.v1.json",
    "hang_test": "hang_test.v1.json",
    "incident": "incident.v1.json",
    "process": "process.v1.json",
    "node_facts": "node_facts.v1.json",
    "verdict": "verdict.v1.json",
}
_OPTIONS = (
    ("--test", "hang_test", "hang_test.yaml"),
    ("--incident", "incident", "incident.json"),
    ("--process", "process", "a line of samples/<k>/<node>.jsonl"),
    ("--node-facts", "node_facts", "samples/<k>/<node>.facts.json"),
    ("--verdict", "verdict", "verdict.json"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang schema``."""
    which = parser.add_mutually_exclusive_group()
    for option, name, of in _OPTIONS:
        which.add_argument(
            option, dest="format", action="store_const", const=name, help=f"that of {of}"
        )
    parser.set_defaults(format="hang")


def run(options: argparse.Namespace) -> int:
    """Print the schema of hang.yaml, or of the format asked for."""
    path = files("whyhang.schemas") / SCHEMAS[options.format]
    sys.stdout.write(path.read_text(encoding="utf-8"))
    return 0
