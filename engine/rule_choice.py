"""``-k EXPR``: which tests are chosen by their names."""

from __future__ import annotations

import re
from collections.abc import Callable

_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_NOT = re.compile(r"not\s+", re.IGNORECASE)


def chooser(expression: str) -> Callable[[str], bool]:
    """A test on names: texts that a name contains, joined by ``and``, ``or`` and ``not``.

    ``or`` binds weaker than ``and``; case does not count.
    """
    alternatives = [_AND.split(part) for part in _OR.split(expression.strip())]

    def chosen(name: str) -> bool:
        return any(all(_holds(term, name) for term in terms) for terms in alternatives)

    return chosen


def _holds(term: str, name: str) -> bool:
    text = term.strip()
    negated = False
    while (match := _NOT.match(text)) is not None:
        negated = not negated
        text = text[match.end() :]
    return (text.lower() in name.lower()) is not negated
