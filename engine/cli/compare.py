"""``whyhang compare DIR A B``: two ranks side by side, or one rank at two times."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from whyhang.schemas.words import PROCESS_KINDS

PAGE_COLUMNS = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``compare``."""
    parser.add_argument("path", type=Path, help="incident directory, or a directory of dumps")
    parser.add_argument("a", metavar="A", help="a rank: 3, or 3@0 for its sample 0")
    parser.add_argument("b", metavar="B", help="the other one")
    parser.add_argument(
        "--kind", choices=PROCESS_KINDS, default="trainer", help="whose stacks (default: trainer)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the two in two columns."""
    from whyhang.engine.cli.terminal import write_out
    from whyhang.engine.incidents import read_evidence
    from whyhang.engine.pick import pick_named
    from whyhang.renderers.raw_stacks import render_side_by_side

    incident = read_evidence(options.path)
    left = pick_named(incident, options.a, kind=options.kind)
    right = pick_named(incident, options.b, kind=options.kind)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PAGE_COLUMNS
    for line in render_side_by_side(left, right, width=width):
        write_out(line + "\n")
    return 0
