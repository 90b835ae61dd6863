"""Judges recorded incidents again: at each of their samples, and when detection would speak up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from whyhang.engine.alarm import replay_alarm
from whyhang.engine.evaluate import Evaluator
from whyhang.engine.incidents import read_evidence
from whyhang.engine.judge import Court, held_at, open_court, reach
from whyhang.engine.store import INDEX
from whyhang.engine.window import HopefulWindow
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.errors import UsageError
from whyhang.schemas.incident import Incident
from whyhang.schemas.replay import Mismatch, Replayed, RuleState
from whyhang.schemas.truth import Truth

_STATES: Mapping[Truth, RuleState] = {
    Truth.TRUE: "fired",
    Truth.FALSE: "not",
    Truth.UNKNOWN: "inconclusive",
}


def find_incidents(paths: Iterable[Path]) -> tuple[tuple[str, Path], ...]:
    """The incidents that the paths mean, by name: each is one, or a folder of some.

    Raises UsageError for a path that holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = sorted(index.parent for index in path.glob(f"*/{INDEX}"))
        if (path / INDEX).is_file() or (path.is_dir() and not inside):
            inside = [path]
        if not inside:
            missing = "" if path.exists() else ": no such directory"
            raise UsageError(
                f"no incident in {path}{missing}",
                hint="give incident directories, or a store of them",
            )
        found |= dict.fromkeys(inside)
    names = [path.resolve().name for path in found]
    return tuple(
        (name if names.count(name) == 1 else str(path), path)
        for name, path in zip(names, found, strict=True)
    )


def replay_all(
    ruleset: Ruleset, incidents: Iterable[tuple[str, Path]], *, version: str | None = None
) -> Iterator[Replayed]:
    """Replay incidents one by one; each is read when its turn comes."""
    for name, path in incidents:
        yield replay(ruleset, read_evidence(path), name=name, version=version)


def replay(
    ruleset: Ruleset, incident: Incident, *, name: str = "", version: str | None = None
) -> Replayed:
    """An incident under a set of rules, as it would have been judged after each sample. Pure."""
    courts = [
        open_court(ruleset, replace(incident, samples=incident.samples[: number + 1]))
        for number in range(max(1, len(incident.samples)))
    ]
    verdicts = tuple(reach(court, version=version) for court in courts)
    by_moment = [dict(_states(court)) for court in courts]
    return Replayed(
        incident=name or incident.print_id or "",
        verdict=verdicts[-1],
        moments=tuple(sample.monotonic_seconds for sample in incident.samples),
        verdicts=verdicts,
        states={id: tuple(states[id] for states in by_moment) for id in by_moment[-1]},
        alarm=replay_alarm(incident, ruleset.config.detect),
        happened=incident.progress.stalled_seconds if incident.trigger == "stall" else None,
    )


def _states(court: Court) -> Iterator[tuple[str, RuleState]]:
    """The state of each suppression and rule at the last sample of a court."""
    evaluator, ruleset = court.evaluator, court.ruleset
    hopeful = Evaluator(ruleset, court.facts)
    hopeful.window = HopefulWindow(evaluator.window.moments)
    suppressed = False
    for entry in ruleset.suppress:
        answer = evaluator.truth(entry.when).one()
        suppressed |= answer is Truth.TRUE
        yield entry.id, "acts" if answer is Truth.TRUE else _STATES[answer]
    held = held_at(evaluator, ruleset.rules)
    for rule in ruleset.rules:
        state = _STATES[evaluator.truth(rule.when).one()]
        if rule.id in held:
            state = "suppressed" if suppressed else "fired"
        elif state == "inconclusive" and hopeful.truth(rule.when).one() is Truth.TRUE:
            state = "pending"
        yield rule.id, state


def mismatches(
    replayed: Iterable[Replayed], expected: Mapping[str, Mapping[str, str]]
) -> Iterator[Mismatch]:
    """Where incidents are not judged as expected; expected ones that are missing count too."""
    seen = {each.incident: each for each in replayed}
    for name, parts in expected.items():
        found = outcome(seen[name]) if name in seen else None
        if found is None:
            yield Mismatch(incident=name, part="incident", expected="present", found="missing")
            continue
        for part, wanted in parts.items():
            if found.get(part, "") != wanted:
                yield Mismatch(incident=name, part=part, expected=wanted, found=found.get(part, ""))


def outcome(replayed: Replayed) -> dict[str, str]:
    """What an expectation may name."""
    verdict = replayed.verdict
    return {
        "verdict": verdict.verdict,
        "category": verdict.category,
        "confidence": verdict.confidence,
        "suspects": verdict.suspects.ranks.format(),
        "rule": verdict.rule or "",
    }
