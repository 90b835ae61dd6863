"""What is odd about a regular expression: a glob would do, or it may take for ever."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

# Python's own parser of regular expressions; it has no public name.
_sre: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_MANY = 20
_ALPHABET = [chr(code) for code in range(1, 128)]


def as_globs(pattern: str) -> tuple[str, ...]:
    """The globs that match the same names; empty where only a regular expression can say it.

    A glob also matches each dotted suffix of a name, so what is tied to the name's beginning is
    no glob.
    """
    globs: list[str] = []
    for alternative in _alternatives(pattern):
        glob = _as_glob(alternative)
        if glob is None:
            return ()
        globs.append(glob)
    return tuple(globs)


def _alternatives(pattern: str) -> list[str]:
    if re.search(r"[()\[\]\\]", pattern.replace("\\.", "")):
        return [pattern]
    return pattern.split("|")


def _as_glob(pattern: str) -> str | None:
    plain = pattern.replace("\\.", "\0")
    if plain.startswith("^"):
        return None
    tied = plain.endswith("$")
    parts = plain.removesuffix("$").split(".*")
    if not all(re.fullmatch(r"[\w\0]*", part) for part in parts):
        return None
    body = "*".join(parts).strip("*").replace("\0", ".")
    if not body:
        return None
    return f"*{body}" + ("" if tied else "*")


def is_explosive(pattern: str) -> bool:
    """Whether a repetition inside a repetition can split the same text in ever more ways."""
    try:
        return any(map(_explodes, _repetitions(_sre.parse(pattern))))
    except (re.error, RecursionError, OverflowError):
        return False


def _repetitions(tokens: Any) -> Iterator[Any]:
    """The bodies of all unbounded repetitions, at any depth."""
    for op, value in tokens:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT") and int(value[1]) > _MANY:
            yield value[2]
        for inner in _inner(name, value):
            yield from _repetitions(inner)


def _inner(name: str, value: Any) -> Sequence[Any]:
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [value[2]]
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "BRANCH":
        return list(value[1])
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    return [value] if name == "ATOMIC_GROUP" else []


def _explodes(body: Any) -> bool:
    tokens = list(_flat(body))
    for number, (op, value) in enumerate(tokens):
        name = str(op)
        others = tokens[:number] + tokens[number + 1 :]
        if name in ("MAX_REPEAT", "MIN_REPEAT") and int(value[1]) > _MANY:
            mine = _first(value[2])
            # What must stand between two rounds, and cannot be part of one, keeps them apart.
            if not any(_is_separator(other, mine) for other in others):
                return True
    return False


def _flat(body: Any) -> Iterator[tuple[Any, Any]]:
    """The tokens of a body, groups opened."""
    for op, value in body:
        if str(op) == "SUBPATTERN":
            yield from _flat(value[3])
        else:
            yield op, value


def _is_separator(token: tuple[Any, Any], characters: frozenset[str]) -> bool:
    op, value = token
    name = str(op)
    if name in ("AT", "ASSERT", "ASSERT_NOT"):
        return False
    if name in ("MAX_REPEAT", "MIN_REPEAT") and int(value[0]) == 0:
        return False
    return not _first([token]) & characters


def _first(body: Any) -> frozenset[str]:
    """The characters that a body can begin with, as far as can be told."""
    found: set[str] = set()
    for op, value in body:
        name = str(op)
        if name == "LITERAL":
            return frozenset(found | {chr(value)})
        if name == "NOT_LITERAL":
            return frozenset(found | ({*_ALPHABET} - {chr(value)}))
        if name == "ANY":
            return frozenset(found | {*_ALPHABET})
        if name == "IN":
            return frozenset(found | _members(value))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            found |= _first(value[2])
            if int(value[0]) > 0:
                break
        elif name == "SUBPATTERN":
            found |= _first(value[3])
            break
        elif name == "BRANCH":
            found.update(*map(_first, value[1]))
            break
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            return frozenset(_ALPHABET)
    return frozenset(found)


def _members(items: Any) -> set[str]:
    members: set[str] = set()
    negated = False
    for op, value in items:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            members.add(chr(value))
        elif name == "RANGE":
            members.update(char for char in _ALPHABET if value[0] <= ord(char) <= value[1])
        elif name == "CATEGORY":
            members |= _category(str(value))
    return {*_ALPHABET} - members if negated else members


def _category(name: str) -> set[str]:
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}.get(name.rpartition("_")[2], "w")
    letter = letter.upper() if "_NOT_" in name else letter
    return {char for char in _ALPHABET if re.match("\\" + letter, char)}
