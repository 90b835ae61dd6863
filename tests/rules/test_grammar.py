"""The grammar itself."""

from __future__ import annotations

from whyhang.rules.grammar import KINDS, build_parser, keywords, parser


def test_no_two_terminals_collide() -> None:
    """The strict build finds no terminals that match the same text and no conflict."""
    build_parser(strict=True)


def test_the_parser_is_built_once() -> None:
    """Building takes half a second: it happens once a process."""
    assert parser() is parser()


def test_keywords_are_the_words_of_the_language() -> None:
    """Names of definitions must not be any of these."""
    assert {"and", "or", "not", "any", "is", "has", "except", *KINDS} <= keywords()
    assert "log" not in keywords()
