"""Tests beside a rule, as its ``tests:``, seen as if they stood in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from whyhang.rules.document import Document, Path

# What an expectation says of a rule: of the one that the tests stand beside, if it names none.
_OF_A_RULE = ("result", "because", "suspects")
_OF_THE_VERDICT = ("rule", "verdict", "category", "confidence", "winner", "message", "none")


def is_rule_file(document: Document) -> bool:
    """Whether it is a ``hang.yaml`` or a pack rather than a test file."""
    return isinstance(document.data, dict) and isinstance(document.data.get("rules"), list)


def gather(document: Document, rules: str) -> Document:
    """The tests of all rules of a rule file as a test file; ``rules`` is the file's own name."""
    assert isinstance(document.data, dict)
    moved = replace(document, places={}, keys={}, texts={}, findings=[])
    tests: list[object] = []
    for owner, path, test in _tests(document):
        _move(document, moved, path, ("tests", len(tests)))
        tests.append(_about(owner, test, moved, len(tests)))
    moved.data = {"rules": rules, "tests": tests}
    root = document.places.get((), None)
    for path, text in ((("rules",), rules), ((), "")):
        if root is not None:
            moved.places[path] = replace(root, exact=False)
        moved.texts[path] = text
    return moved


def _tests(document: Document) -> Iterator[tuple[str, Path, object]]:
    assert isinstance(document.data, dict)
    for number, rule in enumerate(document.data["rules"]):
        found = rule.get("tests") if isinstance(rule, dict) else None
        for position, test in enumerate(found if isinstance(found, list) else []):
            yield str(rule.get("id", "")), ("rules", number, "tests", position), test


def _move(source: Document, target: Document, old: Path, new: Path) -> None:
    """Let all below ``old`` stand at ``new``; the places in the file stay what they are."""
    size = len(old)
    for path, place in source.places.items():
        if path[:size] == old:
            target.places[new + path[size:]] = place
    for path, span in source.keys.items():
        if path[:size] == old:
            target.keys[new + path[size:]] = span
    for path, text in source.texts.items():
        if path[:size] == old:
            target.texts[new + path[size:]] = text


def _about(owner: str, test: object, document: Document, number: int) -> object:
    """The test with its rule's name in every expectation that is about a rule and names none."""
    expected = test.get("expect") if isinstance(test, dict) else None
    if not isinstance(expected, list):
        return test
    filled: list[Any] = []
    for position, entry in enumerate(expected):
        if isinstance(entry, dict) and _needs_rule(entry):
            path: Path = ("tests", number, "expect", position)
            named = (*path, "rule")
            document.places[named], document.texts[named] = document.places[path], owner
            entry = {**entry, "rule": owner}
        filled.append(entry)
    assert isinstance(test, dict)
    return {**test, "expect": filled}


def _needs_rule(entry: Mapping[str, object]) -> bool:
    return bool(entry.keys() & set(_OF_A_RULE)) and not entry.keys() & set(_OF_THE_VERDICT)
