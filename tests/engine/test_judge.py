"""The built-in pack on small worlds: who is named, who must not be, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from whyhang.engine.judge import best, judge
from whyhang.rules.ast import Ref
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Rule, Ruleset
from whyhang.schemas.evidence import Span
from whyhang.schemas.incident import Incident
from whyhang.schemas.stack import Stack, Thread

CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
Build = Callable[[Mapping[str, Any]], Incident]


@pytest.fixture(scope="module")
def pack() -> Ruleset:
    """The built-in pack."""
    return load_ruleset()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_verdict(case: Mapping[str, Any], pack: Ruleset, build_incident: Build) -> None:
    """Each world gets the verdict, the suspects and the category that it expects."""
    expect = case["expect"]
    verdict = judge(pack, build_incident(case))
    found = {
        "verdict": verdict.verdict,
        "suspects": str(verdict.suspects.ranks),
        "category": verdict.category,
        "confidence": verdict.confidence,
        "rule": verdict.rule,
        "positions": [[p.kind, p.frame] for p in verdict.suspects.positions],
    }
    headline = expect.get("headline", "")
    assert headline in verdict.headline
    wanted = {key: value for key, value in expect.items() if key != "headline"}
    assert {key: found[key] for key in wanted} == wanted


def test_judging_is_pure(pack: Ruleset, build_incident: Build) -> None:
    """The same evidence and rules give an equal verdict, every time."""
    assert judge(pack, build_incident(CASES[0])) == judge(load_ruleset(), build_incident(CASES[0]))


def test_world_size_changes_nothing(pack: Ruleset, build_incident: Build) -> None:
    """A thousand ranks are judged as four are."""
    case = {**CASES[0], "ranks": 1000}
    verdict = judge(pack, build_incident(case))
    assert (verdict.verdict, str(verdict.suspects.ranks)) == ("local_hang", "2")


def test_missing_evidence_is_named(pack: Ruleset, build_incident: Build) -> None:
    """An inconclusive verdict lists the ranks to read first and the rules that wait for them."""
    case = {"trainers": {"*": "backward", 2: {"unread": "py-spy: permission denied"}}}
    verdict = judge(pack, build_incident(case))
    assert [(str(n.ranks), n.reason) for n in verdict.not_seen] == [
        ("2", "py-spy: permission denied")
    ]
    assert any("permission denied" in why for u in verdict.undecided for why in u.because)
    assert "read these first: rank 2" in verdict.headline


def test_a_dump_without_frames_was_not_read(pack: Ruleset, build_incident: Build) -> None:
    """Where the thread that matters shows no frame, its rank is neither here nor there."""
    incident = build_incident({"trainers": {"*": "backward"}})
    blank = (Thread(name="MainThread", stack=Stack(())),)
    samples = tuple(
        replace(
            sample,
            processes=tuple(
                replace(process, threads=blank) if process.rank == 2 else process
                for process in sample.processes
            ),
        )
        for sample in incident.samples
    )
    verdict = judge(pack, replace(incident, samples=samples))
    assert (verdict.verdict, str(verdict.suspects.ranks)) == ("inconclusive", "")
    assert "read these first: rank 2" in verdict.headline


def test_precedence_of_rules() -> None:
    """A rule that refines another outranks it, then priority, then order."""

    def rule(id_: str, **more: Any) -> Rule:
        when = Ref(name="log.stalled", text="log.stalled", span=Span())
        return Rule(id=id_, when=when, verdict="local_hang", **more)

    general, special = rule("p/general"), rule("p/special", refines=("general",))
    assert best([general, special]) == special
    assert best([general, rule("p/other")]) == general
    assert best([general, rule("p/urgent", priority=5)]) == rule("p/urgent", priority=5)
    assert best([]) is None
    circle = [rule("a", refines=("b",)), rule("b", refines=("a",))]
    assert best(circle) == circle[0]
