"""Frame patterns: globs on dotted names in which ``*`` crosses dots, and ``/regexes/``.

A glob is matched against the whole name and each of its dotted suffixes, so that ``barrier``
means ``torch.distributed.distributed_c10d.barrier`` as well. Case counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """A test whether any of the patterns matches a name. Raises re.error for a bad regex."""
    compiled = _compile(tuple(patterns))
    if compiled is None:
        return _never
    search = compiled.search
    return lambda name: search(name) is not None


def is_regex(pattern: str) -> bool:
    """Whether the pattern is written between slashes."""
    return len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")


def _never(name: str) -> bool:
    return False


@lru_cache(maxsize=1024)
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    globs = [translate(pattern) for pattern in patterns if not is_regex(pattern)]
    parts = []
    if globs:
        parts.append(rf"(?:\A|(?<=\.))(?:{'|'.join(globs)})\Z")
    for pattern in patterns:
        if is_regex(pattern):
            re.compile(pattern[1:-1])  # alone, so that two halves cannot make a whole
            parts.append(f"(?:{pattern[1:-1]})")
    return re.compile("|".join(parts), re.DOTALL) if parts else None


def translate(glob: str) -> str:
    """The regex of a glob: ``*`` any text, ``?`` one character, ``[abc]``, ``[!abc]``."""
    parts: list[str] = []
    position = 0
    while position < len(glob):
        char = glob[position]
        position += 1
        if char == "*":
            # Stars in a row would only make the search slower.
            if not parts or parts[-1] != ".*":
                parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "[":
            end = _class_end(glob, position)
            if end < 0:
                parts.append(r"\[")
            else:
                parts.append(_character_class(glob[position:end]))
                position = end + 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)


def _class_end(glob: str, start: int) -> int:
    """Where the bracket closes, -1 if it does not; a bracket that comes first is a member."""
    first = start + 1 if glob[start : start + 1] == "!" else start
    return glob.find("]", first + 1)


def _character_class(members: str) -> str:
    negated = members.startswith("!")
    ranges = []
    body = members[1:] if negated else members
    position = 0
    while position < len(body):
        low = body[position]
        if body[position + 1 : position + 2] == "-" and position + 2 < len(body):
            high = body[position + 2]
            position += 3
            if low <= high:
                ranges.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            ranges.append(re.escape(low))
            position += 1
    if not ranges:
        # Only ranges that run backwards: no character at all, or any.
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(ranges)}]"
