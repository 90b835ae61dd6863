"""Every verdict says what would have changed it, and what log and kernel lines ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.incidents import read_incident
from whyhang.engine.judge import judge
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import LogEvent, Progress

Build = Callable[[Mapping[str, Any]], Incident]
INCIDENTS = Path(__file__).parents[1] / "data" / "incidents"
INTRODUCTION = "Would change with "
EVERYBODY = {"ranks": 4, "trainers": {"*": "all_reduce"}}
ONE_OUTSIDE = {"ranks": 4, "trainers": {"*": "backward", 2: "user_sleep"}}


def changes(incident: Incident) -> list[str]:
    """What the verdict of the built-in rules says of its own change."""
    steps = judge(load_ruleset(), incident).next_steps
    return [step.removeprefix(INTRODUCTION) for step in steps if step.startswith(INTRODUCTION)]


def test_operation_counts_would_tell_desync_from_network(build_incident: Build) -> None:
    """Where all ranks wait and neither RAS nor a flight recorder was read."""
    (said,) = changes(build_incident(EVERYBODY))
    assert said.startswith("operation counts of all ranks, from NCCL RAS (not asked)")


def test_counts_that_were_read_are_not_asked_for() -> None:
    """Then only a later sample may tell more."""
    assert changes(read_incident(INCIDENTS / "ras_alike")) == [
        "a later sample in which a rank stands elsewhere"
    ]


@pytest.mark.parametrize("mode", ["native", "python"])
def test_native_frames_would_tell_a_lock(build_incident: Build, mode: str) -> None:
    """They are asked for where they were not read."""
    suspect = {"stack": "user_sleep", "mode": mode}
    incident = build_incident({"ranks": 4, "trainers": {"*": "backward", 2: suspect}})
    (said,) = changes(incident)
    if mode == "native":
        assert said == "a later sample in which rank 2 moved on"
    else:
        assert said.startswith("native frames of rank 2: they tell a lock")


def test_undecided_rules_that_would_outrank_the_verdict(build_incident: Build) -> None:
    """The reason, and the rules that it left undecided; not those that would not win."""
    incident = build_incident({**ONE_OUTSIDE, "trainers": {"*": "backward", 2: "data"}})
    said = changes(replace(incident, samples=incident.samples[:1]))
    assert any("undecided: the samples span less than 10 s" in one for one in said)
    assert all("pytorch/" in one for one in said)
    assert len(said) <= 3


def test_a_verdict_that_was_held_back(build_incident: Build) -> None:
    """The suppression and the rule that would hold without it; nothing where steps advance."""
    moving = {"stack": "user_sleep", "io": 5000}
    (said,) = changes(build_incident({"ranks": 4, "trainers": {"*": moving}}))
    assert said.startswith("the end of `pytorch/moving`")
    assert said.endswith("then `pytorch/global-code` holds")
    running = Progress(state="advancing", stalled_seconds=1.0)
    assert changes(replace(build_incident(EVERYBODY), progress=running)) == []


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("xid", "The driver reported a GPU fault on gpu05: `dmesg"),
        ("link_down", "A network link went down on gpu05: `ip -s link`"),
        ("oom_kill", "The kernel killed a process for want of memory on gpu05"),
        ("no_space", "No space was left on gpu05: `df -h`"),
    ],
)
def test_events_ask_for_a_look(build_incident: Build, kind: str, start: str) -> None:
    """Each kind once, with the node that it names."""
    event = LogEvent(kind=kind, line="", node="gpu05")
    incident = replace(build_incident(ONE_OUTSIDE), events=(event, event))
    steps = [step for step in judge(load_ruleset(), incident).next_steps if step.startswith(start)]
    assert len(steps) == 1
