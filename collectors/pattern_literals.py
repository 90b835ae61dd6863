"""What text a regex cannot match without, read off its source.

Only what the patterns of :mod:`whyhang.collectors.preset_patterns` are made of is understood: a
test holds every pattern against lines that it matches.
"""

from __future__ import annotations

from collections.abc import Iterator

_QUANTIFIERS = "*+?{"
_MIN_LENGTH = 2


def required_literal(pattern: str) -> str | None:
    """The longest text that stands in all that the pattern matches; None where none is known."""
    runs = [run for run in _runs(pattern) if len(run) >= _MIN_LENGTH]
    return max(runs, key=len, default=None)


def _runs(pattern: str) -> Iterator[str]:
    """The plain texts outside of groups, of classes and of what a quantifier may leave out."""
    run = ""
    at = 0
    while at < len(pattern):
        token = _token(pattern, at)
        at += len(token)
        optional = at < len(pattern) and pattern[at] in _QUANTIFIERS
        if token == "|":  # one of several: nothing is required
            return
        plain = _plain(token)
        if plain is None or optional:
            if run:
                yield run
            run = ""
        else:
            run += plain
    if run:
        yield run


def _token(pattern: str, at: int) -> str:
    if pattern[at] == "\\":
        return pattern[at : at + 2]
    if pattern[at] == "[":
        end = pattern.index("]", at + 2)
        while pattern[end - 1] == "\\" and pattern[end - 2] != "\\":
            end = pattern.index("]", end + 1)
        return pattern[at : end + 1]
    if pattern[at] == "(":
        inner = at + 1
        while pattern[inner] != ")":
            inner += len(_token(pattern, inner))
        return pattern[at : inner + 1]
    if pattern[at] == "{" and "}" in pattern[at:]:
        return pattern[at : pattern.index("}", at) + 1]
    return pattern[at]


def _plain(token: str) -> str | None:
    """The character that the token stands for, if it is always that one."""
    if len(token) == 1:
        return None if token in ".^$*+?|{}" else token
    if token[0] == "\\" and not token[1].isalnum():
        return token[1]
    return "\t" if token == "\\t" else None
