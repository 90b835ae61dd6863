"""The parser that lark makes of ``grammar.lark``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from lark import Lark

from whyhang.rules.ast import Kind
from whyhang.rules.grammar_cache import cached_parser

Start = Literal["expr", "group"]
STARTS: tuple[Start, ...] = ("expr", "group")

# The words for groups, and the kind each stands for.
KINDS: Mapping[str, Kind] = {
    "ranks": "rank",
    "rank": "rank",
    "nodes": "node",
    "node": "node",
    "processes": "process",
    "process": "process",
    "threads": "thread",
    "thread": "thread",
    "children": "child",
    "child": "child",
}


@cache
def grammar_text() -> str:
    """The grammar's source."""
    return (files("whyhang.rules") / "grammar.lark").read_text(encoding="utf-8")


@cache
def parser() -> Lark:
    """The parser for both entry points, once a process: from the user's cache, else built."""
    return cached_parser(grammar_text(), build_parser)


def build_parser(*, strict: bool = False) -> Lark:
    """A new parser; ``strict`` refuses terminals that collide and needs ``interegular``."""
    return Lark(
        grammar_text(),
        parser="lalr",
        start=list(STARTS),
        propagate_positions=True,
        maybe_placeholders=False,
        strict=strict,
    )


@cache
def keywords() -> frozenset[str]:
    """The words that the grammar keeps for itself."""
    return frozenset(
        terminal.pattern.value
        for terminal in parser().terminals
        if terminal.pattern.value.isalpha()
    )
