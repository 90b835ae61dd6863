"""Next steps by category: each has some, and names the machine that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from whyhang.engine.category_steps import Scene, category_steps
from whyhang.engine.judge import open_court, reach
from whyhang.engine.next_steps import first_process
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.verdict import CATEGORIES, Category, VerdictKind

Build = Callable[[Mapping[str, Any]], Incident]
EVERYWHERE = ("collective_wait", "barrier", "lock_deadlock", "init_rendezvous")
PACK = load_ruleset()


def steps(build: Build, category: Category, verdict: VerdictKind = "local_hang") -> list[str]:
    """Those of a rank that waits for data, called a hang of this category."""
    court = open_court(PACK, build({"trainers": {"*": "backward", 2: "data"}}))
    given = replace(reach(court), category=category, verdict=verdict)
    process = first_process(given, court.facts)
    assert process is not None
    nodes = given.suspects.nodes
    scene = Scene(verdict=given, facts=court.facts, process=process, nodes=nodes)
    return list(category_steps(scene))


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_says_what_to_do(category: Category, build_incident: Build) -> None:
    """There is a step, and one that is to be taken on a machine says on which."""
    told = steps(build_incident, category)
    assert told
    assert category in EVERYWHERE or any(" on node0" in step for step in told)


def test_an_open_verdict_sends_nobody_into_the_code(build_incident: Build) -> None:
    """Where nothing is decided only evidence that speaks for itself is worth a look."""
    assert steps(build_incident, "user_code", "inconclusive") == []
    assert steps(build_incident, "barrier", "inconclusive") == []
    assert steps(build_incident, "exited_rank", "inconclusive") != []


def test_a_place_comes_before_a_guess(build_incident: Build) -> None:
    """Without a process the nodes at fault tell where to look; without any, no machine is named."""
    court = open_court(PACK, build_incident({"trainers": {"*": "backward", 2: "data"}}))
    given = replace(reach(court), category="disk_io")
    scene = Scene(verdict=given, facts=court.facts, process=None, nodes=("gpu31",))
    assert next(category_steps(scene)).startswith("Look for the file system on gpu31: ")
    assert next(category_steps(replace(scene, nodes=()))).startswith("Look for the file system: ")


def test_what_a_freezer_holds_no_signal_wakes(build_incident: Build) -> None:
    """A rank that is frozen with its control group asks for another cure than a stopped one."""
    frozen = {"trainers": {"*": "backward", 2: {"stack": "backward", "wchan": "do_freezer_trap"}}}
    court = open_court(PACK, build_incident(frozen))
    given = reach(court)
    process = first_process(given, court.facts)
    scene = Scene(verdict=given, facts=court.facts, process=process, nodes=given.suspects.nodes)
    told = " ".join(category_steps(scene))
    assert given.category == "stopped_process"
    assert "cgroup.freeze" in told
    assert "CONT" not in told
    assert "CONT" in " ".join(steps(build_incident, "stopped_process"))
