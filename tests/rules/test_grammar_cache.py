"""The parser's tables between runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from lark import Lark, Token, Tree

from whyhang.rules.grammar import build_parser, grammar_text
from whyhang.rules.grammar_cache import cache_path, cached_parser


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


class Builds:
    """Builds parsers and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Lark:
        self.count += 1
        return build_parser()


def shown(parser: Lark) -> Tree[Token]:
    """The tree of a condition."""
    return parser.parse("log.slow and any rank is (top in x)", start="expr")


def cache_file() -> Path:
    """Where the tables are kept now."""
    path = cache_path(grammar_text())
    assert path is not None
    return path


def test_the_second_run_builds_nothing(home: Path) -> None:
    """The tables are read back, and parse as those that were built do."""
    build = Builds()
    first, second = (cached_parser(grammar_text(), build) for _ in range(2))
    assert build.count == 1
    assert shown(first) == shown(second)
    (file,) = (home / "whyhang").iterdir()
    assert file == cache_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_another_grammar_has_another_file(home: Path) -> None:
    """A new release never reads the tables of an old one."""
    assert cache_path(grammar_text() + "\n") != cache_path(grammar_text())


@pytest.mark.parametrize(
    "damage", ["cut", "changed", "empty", "open to all", "a link", "a directory"]
)
def test_a_file_that_cannot_be_trusted_is_not_used(home: Path, damage: str) -> None:
    """Damaged tables, and those that somebody else could have written, are built again."""
    build = Builds()
    cached_parser(grammar_text(), build)
    file = cache_file()
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-10])
    elif damage == "changed":
        file.write_bytes(data[:200] + b"x" + data[201:])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "open to all":
        file.chmod(0o666)
    else:
        moved = file.rename(home / "elsewhere")
        file.symlink_to(moved) if damage == "a link" else file.mkdir()
    assert shown(cached_parser(grammar_text(), build))
    assert build.count == 2


def test_no_place_to_write_is_no_trouble(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache directory that is a file, or none at all, costs time only; no rest is left."""
    (home / "whyhang").write_text("")
    build = Builds()
    assert shown(cached_parser(grammar_text(), build))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", os.devnull)
    assert shown(cached_parser(grammar_text(), build))
    assert build.count == 2
    assert [path.name for path in home.iterdir()] == ["whyhang"]
