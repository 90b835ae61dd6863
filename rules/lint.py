"""All lints (H3xx): what is allowed, and yet probably not meant.

A lint is a warning, or a note where it only informs; it never makes a check fail by itself. The
one exception is a pack whose suppression has no end (H311). Lints run on files without errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from whyhang.rules.findings import Finding
from whyhang.rules.lint_groups import lint_blocking_all, lint_empty_groups, lint_negations
from whyhang.rules.lint_input import LintInput
from whyhang.rules.lint_logic import (
    lint_duplicates,
    lint_missing_suspects,
    lint_never_or_always,
    lint_overlaps,
)
from whyhang.rules.lint_names import lint_patterns, lint_regexes, lint_unused
from whyhang.rules.lint_sources import lint_disabled_sources
from whyhang.rules.lint_time import lint_unbounded, lint_windows

Lint = Callable[[LintInput], Iterator[Finding]]

LINTS: tuple[Lint, ...] = (
    lint_unused,
    lint_never_or_always,
    lint_duplicates,
    lint_empty_groups,
    lint_missing_suspects,
    lint_windows,
    lint_disabled_sources,
    lint_patterns,
    lint_overlaps,
    lint_negations,
    lint_unbounded,
    lint_regexes,
    lint_blocking_all,
)


def lint(given: LintInput) -> Iterator[Finding]:
    """The findings of all lints, except in what is not our own."""
    for one in LINTS:
        yield from (finding for finding in one(given) if given.is_own(finding.span))
