"""``python -m tests.accuracy [PATH…]``: how often the built-in rules are right.

Exit status: 0, 1 where a floor does not hold, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.accuracy.answers import Question, Score, score
from tests.accuracy.invariance import breaches
from tests.accuracy.questions import find_questions
from tests.accuracy.table import Totals, markdown, misses
from whyhang.engine.judge import judge
from whyhang.rules.load import load_ruleset
from whyhang.schemas.errors import WhyhangError

CASES = Path(__file__).parents[1] / "data" / "cases"


def answer_all(questions: Iterable[Question]) -> Iterator[Score]:
    """Judge every question by the built-in rules."""
    ruleset = load_ruleset()
    for question in questions:
        try:
            given = judge(ruleset, question.load())
        except WhyhangError as error:
            yield Score(question=question, given=None, problem=str(error))
            continue
        yield score(question, given)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy", description="How often the built-in rules are right."
    )
    parser.add_argument(
        "paths", nargs="*", type=Path, help="incidents, case files or worlds (tests/data/cases)"
    )
    parser.add_argument("--min-verdict", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--min-exact", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--min-category", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--max-accused", type=int, metavar="COUNT")
    parser.add_argument(
        "--invariance",
        action="store_true",
        help="change what carries no meaning, and print the verdicts that change with it",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and what is wrong; 1 where a floor does not hold."""
    options = parse(arguments)
    questions = tuple(find_questions(options.paths or [CASES]))
    if options.invariance:
        return 1 if print_breaches(questions) else 0
    scores = tuple(answer_all(questions))
    if not scores:
        sys.stderr.write("no incident with a known answer was found\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in markdown(scores))
    missed = list(misses(scores))
    if missed:
        sys.stdout.write("\nNot wholly right:\n\n")
        sys.stdout.writelines(f"{line}\n" for line in missed)
    broken = list(broken_floors(Totals(scores), options))
    sys.stderr.writelines(f"{line}\n" for line in broken)
    return 1 if broken else 0


def print_breaches(questions: Sequence[Question]) -> int:
    """Print the verdicts that change with what carries no meaning; the number of incidents."""
    ruleset, broken = load_ruleset(), 0
    for question in questions:
        found = list(breaches(ruleset, question.load()))
        sys.stdout.writelines(f"{question.name}: {breach}\n" for breach in found)
        broken += bool(found)
    sys.stdout.write(f"{broken} of {len(questions)} incidents change their verdict\n")
    return broken


def broken_floors(totals: Totals, options: argparse.Namespace) -> Iterator[str]:
    """The floors that do not hold."""
    for name in ("verdict", "exact", "category"):
        found, floor = getattr(totals, name), getattr(options, f"min_{name}")
        if found < floor:
            yield f"{name}: {found:.1%} is below {floor:.1%}"
    if options.max_accused is not None and totals.accused > options.max_accused:
        yield f"false accusations: {totals.accused}, at most {options.max_accused} are tolerated"
    if totals.failed:
        yield f"could not be judged: {totals.failed}"


if __name__ == "__main__":
    raise SystemExit(main())
