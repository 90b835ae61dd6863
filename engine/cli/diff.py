"""``whyhang diff``: what changes on recorded incidents between two versions of the rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``diff``."""
    parser.add_argument("old", metavar="OLD", help="hang.yaml, or REVISION:path in git")
    parser.add_argument("new", metavar="NEW", help="hang.yaml, or REVISION:path in git")
    parser.add_argument(
        "--on",
        metavar="DIR",
        nargs="+",
        type=Path,
        required=True,
        help="incident directories, or stores of them",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "markdown"),
        default="text",
        help="markdown: a comment on a pull request",
    )


def run(options: argparse.Namespace) -> int:
    """Compare and print: 0 every outcome is the same, 1 some change."""
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.compare import compare
    from whyhang.engine.replay import find_incidents
    from whyhang.engine.revision import locate
    from whyhang.rules.load import load_ruleset

    old, new = ((name, load_ruleset(locate(name))) for name in (options.old, options.new))
    changes = compare(old, new, find_incidents(options.on), version=VERSION)
    if options.format == "json":
        from whyhang.renderers.changes import render_changes_json

        sys.stdout.write(render_changes_json(changes))
    elif options.format == "markdown":
        from whyhang.renderers.changes_markdown import render_changes_markdown

        sys.stdout.writelines(line + "\n" for line in render_changes_markdown(changes))
    else:
        from whyhang.renderers.changes import render_changes

        for line in render_changes(changes):
            print(line)
    return 1 if changes.incidents else 0
