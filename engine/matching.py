"""Frames and texts against the lists and patterns of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from whyhang.engine.facts import FactValue
from whyhang.engine.positions import Positions
from whyhang.rules import ast
from whyhang.rules.patterns import matcher
from whyhang.rules.ruleset import FrameList
from whyhang.schemas.frame import Frame
from whyhang.schemas.stack import Stack


def is_listed(names: FrameList, positions: Positions) -> Callable[[FactValue], bool]:
    """A test for ``value in LIST``: positions by what claims them, texts by the globs."""

    def test(value: FactValue) -> bool:
        if isinstance(value, Frame):
            return names.name in positions.claims(value)
        return any(fnmatchcase(str(value), pattern) for pattern in names.patterns)

    return test


def is_one_of(values: tuple[str, ...]) -> Callable[[FactValue], bool]:
    """A test for ``value in ["a", "b"]``."""

    def test(value: FactValue) -> bool:
        if isinstance(value, Frame):
            return frame_matches(values, value)
        return str(value) in values

    return test


def matching_frames(expr: ast.Has, value: FactValue, positions: Positions) -> Iterator[Frame]:
    """The frames that make ``stack has pattern`` true, innermost first."""
    frames = value.python if isinstance(value, Stack) else value
    assert isinstance(frames, tuple)
    pattern = expr.pattern
    if isinstance(pattern, ast.ListRef):
        return (frame for frame in frames if pattern.name in positions.claims(frame))
    text = f"/{pattern.pattern}/" if isinstance(pattern, ast.Regex) else pattern.pattern
    return (frame for frame in frames if frame_matches((text,), frame))


def frame_matches(patterns: tuple[str, ...], frame: Frame) -> bool:
    """Whether a frame, by its bare or its qualified name, matches any of the patterns."""
    match = _matcher(patterns)
    return match(frame.id) or match(frame.qualified_id)


@lru_cache(maxsize=256)
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    return matcher(patterns)
