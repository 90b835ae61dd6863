"""``python -m tests.lab [NAME…|--all]``: play real hangs and show what whyhang finds in them.

Without a name the scenarios are listed. Exit status: 0, 1 where something expected was not found,
2 for wrong use.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.lab.harness import Outcome
from tests.lab.job import LabError
from tests.lab.scenarios import SCENARIOS
from tests.lab.stage import Stage
from tests.lab.table import HEADER, LEFT_OUT, Row, markdown, row, text


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab", description="Plays real hangs and shows what whyhang finds."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios (default: list them)")
    parser.add_argument("--all", action="store_true", help="every scenario")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep logs and incidents here")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - SCENARIOS.keys())
    if unknown:
        parser.error(f"no scenario is called {', '.join(unknown)}")
    return options


def play(names: Sequence[str], directory: Path) -> Iterator[Row]:
    """Play these scenarios, two at a time; a row for each, in this order."""
    playable = [name for name in names if SCENARIOS[name].left_out is None]
    stage = Stage(directory, SCENARIOS)
    try:
        stage.announce(playable)
        for name in names:
            yield row(name, SCENARIOS[name], _outcome(stage, name))
    finally:
        stage.close()


def _outcome(stage: Stage, name: str) -> Outcome | str:
    reason = SCENARIOS[name].left_out
    if reason is not None:
        return f"{LEFT_OUT}: {reason}"
    try:
        return stage.outcome(name)
    except LabError as error:
        return f"did not come about: {error}"


def main(arguments: Sequence[str] | None = None) -> int:
    """List the scenarios, or play some and print a row for each."""
    options = parse(arguments)
    names = list(SCENARIOS) if options.all else options.names
    if not names:
        for name, scenario in SCENARIOS.items():
            print(f"{name:18} {scenario.summary}")
        return 0
    wrong = False
    with tempfile.TemporaryDirectory(prefix="whyhang-lab-") as scratch:
        if options.markdown:
            print(HEADER, flush=True)
        for found in play(names, options.keep or Path(scratch)):
            wrong = wrong or not found.is_right
            print(markdown(found) if options.markdown else text(found), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
