"""How findings about names and types are put."""

from __future__ import annotations

from collections.abc import Mapping

from whyhang.rules import ast
from whyhang.rules.fields import GROUPS_IN_SCOPE, FieldInfo, FieldType, Scope

TYPE_WORDS: Mapping[FieldType, str] = {
    "bool": "a yes/no question",
    "int": "a number",
    "num": "a number",
    "percent": "a percentage",
    "duration": "a duration",
    "str": "text",
    "frame": "a frame",
    "frames": "a stack of frames",
}
EXAMPLES: Mapping[FieldType, str] = {
    "percent": "write a percentage such as 90%",
    "duration": "write a duration such as 5m",
    "int": "write a number such as 3",
    "num": "write a number such as 3",
    "str": 'write text in double quotes, such as "D"',
}
PLURAL: Mapping[ast.Kind, str] = {
    "rank": "ranks",
    "node": "nodes",
    "process": "processes",
    "thread": "threads",
    "child": "children",
}


def elsewhere(name: str, scopes: tuple[Scope, ...], scope: Scope) -> str:
    """A name is asked of something that it is not about."""
    here = "the whole job" if scope == "job" else f"one {scope}"
    return f"`{name}` is about {_one_of(scopes)}, but is asked of {here}"


def _one_of(scopes: tuple[Scope, ...]) -> str:
    words = [scope for scope in scopes if scope != "job"]
    some = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"the whole job or one {some}" if "job" in scopes else f"one {some}"


def whose(name: str, scopes: tuple[Scope, ...], scope: Scope, *, question: bool) -> str:
    """How to ask it of one rank, process or thread instead."""
    for kind in GROUPS_IN_SCOPE[scope]:
        if kind in scopes:
            return f"say whose: `any {kind} is {name if question else f'({name} …)'}`"
    return ""


def question(info: FieldInfo) -> str:
    if info.type == "frame":
        return f"write `{info.name} in LIST`"
    if info.type == "frames":
        return f"write `{info.name} has LIST`"
    return f"compare it, or write `{info.name} is known`"


def no_group(kind: ast.Kind, scope: Scope) -> str:
    here = "the whole job" if scope == "job" else f"one {scope}"
    return f"`{PLURAL[kind]}` cannot be asked about in a condition about {here}"


def which_group(kind: ast.Kind) -> str:
    if kind == "child":
        return "`children` are those of one rank: `any rank is (any child is …)`"
    return ""
