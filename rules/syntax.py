"""Syntax errors in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whyhang.rules.findings import Finding
from whyhang.rules.grammar import KINDS, parser
from whyhang.rules.place import Place

_WORDS = {
    "CMP": "a comparison such as ==",
    "DURATION": "a duration such as 5m",
    "FLOAT": "a number",
    "INT": "a number",
    "PATH": "a name",
    "PERCENT": "a percentage such as 90%",
    "REGEX": "a pattern such as /nfs|rpc/",
    "STRING": "text in double quotes",
    "VAR": "$variable",
    "$END": "the end",
}
_ANY_KIND = "a group such as ranks"

# What people write who come from other languages.
_TYPOS = {
    "&": "write `and`",
    "|": "write `or`",
    "=": "write `==` to compare",
    "!": "write `not`",
    "'": "write text in double quotes",
    "`": "write text in double quotes",
    '"': "close the text with a double quote on the same line",
    "/": "close the pattern with a slash on the same line",
    "*": "there is no arithmetic; patterns stand in double quotes",
    "+": "there is no arithmetic",
    "-": "there is no arithmetic, and names have no dashes",
    "$": "a variable's name begins with a small letter",
    "{": "lists stand in square brackets; there are no templates in conditions",
    "%": "a percentage is a number followed by %, such as 90%",
    ".": "a name is made of words joined by single dots",
}


def syntax_finding(error: UnexpectedInput, text: str, place: Place) -> Finding:
    """The finding for what the parser did not understand."""
    if isinstance(error, UnexpectedToken):
        return _unexpected_token(error, text, place)
    start = min(error.pos_in_stream or 0, len(text))
    char = text[start : start + 1]
    help = _TYPOS.get(char, "")
    if not help and isinstance(error, UnexpectedCharacters):
        help = "expected " + ", ".join(expected_words(error.allowed or ()))
    return Finding(
        code="H101",
        message=f"unexpected `{char}`",
        span=place.span(text, start, start + 1),
        help=help,
    )


def _unexpected_token(error: UnexpectedToken, text: str, place: Place) -> Finding:
    token = error.token
    help = "expected " + ", ".join(expected_words(error.accepts or error.expected))
    if token.type == "$END":
        end = len(text.rstrip())
        message = "the condition ends too early" if end else "an empty condition"
        return Finding(
            code="H101", message=message, span=place.span(text, max(end - 1, 0), end), help=help
        )
    start = token.start_pos or 0
    return Finding(
        code="H101",
        message=f"unexpected `{token}`",
        span=place.span(text, start, start + len(token)),
        help=help,
    )


def expected_words(terminals: Iterable[str]) -> list[str]:
    """The terminals as people know them, sorted, the kinds of groups as one."""
    words = set(_words(terminals))
    if words >= KINDS.keys():
        words = words - KINDS.keys() | {_ANY_KIND}
    return sorted(words)


def _words(terminals: Iterable[str]) -> Iterator[str]:
    for name in terminals:
        if name in _WORDS:
            yield _WORDS[name]
        else:
            yield parser().get_terminal(name).pattern.value
