"""Two sources that disagree about one rank: said, and nobody else is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.engine.test_comm_facts import incident as ras_incident
from tests.engine.test_comm_facts import reply as ras_reply
from tests.engine.test_links import WAITING
from whyhang.engine.contradictions import contradictions
from whyhang.engine.facts import Facts
from whyhang.engine.incidents import read_evidence
from whyhang.engine.positions import Positions
from whyhang.engine.world import World
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.stack import Thread

Build = Callable[[Mapping[str, Any]], Incident]
DATA = Path(__file__).parents[1] / "data" / "incidents"
PACK = load_ruleset()


def found(incident: Incident) -> tuple[str, ...]:
    """The contradictions of an incident."""
    return contradictions(Facts(World(incident), Positions(PACK.lists)))


def test_a_rank_that_ended_and_runs(build_incident: Build) -> None:
    """The log and the process table disagree; a rank that is really gone is no contradiction."""
    case = {
        "trainers": {"*": "backward", 1: {"stack": "backward", "state": "S"},
                     2: {"stack": "backward", "gone_after": 1}},
        "events": [{"kind": "rank_failed", "ranks": [1, 2]}],
    }  # fmt: skip
    assert found(build_incident(case)) == (
        "the log says that rank 1 ended, but a process of that rank runs",
    )


def test_a_rank_that_is_behind_and_waits() -> None:
    """The flight recorder misses a rank whose stack stands in a collective."""
    (told,) = found(read_evidence(DATA / "fr_behind"))
    assert "others wait for rank 2, but its stack waits in communication" in told
    assert found(read_evidence(DATA / "fr_alike")) == ()


def test_a_rank_that_ras_gave_up_and_that_was_read() -> None:
    """Its process may only be out of reach of the RAS network; one without a stack may be dead."""
    made = ras_incident(ras_reply("dead_ipv6"))
    thread = Thread(name="MainThread", stack=WAITING, tid=1)
    last = made.samples[0]
    read = tuple(replace(p, state="S", threads=(thread,)) for p in last.processes)
    seen = replace(made, samples=(replace(last, processes=read),))
    assert found(seen) == ("NCCL RAS gave rank 5 up as dead, but its stack was read",)
    assert found(made) == ()


def test_sources_that_agree_say_nothing(build_incident: Build) -> None:
    """Without a log line, RAS or dumps there is nothing to disagree with."""
    assert found(build_incident({"trainers": {"*": "backward"}})) == ()
    assert found(replace(build_incident({"trainers": {}}), samples=())) == ()
