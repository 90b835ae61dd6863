"""Evaluation: scopes, groups with doubtful members, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.explain import Explainer
from whyhang.engine.facts import ACCESSORS, Facts
from whyhang.engine.positions import Positions
from whyhang.engine.world import World
from whyhang.rules.fields import FIELDS
from whyhang.rules.load import load_ruleset
from whyhang.rules.parse import parse_expr
from whyhang.schemas.incident import Incident
from whyhang.schemas.truth import Truth

Build = Callable[[Mapping[str, Any]], Incident]
PACK = load_ruleset()
HUNG = {
    "trainers": {"*": "backward", 2: "data"},
    "workers": {"*": "worker_idle", 2: {"stack": "worker_blocked", "state": "D"}},
}
UNREAD = {"trainers": {"*": "backward", 1: {"unread": "no rights"}, 2: "user_sleep"}}


def evaluator(incident: Incident) -> Evaluator:
    """An evaluator of the built-in pack's lists and definitions."""
    return Evaluator(PACK, Facts(World(incident), Positions(PACK.lists)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("log.stalled", "true"),
        ("log.stalled_for >= 400s", "true"),
        ("log.stalled_for < 5m", "false"),
        ("log.phase is known", "false"),
        ("log.phase is unknown", "true"),
        ('log.phase == "eval"', "unknown"),
        ('not (log.phase == "eval")', "unknown"),
        ("any rank is waiting", "true"),
        ("all ranks are waiting", "false"),
        ("at least 75% of ranks are waiting", "true"),
        ("at least 3 ranks are waiting", "true"),
        ("at most 3 ranks are waiting", "true"),
        ("exactly 1 rank is (not waiting)", "true"),
        ("no rank is (proc.kind == \"dataloader\")", "true"),
        ("count(odd) == 1", "true"),
        ("share(odd) <= 25%", "true"),
        ("share(odd) < 25%", "false"),
        ("any node is (count(odd) >= 1)", "true"),
        ("all nodes are (any rank is waiting)", "true"),
        ("any rank is (any child is (proc.state == \"D\"))", "true"),
        ("exactly 1 rank is (any child is asleep)", "true"),
        ("all processes are (proc.rank >= 0)", "true"),
        ("any thread is (stack has fetching)", "true"),
        ("any rank is (any thread is (stack has dataloader))", "true"),
        ("most ranks agree on top.function", "true"),
        ("all ranks agree on top.function", "false"),
        ("any rank is (stack has \"*.try_get_data\")", "false"),
        ("any rank is (stack has \"_try_get_data\")", "true"),
        ("any rank is (stack has /dataloader/)", "true"),
        ("any rank is (top.file matches /dataloader/)", "true"),
        ("all ranks are (stack unchanged for 15s)", "true"),
        ("all ranks are (stack unchanged for 16s)", "unknown"),
        ("all ranks are waiting for 10s", "false"),
        ("any rank is waiting for 10s", "true"),
        ("any rank is waiting for 1h", "unknown"),
        ("2 == 2", "true"),
    ],
)  # fmt: skip
def test_meaning(text: str, value: str, build_incident: Build) -> None:
    """Each construct has the value that the language gives it on a hung job."""
    if text == "2 == 2":
        text = "job.world_size == job.world_size"
    assert evaluator(build_incident(HUNG)).truth(parse_expr(text)).one().value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("any rank is waiting", "true"),
        ("all ranks are waiting", "false"),
        ("at least 2 ranks are waiting", "true"),
        ("at least 3 ranks are waiting", "unknown"),
        ("at least 4 ranks are waiting", "false"),
        ("count(odd) >= 1", "true"),
        ("count(odd) >= 2", "unknown"),
        ("count(odd) >= 3", "false"),
        ("share(odd) <= 50%", "true"),
        ("share(odd) <= 25%", "unknown"),
        ("all (ranks except odd) are waiting", "unknown"),
        ("any (ranks except odd) is (not waiting)", "unknown"),
        ("exactly 1 rank is unreadable", "true"),
        ("any rank is (top is unknown)", "true"),
        ("exactly 1 rank is (top is unknown)", "true"),
        ("all ranks agree on top.function", "false"),
        ("at least 3 ranks agree on top.function", "unknown"),
    ],
)
def test_unread_ranks_keep_answers_open(text: str, value: str, build_incident: Build) -> None:
    """An unread rank is counted for neither side: only what it cannot change is decided."""
    assert evaluator(build_incident(UNREAD)).truth(parse_expr(text)).one().value == value


def test_nonblocking_then_native_is_unchanged(build_incident: Build) -> None:
    """A change of dump mode between samples is no change of stack."""
    incident = build_incident({"trainers": {"*": {"stack": "user_lock"}}})
    plain = build_incident({"trainers": {"*": {"stack": "@metrics.py:31 flush"}}})
    assert evaluator(incident).truth(parse_expr("all ranks are frozen")).one() is Truth.TRUE
    assert evaluator(plain).truth(parse_expr("all ranks are frozen")).one() is Truth.TRUE
    mixed = {"trainers": {"*": {"stack": "user_lock_plain", "then": "user_lock"}}}
    from_two_modes = build_incident(mixed)
    answer = evaluator(from_two_modes).truth(parse_expr("all ranks are frozen"))
    assert answer.one() is Truth.TRUE


def test_evidence_names_ranks_and_reasons(build_incident: Build) -> None:
    """A quantified clause tells who said yes, who no and who could not be read, and why."""
    explain = Explainer(evaluator(build_incident(UNREAD))).explain
    evidence = explain(parse_expr("log.stalled and at least 90% of ranks are waiting"))
    clause = evidence.children[1]
    assert (str(clause.yes), str(clause.no), str(clause.unknown)) == ("0/3", "2", "1")
    assert clause.value is Truth.FALSE
    assert "need 4 of 4" in clause.detail
    assert "threshold" in evidence.children[0].detail or "400 s" in evidence.children[0].detail


def test_table_and_accessors_agree() -> None:
    """Every field that the language knows has an accessor, and no accessor is unknown to it."""
    named = {name for name in FIELDS if not name.startswith("event.")}
    assert named == set(ACCESSORS)


def test_ignored_processes_do_not_count(build_incident: Build) -> None:
    """Idle compile workers are outside every group of processes."""
    case = {"trainers": {"*": "backward"}, "compile_workers": {"*": "compile_worker_idle"}}
    found = evaluator(build_incident(case)).truth(
        parse_expr('no process is (proc.kind == "compile_worker")')
    )
    assert found.one() is Truth.TRUE


def test_a_restarted_rank_is_not_frozen(build_incident: Build) -> None:
    """A new process that stands where the old one stood has moved."""
    incident = build_incident({"trainers": {"*": "backward"}})
    last = incident.samples[-1]
    restarted = tuple(
        replace(process, pid=9000) if process.rank == 1 else process for process in last.processes
    )
    changed = replace(
        incident, samples=(*incident.samples[:-1], replace(last, processes=restarted))
    )
    answers = evaluator(changed).truth(parse_expr("any rank is frozen"), "job")
    assert answers.one() is Truth.TRUE
    by_rank = evaluator(changed).truth(PACK.defs["frozen"], "rank")
    assert (by_rank.yes, by_rank.no) == (0b1101, 0b0010)
