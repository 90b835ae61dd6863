"""``whyhang config``: what a hang.yaml and its packs come to, with the origin of each item."""

from __future__ import annotations

import argparse
import json

from whyhang.engine.cli.overrides import add_set_option, read_overrides
from whyhang.engine.cli.rules_option import add_rules_option, find_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang config``."""
    parser.add_argument(
        "--resolved",
        action="store_true",
        default=True,
        help="the merged file: packs, includes, verbs, overrides and defaults (always)",
    )
    add_rules_option(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_set_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the merged file."""
    from whyhang.rules.resolve import resolve, resolved_json, resolved_lines
    from whyhang.rules.sources import DEFAULT, included, read_source

    path = find_rules(options.config)
    source = included(DEFAULT, None) if path is None else read_source(path)
    resolved = resolve(source, read_overrides(options))
    if options.format == "json":
        print(json.dumps(resolved_json(resolved), indent=2, ensure_ascii=False))
    else:
        print(*resolved_lines(resolved), sep="\n")
    return 0
