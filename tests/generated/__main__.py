"""``python -m tests.generated``: how often the built-in rules are right on planted faults.

Exit status: 0, 1 where a floor does not hold, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.generated.kinds import KINDS
from tests.generated.score import Result, confusion, judge_all, share


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.generated",
        description="How often the built-in rules are right on planted faults.",
    )
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="may be repeated")
    parser.add_argument(
        "--count", type=int, default=100, metavar="N", help="incidents of each kind"
    )
    parser.add_argument("--start", type=int, default=0, metavar="N", help="number of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the incidents in DIR")
    parser.add_argument(
        "--min", type=float, default=0.0, metavar="SHARE", help="floor of each kind, such as 0.97"
    )
    parser.add_argument("--max-accused", type=int, metavar="N", help="floor for false accusations")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong and the table; 1 where a floor does not hold."""
    options = parse(arguments)
    results = []
    for one in judge_all(
        options.kind or list(KINDS),
        count=options.count,
        seed=options.seed,
        keep=options.keep,
        start=options.start,
    ):
        results.append(one)
        if not one.right:
            sys.stdout.write(f"- {one}\n")
    sys.stdout.writelines(f"{line}\n" for line in confusion(results))
    broken = list(broken_floors(results, options))
    sys.stderr.writelines(f"{line}\n" for line in broken)
    return 1 if broken else 0


def broken_floors(results: Sequence[Result], options: argparse.Namespace) -> Iterator[str]:
    """The floors that do not hold."""
    for kind in dict.fromkeys(one.kind for one in results):
        found = share([one for one in results if one.kind == kind])
        if found < options.min:
            yield f"{kind}: {found:.1%} is below {options.min:.1%}"
    accused = sum(one.grade == "accused" for one in results)
    if options.max_accused is not None and accused > options.max_accused:
        yield f"false accusations: {accused}, at most {options.max_accused} are tolerated"


if __name__ == "__main__":
    raise SystemExit(main())
