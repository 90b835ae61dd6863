"""The generated tables of ``docs/rules.md`` that say which keys a file may have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from whyhang.schemas.config import Config

HANG = "hang.v1.json"
TESTS = "hang_test.v1.json"
_DESCRIPTIONS = {"id": "Names it in reports; `pack/id` names an included one"}
_FORMS = {"duration": "a duration", "durationOrAuto": "`auto` or a duration", "size": "a size"}
_UNITS = (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001))
SETTINGS = ("job", "progress", "detect", "collect", "topology", "on_hang", "store", "report")


def setting_rows() -> Iterator[tuple[str, str]]:
    """The settings of hang.yaml: `section.key` and what it means."""
    sections = _schema(HANG)["properties"]
    defaults = asdict(Config())
    for name in SETTINGS:
        yield name, str(sections[name]["description"]).rstrip(".")
        for key, words in _rows(sections[name], f"{name}."):
            value = defaults[name].get(key.partition(".")[2])
            yield key, words + (f"; by default `{_default(key, value)}`" if value else "")


def rule_rows() -> Iterator[tuple[str, str]]:
    """The keys of a rule."""
    yield from _rows(_schema(HANG)["properties"]["rules"]["items"], deep=False)


def test_rows() -> Iterator[tuple[str, str]]:
    """The keys of a test."""
    yield from _rows(_schema(TESTS)["definitions"]["test"])


def fact_rows() -> Iterator[tuple[str, str]]:
    """What a test may say of a rank."""
    # Not deeper: a child has the facts of a rank.
    yield from _rows(_schema(TESTS)["definitions"]["rank"], deep=False)


def expectation_rows() -> Iterator[tuple[str, str]]:
    """What a test may expect."""
    yield from _rows(_schema(TESTS)["definitions"]["expectation"])


def _rows(
    schema: Mapping[str, Any], prefix: str = "", *, deep: bool = True
) -> Iterator[tuple[str, str]]:
    for key, part in schema.get("properties", {}).items():
        name = prefix + key
        words = str(part.get("description") or _DESCRIPTIONS[key]).rstrip(".")
        forms = _FORMS.get(part.get("$ref", "").rpartition("/")[2].partition("_or_null")[0], "")
        forms = forms or ", ".join(f"`{value}`" for value in part.get("enum", ()))
        yield name, words + (f" ({forms})" if forms else "")
        if deep:
            yield from _rows(part, f"{name}.")
            yield from _rows(part.get("items", {}), f"{name}[].")


def _default(key: str, value: object) -> str:
    """A default as one writes it in the file."""
    if isinstance(value, float):
        unit, seconds = next(each for each in _UNITS if value % each[1] == 0)
        return f"{value / seconds:g}{unit}"
    if key == "store.max_size" and isinstance(value, int):
        return f"{value / 1e9:g}GB"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value)


@cache
def _schema(name: str) -> Mapping[str, Any]:
    text = (files("whyhang.schemas") / name).read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema
