"""The rules and suppressions that a test file names: do they exist?"""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.rules.findings import Finding
from whyhang.rules.ruleset import Rule, Ruleset, SuppressRule
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.test_cases import RuleTestFile

Entry = Rule | SuppressRule


def find_entry(ruleset: Ruleset, name: str) -> Entry | None:
    """The rule or suppression of a name; a pack's may be named without its prefix.

    A name that two packs share is found only with its prefix.
    """
    entries: tuple[Entry, ...] = (*ruleset.rules, *ruleset.suppress)
    exact = [entry for entry in entries if entry.id == name]
    bare = [entry for entry in entries if entry.id.endswith(f"/{name}")]
    if exact:
        return exact[0]
    return bare[0] if len(bare) == 1 else None


def unknown_names(file: RuleTestFile, ruleset: Ruleset) -> Iterator[Finding]:
    """A finding for each name that no rule has, or that cannot have the result (H501, H502)."""
    entries: tuple[Entry, ...] = (*ruleset.rules, *ruleset.suppress)
    ids = [entry.id for entry in entries]
    known = [*ids, *(id.rpartition("/")[2] for id in ids)]
    for test in file.tests:
        for expected in test.expect:
            for name in (expected.rule, expected.winner):
                if name is not None and find_entry(ruleset, name) is None:
                    yield Finding(
                        code="H501",
                        message=f"unknown rule or suppression `{name}`",
                        span=expected.span,
                        help=_help(name, ids, known),
                    )
            entry = None if expected.rule is None else find_entry(ruleset, expected.rule)
            if isinstance(entry, SuppressRule):
                if expected.result in (None, "fired"):
                    message = f"`{entry.id}` is a suppression: it never fires, it is `suppressed`"
                    yield Finding(code="H502", message=message, span=expected.span)
                if expected.suspects is not None:
                    message = f"`{entry.id}` is a suppression: it names no suspects"
                    yield Finding(code="H502", message=message, span=expected.span)
            if expected.winner is not None:
                winner = find_entry(ruleset, expected.winner)
                if isinstance(winner, SuppressRule):
                    message = f"`{winner.id}` is a suppression: a verdict comes from a rule"
                    yield Finding(code="H502", message=message, span=expected.span)


def _help(name: str, ids: list[str], known: list[str]) -> str:
    same = [id for id in ids if id.endswith(f"/{name}")]
    if len(same) > 1:
        return f"it is one of {', '.join(same)}"
    return did_you_mean(name, known) or "`whyhang config --resolved` lists all rules"
