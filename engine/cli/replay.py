"""``whyhang replay``: stored incidents under a rule file, and what is expected of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from whyhang.engine.cli.overrides import add_set_option, read_overrides
from whyhang.engine.cli.rules_option import add_rules_option, read_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``replay``."""
    parser.add_argument(
        "paths", metavar="DIR", nargs="+", type=Path, help="incident directories, or stores of them"
    )
    add_rules_option(parser)
    parser.add_argument(
        "--expect",
        type=Path,
        metavar="FILE",
        help="what each incident must say (YAML, or an earlier --format json); exit 1 if not",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_set_option(parser)


def run(options: argparse.Namespace) -> int:
    """Replay and print: 0 as expected, 1 not."""
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.replay import find_incidents, mismatches, replay_all
    from whyhang.renderers.replays import render_replays, render_replays_json
    from whyhang.rules.expectations import read_expectations

    expected = {} if options.expect is None else read_expectations(options.expect)
    ruleset = read_rules(options, overrides=read_overrides(options))
    found = find_incidents(options.paths)
    replayed = tuple(replay_all(ruleset, found, version=VERSION))
    misses = tuple(mismatches(replayed, expected))
    if options.format == "json":
        sys.stdout.write(render_replays_json(replayed, misses))
    else:
        for line in render_replays(replayed, misses):
            print(line)
        if options.expect is not None:
            wrong = len({miss.incident for miss in misses})
            print(f"\n{len(expected) - wrong} of {len(expected)} incidents as expected")
    return 1 if misses else 0
