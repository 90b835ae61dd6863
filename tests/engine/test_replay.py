"""Replay: rules after each sample, `keep`, alarms on a recorded history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.alarm import replay_alarm
from whyhang.engine.replay import find_incidents, mismatches, outcome, replay
from whyhang.engine.window import Window
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.errors import UsageError
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import ProgressEvent
from whyhang.schemas.words import Phase

Build = Callable[[Mapping[str, Any]], Incident]
Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}}
BUSY_THEN_WAITING = {"trainers": {"*": "backward", 2: {"stack": "user_sleep", "then": "backward"}}}


def rules(directory: Path, text: str) -> Ruleset:
    """The built-in lists and definitions with rules of one's own."""
    path = directory / "hang.yaml"
    path.write_text(f"version: 1\nrules:\n{text}")
    return load_ruleset(path)


def history(*steps: float, phase: Phase = "train") -> tuple[ProgressEvent, ...]:
    """A step at each of these times, in monotonic seconds."""
    return tuple(
        ProgressEvent(at="", monotonic_seconds=5000 + at, step=number, phase=phase)
        for number, at in enumerate(steps)
    )


def test_a_window_is_pending_before_it_fires(build_incident: Build) -> None:
    """After one sample a rule waits for its window; after the second it fires."""
    replayed = replay(load_ruleset(), build_incident(HUNG))
    assert replayed.states["pytorch/local-hang"] == ("pending", "fired")
    assert replayed.states["pytorch/dead-rank"] == ("not", "not")
    assert [v.verdict for v in replayed.verdicts] == ["inconclusive", "local_hang"]
    assert replayed.moments == (0.0, 15.0)


def test_a_suppression_acts_on_those_that_fired(build_incident: Build, tmp_path: Path) -> None:
    """What fires while a suppression acts is suppressed."""
    own = "  - {id: own, verdict: slow, when: any rank is waiting}\n"
    own += "suppress:\n  - {id: calm, when: log.stalled and log.stalled_for < 1h}\n"
    replayed = replay(rules(tmp_path, own), build_incident(HUNG))
    assert replayed.states["calm"] == ("acts", "acts")
    assert replayed.states["own"] == ("suppressed", "suppressed")
    assert replayed.verdict.verdict == "no_hang"


@pytest.mark.parametrize(("keep", "verdict"), [("20s", "local_hang"), ("10s", "global_hang")])
def test_keep_reports_for_that_long(
    keep: str, verdict: str, build_incident: Build, tmp_path: Path
) -> None:
    """A verdict is reported after it clears as long as `keep` says, with the suspects it had."""
    own = (
        f"  - {{id: own, verdict: local_hang, keep: {keep}, priority: 9, suspects: odd,"
        " when: count(odd) == 1}\n"
    )
    found = replay(rules(tmp_path, own), build_incident(BUSY_THEN_WAITING)).verdict
    assert found.verdict == verdict
    if verdict == "local_hang":
        assert str(found.suspects.ranks) == "2"
        assert found.evidence is not None
        assert "1 of 4" in found.evidence.detail


def test_a_gap_leaves_a_window_open(build_incident: Build, tmp_path: Path) -> None:
    """A pause of the sampler is no time in which something is known to have held."""
    incident = build_incident({**HUNG, "samples": 4})
    times = (0.0, 10.0, 20.0, 300.0)
    samples = tuple(
        replace(s, monotonic_seconds=t) for s, t in zip(incident.samples, times, strict=True)
    )
    own = "  - {id: own, verdict: slow, when: any rank is waiting, for: 10s}\n"
    states = replay(rules(tmp_path, own), replace(incident, samples=samples)).states["own"]
    assert states == ("pending", "fired", "fired", "inconclusive")
    assert Window(times).max_gap == 30.0
    assert Window((0.0, 600.0)).hole(0, 1) is None


def test_alarm_on_a_history(build_incident: Build) -> None:
    """Thresholds are replayed on the recorded steps, and again with other ones."""
    steps = [10.0 * number for number in range(30)]
    incident = replace(build_incident(HUNG), history=history(*steps))
    learned = replay_alarm(incident, DetectConfig())
    assert learned is not None
    assert (learned.threshold, learned.suspected, learned.confirmed) == (120, 120, 150)
    assert learned.recorded == 415
    assert learned.is_raised and not learned.estimated
    late = replay_alarm(incident, DetectConfig(stall=600))
    assert late is not None
    assert (late.suspected, late.confirmed) == (600, 660)
    assert not late.is_raised


def test_a_low_threshold_raises_false_alarms(build_incident: Build) -> None:
    """Alarms that progress took back are counted: the price of a threshold that is too low."""
    incident = replace(build_incident(HUNG), history=history(0, 10, 20, 200, 210))
    low = replay_alarm(incident, DetectConfig(stall=60, confirm=30))
    high = replay_alarm(incident, DetectConfig(stall=200, confirm=30))
    assert low is not None
    assert high is not None
    assert (low.earlier, high.earlier) == (1, 0)


def test_phases_have_their_own_thresholds(build_incident: Build) -> None:
    """A silence that began in an evaluation is measured against the limit of that phase."""
    events = (*history(0, 10, 20, 30, 40, 50, 60), *history(61, phase="eval"))
    incident = replace(build_incident(HUNG), history=events)
    alarm = replay_alarm(incident, DetectConfig(phases={"eval": 900}))
    assert alarm is not None
    assert alarm.threshold == 900


def test_without_a_history_the_median_serves(build_incident: Build) -> None:
    """The summary of an imported incident gives an estimate; without a log there is none."""
    log = {"step": 7, "median_interval_seconds": 31.0}
    estimate = replay_alarm(build_incident({**HUNG, "log": log}), DetectConfig())
    assert estimate is not None
    assert estimate.estimated
    assert estimate.suspected == 310
    silent = build_incident({**HUNG, "log": {"stalled_seconds": None}})
    assert replay_alarm(silent, DetectConfig()) is None


def test_expectations(build_incident: Build) -> None:
    """Only the named parts are compared; an incident that is missing is a mismatch too."""
    replayed = replay(load_ruleset(), build_incident(HUNG), name="a")
    assert not list(mismatches([replayed], {"a": {"verdict": "local_hang", "suspects": "2"}}))
    wrong = list(mismatches([replayed], {"a": {"suspects": "3"}, "b": {"verdict": "no_hang"}}))
    assert [(m.incident, m.part, m.found) for m in wrong] == [
        ("a", "suspects", "2"),
        ("b", "incident", "missing"),
    ]
    assert outcome(replayed)["rule"] == "pytorch/local-hang"


def test_stores_and_incidents_are_found(write_incident: Write, tmp_path: Path) -> None:
    """An incident is named once, whether itself or its store is given."""
    incident = write_incident(HUNG)
    assert find_incidents([incident]) == find_incidents([incident.parent])
    assert find_incidents([incident, incident.parent]) == ((incident.name, incident),)
    with pytest.raises(UsageError, match="no incident"):
        find_incidents([tmp_path / "nowhere"])
