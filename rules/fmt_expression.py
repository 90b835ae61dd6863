"""Conditions in their usual spacing, one clause a line, comments kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r'(?P<blank>\s+)|(?P<comment>#[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/)'
    r"|(?P<word>[\w$.%]+)|(?P<operator>[=!<>]=|[<>])|(?P<mark>[()\[\],])"
)
_OPENING, _CLOSING = ("(", "["), (")", "]")
_CALLS = ("count", "share")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    starts_line: bool


@dataclass(slots=True)
class _Clause:
    """A part of a chain: comments on lines before it, its tokens, comments at its end."""

    before: list[str] = field(default_factory=list)
    tokens: list[_Token] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def format_condition(source: str, *, chain: bool) -> tuple[str, ...]:
    """The lines of a condition, or of a group (then ``chain`` is False): clauses are not parted.

    The text must be free of errors; what cannot be read is left as it is.
    """
    tokens = _tokens(source)
    if tokens is None:
        return tuple(line.rstrip() for line in source.strip("\n").split("\n"))
    word = _joint(tokens) if chain else ""
    clauses, rest = _clauses(tokens, word)
    lines: list[str] = []
    for number, clause in enumerate(clauses):
        lines.extend(clause.before)
        text = _joined(clause.tokens)
        start = f"{word} " if number else ""
        end = "".join(f"  {comment}" for comment in clause.after)
        lines.append(f"{start}{text}{end}")
    return (*lines, *rest)


def _tokens(source: str) -> list[_Token] | None:
    tokens: list[_Token] = []
    position, fresh = 0, False
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            return None
        kind, text = match.lastgroup or "", match[0]
        position = match.end()
        if kind == "blank":
            fresh = fresh or "\n" in text
            continue
        tokens.append(_Token(kind, text.rstrip() if kind == "comment" else text, fresh))
        fresh = False
    return tokens


def _joint(tokens: Sequence[_Token]) -> str:
    """The word that joins the outermost chain: ``or`` binds weaker than ``and``."""
    words = {token.text for token in _outermost(tokens)}
    return "or" if "or" in words else "and" if "and" in words else ""


def _outermost(tokens: Sequence[_Token]) -> Iterator[_Token]:
    depth = 0
    for token in tokens:
        depth += token.kind == "mark" and token.text in _OPENING
        if depth == 0 and token.kind == "word":
            yield token
        depth -= token.kind == "mark" and token.text in _CLOSING


def _clauses(tokens: Sequence[_Token], word: str) -> tuple[list[_Clause], list[str]]:
    """The clauses, and the comments after the last one."""
    joints = {id(token) for token in _outermost(tokens) if word and token.text == word}
    clauses = [_Clause()]
    waiting: list[_Token] = []
    for token in tokens:
        if token.kind == "comment":
            waiting.append(token)
        elif id(token) in joints:
            clauses.append(_Clause(before=_settle(waiting, clauses[-1])))
            waiting = []
        else:
            # A comment in the middle of a clause goes before it.
            clauses[-1].before.extend(comment.text for comment in waiting)
            waiting = []
            clauses[-1].tokens.append(token)
    return clauses, _settle(waiting, clauses[-1])


def _settle(comments: Sequence[_Token], clause: _Clause) -> list[str]:
    """Give a clause the comments on its last line; those on lines of their own are returned."""
    clause.after.extend(each.text for each in comments if not each.starts_line)
    return [each.text for each in comments if each.starts_line]


def _joined(tokens: Sequence[_Token]) -> str:
    parts: list[str] = []
    for token, before in zip(tokens, [None, *tokens], strict=False):
        if before is not None and _parted(before, token):
            parts.append(" ")
        parts.append(token.text)
    return "".join(parts)


def _parted(left: _Token, right: _Token) -> bool:
    """Whether a blank stands between two tokens."""
    if left.kind == "mark" and left.text in _OPENING:
        return False
    if right.kind == "mark" and right.text in (*_CLOSING, ","):
        return False
    return not (right.text == "(" and left.text in _CALLS)
