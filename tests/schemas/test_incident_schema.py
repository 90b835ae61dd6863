"""The JSON Schema of the incident index agrees with what is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from whyhang.schemas.incident import Incident
from whyhang.schemas.incident_codec import encode_index

SCHEMA = json.loads((files("whyhang.schemas") / "incident.v1.json").read_text())
Build = Callable[[Mapping[str, Any]], Incident]


@pytest.mark.parametrize(
    "case",
    [
        {"trainers": {"*": "backward", 2: "data"}},
        {"trainers": {"*": {"unread": "no rights"}}},
        {"samples": 0, "trigger": "exit", "node": {"status": "not_collected"}},
        {"log": {"state": "unknown", "per_rank_step": {3: 7}}},
    ],
)
def test_what_is_written_is_valid(case: Mapping[str, Any], build_incident: Build) -> None:
    """Every index that we write follows the schema, and names no key that it does not describe."""
    index = json.loads(encode_index(build_incident(case)))
    jsonschema.validate(index, SCHEMA)
    assert set(index) == set(SCHEMA["properties"])
    assert set(index["progress"]) == set(SCHEMA["properties"]["progress"]["properties"])
    assert set(index["nodes"][0]) == set(SCHEMA["properties"]["nodes"]["items"]["properties"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "other/1"), ("trigger", "boredom"), ("world_size", "four"), ("print_id", "12")],
)
def test_wrong_values_are_refused(key: str, value: object, build_incident: Build) -> None:
    """The schema can fail: a wrong word or type is found."""
    index = json.loads(encode_index(build_incident({"trainers": {"*": "backward"}})))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**index, key: value}, SCHEMA)
