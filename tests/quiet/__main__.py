"""``python -m tests.quiet``: look at a real healthy job at random moments; no look may see a hang.

Exit status: 0, 1 where a hang was seen, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.quiet.keep import keep
from tests.quiet.looks import Look, Lookout, random_moments
from tests.quiet.names import SITUATIONS
from whyhang.schemas.verdict import Verdict

HEADER = """\
| look | situation | view | verdict | rule | seconds |
|---:|---|---|---|---|---:|"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.quiet",
        description="Looks at a real healthy job at random moments; no look may see a hang.",
    )
    parser.add_argument("--moments", type=int, default=20, metavar="N", help="how many looks")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of the order")
    parser.add_argument("--interval", default="10s", help="between the samples of a look")
    parser.add_argument(
        "--pause", type=float, default=6.0, help="longest time before a look, in seconds"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the incidents here")
    parser.add_argument(
        "names", nargs="*", metavar="SITUATION", help=f"default: all of {', '.join(SITUATIONS)}"
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(SITUATIONS))
    if unknown:
        parser.error(f"no situation is called {', '.join(unknown)}")
    return options


def rows(look: Look) -> Iterator[str]:
    """The rows of the table that a look fills, one a view."""
    for view, given in look.verdicts.items():
        said = f"**{given.verdict}**" if view in look.wrong else given.verdict
        yield (
            f"| {look.number} | {look.situation} | {view} | {said} {given.category} "
            f"| {', '.join(causes(given)) or '-'} | {look.seconds:.0f} |"
        )


def causes(given: Verdict) -> Iterator[str]:
    """The rule that won, and in brackets the suppressions that acted."""
    if given.rule is not None:
        yield given.rule
    yield from (f"({one.id})" for one in given.suppressed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the job and print the table."""
    options = parse(arguments)
    order = options.names or list(SITUATIONS)
    random.Random(options.seed).shuffle(order)
    wrong = 0
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(prefix="whyhang-quiet-") as scratch:
        lookout = Lookout(Path(scratch) / "job", order, interval=options.interval)
        for look in lookout.looks(random_moments(options.seed, options.moments, options.pause)):
            if options.keep is not None:
                keep(look, lookout.directory, options.keep)
            print("\n".join(rows(look)), flush=True)
            wrong += bool(look.wrong)
    print(f"\n{wrong} of {options.moments} looks saw a hang")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
