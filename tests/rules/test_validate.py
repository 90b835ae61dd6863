"""The shape of hang.yaml, and the schema that editors use."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft7Validator

from whyhang.rules.document import read_document
from whyhang.rules.validate import schema, validate
from whyhang.schemas import config
from whyhang.schemas.verdict import CATEGORIES, CONFIDENCES, VERDICTS
from whyhang.schemas.words import PHASES, PROCESS_KINDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("detect: {}", ["1:1 H014 missing key `version` in the file"]),
        ("version: 2", ["1:10 H010 '2' is not 1"]),
        ("version: 1\nrulez: []", ["2:1 H011 unknown key `rulez`; did you mean `rules`?"]),
        ("version: 1\nqqq: []", ["2:1 H011 unknown key `qqq`"]),
        (
            "version: 1\nrules:\n  - {wehn: a}",
            [
                "3:5 H014 missing key `id` in `rules`",
                "3:6 H011 unknown key `wehn`; did you mean `when`?",
            ],
        ),
        ("version: 1\ndetect: {mode: advancd}", ["2:16 H010 'advancd' is not one of"]),
        ("version: 1\ncollect: {kinds: [trainr]}", ["2:19 H010 'trainr' is not one of"]),
        ("version: 1\ncollect: {timeout: 20}", ["2:20 H010 `20` is not a duration such as"]),
        ("version: 1\ndetect: {stall: soon}", ["2:17 H010 `soon` is not `auto` or a duration"]),
        ("version: 1\nstore: {max_size: 5XB}", ["2:19 H010 `5XB` is not a size such as 5GB"]),
        ("version: 1\nrules: {a: b}", ["2:8 H010 `{…}` is not a list"]),
        ("version: 1\nrules:\n  - {id: a, when: true}", ["3:19 H010 `true` is not a condition"]),
        ("version: 1\nrules:\n  - {id: a, when: }", ["3:19 H010 `when` is empty"]),
        ("version: 1\nlists: {a-b: []}", ["2:9 H010 `a-b` is not a name of letters"]),
        ("version: 1\nvars: {A: 1}", ["2:8 H010 `A` is not a name of small letters"]),
        ("version: 1\ntopology: {tensor: 0}", ["2:20 H010 `0` is less than 1"]),
        ("version: 1\njob: {id: true}", ["2:11 H010 `true` is not text"]),
        ("- a", ["1:1 H010 `[…]` is not a mapping of keys"]),
        ("", ["1:1 H010 the file is empty"]),
    ],
)
def test_each_fault_has_its_place_and_words(text: str, expected: list[str]) -> None:
    """Unknown keys are shown at the key, values at the value."""
    found = sorted(
        f"{one.span.line}:{one.span.column} {one.code} {one.message}"
        for one in validate(read_document(text, "f"))
    )
    assert len(found) == len(expected)
    for message, words in zip(found, expected, strict=True):
        assert message.startswith(words)


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nrules:\nlists:\n",
        "version: 1\nlists: {a: [x, 1], b: {patterns: [x], why: y}, c: {append: [x]}}",
        "version: 1\ninclude: ./base.yaml",
        "version: 1\njob: {id: 1234}",
        "version: 1\nprogress: {log: a.log, pattern: null, checkpoint: {max_age: 6h}}",
        "version: 1\nsuppress: [{id: a, when: b, category: compile}]",
    ],
)
def test_short_forms_pass(text: str) -> None:
    """Empty sections, single texts for lists, numbers for texts."""
    assert list(validate(read_document(text, "f"))) == []


def test_the_schema_is_one_and_strict_everywhere() -> None:
    """Draft 7, no alternatives, no object that takes any key, a description for each property."""
    Draft7Validator.check_schema(schema())

    def look(node: object, path: str) -> None:
        if isinstance(node, list):
            for number, part in enumerate(node):
                look(part, f"{path}/{number}")
        if not isinstance(node, dict):
            return
        assert not {"oneOf", "anyOf", "allOf"} & node.keys(), path
        types = node.get("type", ())
        if "object" in ([types] if isinstance(types, str) else types):
            assert "additionalProperties" in node, path
        for name, part in node.items():
            look(part, f"{path}/{name}")
            if name == "properties":
                for key, value in part.items():
                    assert "description" in value or "$ref" in value, f"{path}/{key}"

    look(schema(), "")


def test_the_schema_knows_all_that_the_types_know() -> None:
    """Closed sets and sections stand in the schema as they do in the types."""
    properties = schema()["properties"]
    rule = properties["rules"]["items"]["properties"]
    assert tuple(rule["category"]["enum"]) == CATEGORIES
    assert tuple(rule["verdict"]["enum"]) == VERDICTS
    assert tuple(rule["confidence"]["enum"]) == CONFIDENCES
    assert tuple(properties["collect"]["properties"]["kinds"]["items"]["enum"]) == PROCESS_KINDS
    assert tuple(properties["detect"]["properties"]["phases"]["properties"]) == PHASES
    sections: dict[str, type[Any]] = {
        "job": config.JobConfig,
        "progress": config.ProgressConfig,
        "detect": config.DetectConfig,
        "collect": config.CollectConfig,
        "store": config.StoreConfig,
    }
    for name, type_ in sections.items():
        assert set(properties[name]["properties"]) == {field.name for field in fields(type_)}
    keys = "version pack job include vars lists defs sets ignore suppress rules progress detect"
    keys += " collect topology on_hang store report"
    assert set(properties) == set(keys.split())
