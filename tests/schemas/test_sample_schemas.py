"""The JSON Schemas of a sample's files agree with what is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.schemas.test_node_facts_codec import FULL
from tests.schemas.test_process_codec import PROCESS
from whyhang.schemas import node_facts
from whyhang.schemas.node_facts_codec import encode_node_facts
from whyhang.schemas.process import BlockedOn, Dump, IoCounters, OsThread, Process
from whyhang.schemas.process_codec import encode_process

RECORDED = sorted((Path(__file__).parents[1] / "data" / "incidents").iterdir())


def _schema(name: str) -> dict[str, Any]:
    return dict(json.loads((files("whyhang.schemas") / f"{name}.v1.json").read_text()))


def _keys(schema: Mapping[str, Any], place: str) -> set[str]:
    """The keys of the object at a place: of an array its items, of a map its values."""
    part: Any = schema
    for step in place.split("."):
        part = part["properties"][step] if step else part
        part = part.get("items", part)
        part = part if "properties" in part else part["additionalProperties"]
    return set(part["properties"])


def test_a_process_is_described() -> None:
    """Every line that we write follows the schema, which describes each of its keys."""
    schema = _schema("process")
    for process in (PROCESS, Process(pid=7, node="a")):
        jsonschema.validate(json.loads(encode_process(process)), schema)
    names = {field.name for field in fields(Process)} - {"gpu_index", "gpu_uuid"} | {"gpu"}
    assert _keys(schema, "") == names
    thread = json.loads(encode_process(PROCESS))["threads"][0]
    assert _keys(schema, "threads") == set(thread) | {"truncated"}
    assert _keys(schema, "threads.frames") == set(thread["frames"][0])


@pytest.mark.parametrize(
    ("place", "kind"),
    [("blocked_on", BlockedOn), ("dump", Dump), ("io", IoCounters), ("os_threads", OsThread)],
)
def test_the_parts_of_a_process_are_described(place: str, kind: type) -> None:
    """What stands inside of a line has a description of each key."""
    assert _keys(_schema("process"), place) == {field.name for field in fields(kind)}


def test_node_facts_are_described() -> None:
    """Every document that we write follows the schema."""
    schema = _schema("node_facts")
    for facts in (FULL, node_facts.NodeFacts()):
        jsonschema.validate(json.loads(encode_node_facts(facts)), schema)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("", node_facts.NodeFacts),
        ("gpus", node_facts.GpuFacts),
        ("pressure", node_facts.PressureFacts),
        ("disks", node_facts.DiskFacts),
        ("mounts", node_facts.MountFacts),
        ("shm", node_facts.ShmFacts),
        ("memory", node_facts.MemoryFacts),
        ("infiniband", node_facts.InfinibandFacts),
        ("tcp", node_facts.TcpFacts),
        ("kernel", node_facts.KernelLine),
    ],
)
def test_the_parts_of_node_facts_are_described(place: str, kind: type) -> None:
    """Each key that a node may tell has a description."""
    assert _keys(_schema("node_facts"), place) == {field.name for field in fields(kind)}


@pytest.mark.parametrize("directory", RECORDED, ids=lambda path: path.name)
def test_recorded_incidents_follow_the_schemas(directory: Path) -> None:
    """Incidents that earlier versions wrote are valid: what a schema says is not taken back."""
    jsonschema.validate(json.loads((directory / "incident.json").read_text()), _schema("incident"))
    process = jsonschema.Draft7Validator(_schema("process"))
    lines = [
        x for path in directory.glob("samples/*/*.jsonl") for x in path.read_text().split("\n")
    ]
    assert any(lines)
    for line in filter(None, lines):
        process.validate(json.loads(line))


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("process", {"pid": "7"}),
        ("process", {"pid": 7, "kind": "quantum"}),
        ("process", {"pid": 7, "dump": {"ok": False, "kind": "boredom"}}),
        ("node_facts", {"gpus": [{"index": "0"}]}),
        ("node_facts", {"tcp": [{"peer": "10.0.0.2:29500"}]}),
    ],
)
def test_wrong_values_are_refused(name: str, document: Mapping[str, Any]) -> None:
    """The schemas can fail: a wrong word or type is found, and a key that must be there."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, _schema(name))
