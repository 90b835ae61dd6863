"""What is read in logs as frameworks print them: all kinds of lines, prefixes, bars and decoys."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest
import yaml

from whyhang.collectors.log_pieces import detect_preset, read_progress
from whyhang.collectors.preset_family import Family
from whyhang.collectors.preset_patterns import FAMILIES
from whyhang.collectors.tail import Chunk
from whyhang.engine.log_source import LogSource
from whyhang.schemas.progress import LogLine

LOGS = Path(__file__).parents[1] / "data" / "logs"
CONTROLS = {"␍": b"\r", "␛": b"\x1b", "␈": b"\b", "␀": b"\0", "␦": b"\xff"}
KEYS = ("step", "total", "epoch", "loss", "step_time")
CASES: dict[str, dict[str, Any]] = {
    case["name"]: case
    for path in sorted(LOGS.glob("*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
}
WITH_PROGRESS = sorted(name for name, case in CASES.items() if case["preset"] is not None)


def log_of(case: dict[str, Any]) -> bytes:
    data: bytes = case["log"].encode()
    for shown, byte in CONTROLS.items():
        data = data.replace(shown.encode(), byte)
    return data


def event_of(line: LogLine) -> dict[str, object]:
    values = (line.step, line.total, line.epoch, line.loss, line.seconds_per_step)
    found = {
        key: pytest.approx(value) if isinstance(value, float) else value
        for key, value in zip(KEYS, values, strict=True)
        if value is not None
    }
    return {"event": line.kind, **found}


def without_place(event: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in event.items() if key not in ("line_no", "seg")}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_preset_is_found(name: str) -> None:
    """What a log is, is told by its lines; decoys choose nothing."""
    assert detect_preset([log_of(CASES[name])]) == CASES[name]["preset"]


@pytest.mark.parametrize("name", WITH_PROGRESS)
def test_events_and_their_places(name: str) -> None:
    """Every event with its line, its piece and its numbers, and nothing else."""
    case = CASES[name]
    read = read_progress([log_of(case)], case["preset"])
    found = [{"line_no": at.line_no, "seg": at.seg, **event_of(line)} for at, line in read]
    assert case["events"] == found


@pytest.mark.parametrize("name", WITH_PROGRESS)
@pytest.mark.parametrize("size", [7, 4096])
def test_a_log_that_grows_tells_the_same(name: str, size: int) -> None:
    """Followed as it is written, in pieces of any size, a log tells what it tells as a whole."""
    data = log_of(CASES[name])
    source = LogSource(CASES[name]["preset"], None, deque())
    found: list[dict[str, object]] = []
    held = b""
    for at in range(0, len(data), size):
        held += data[at : at + size]
        end = max(held.rfind(b"\n"), held.rfind(b"\r")) + 1
        whole, held = held[:end], held[end:]
        lines = source.progress(Chunk(source="log", data=whole), float(at))
        found += [event_of(line) for _, line in lines]
    assert [without_place(event) for event in CASES[name]["events"]] == found


def test_every_family_has_a_log() -> None:
    """A family that no log shows would be guesswork."""
    shown = {case["preset"] for case in CASES.values()}
    assert {family.name for family in FAMILIES} - shown == set()
    assert len(CASES) >= 50


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(family.name))
def test_lines_that_match_hold_their_literal(family: Family) -> None:
    """The text that is looked for before a pattern is tried never hides a line of it."""
    for case in CASES.values():
        for line in log_of(case).decode("utf-8", "replace").replace("\r", "\n").split("\n"):
            for pattern in family.patterns:
                assert pattern.regex.search(line) is None or pattern.literal in line
