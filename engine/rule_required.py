"""What every rule under test must be expected to do somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.rule_tests import Suite
from whyhang.rules.ruleset import SuppressRule
from whyhang.rules.test_cases import Result
from whyhang.rules.test_names import Entry, find_entry

OF_A_RULE: tuple[Result, ...] = ("fired", "not")
OF_A_SUPPRESSION: tuple[Result, ...] = ("suppressed", "not")


def untested(suite: Suite, *more: Result) -> Iterator[str]:
    """The own rules and suppressions that no test expects to hold, or not to.

    ``more`` are results that rules must be expected to have besides.
    """
    found = expected_results(suite)
    entries: tuple[Entry, ...] = (*suite.ruleset.rules, *suite.ruleset.suppress)
    for entry in entries:
        if entry.span.file not in suite.own:
            continue
        what = "suppression" if isinstance(entry, SuppressRule) else "rule"
        needed = OF_A_SUPPRESSION if isinstance(entry, SuppressRule) else (*OF_A_RULE, *more)
        for result in needed:
            if result not in found.get(entry.id, ()):
                yield f"{entry.span}: no test expects {what} `{entry.id}` to be `{result}`"


def expected_results(suite: Suite) -> dict[str, set[str]]:
    """For each rule and suppression what tests expect of it, by id; `todo` does not count."""
    found: dict[str, set[str]] = {}
    for test in suite.file.tests:
        for expected in test.expect if not test.todo else ():
            if expected.rule is not None:
                entry = find_entry(suite.ruleset, expected.rule)
                if entry is not None:
                    found.setdefault(entry.id, set()).add(expected.result or "fired")
            if expected.winner is not None:
                entry = find_entry(suite.ruleset, expected.winner)
                if entry is not None:
                    found.setdefault(entry.id, set()).add("fired")
    return found
