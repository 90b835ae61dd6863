"""The verdict of a ruleset on an incident: a pure function, so that replay and tests are exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from whyhang.engine.confidence import lower
from whyhang.engine.evaluate import Evaluator
from whyhang.engine.explain import Explainer, reasons_of
from whyhang.engine.facts import Facts
from whyhang.engine.headline import headline_of
from whyhang.engine.next_steps import next_steps
from whyhang.engine.positions import Positions
from whyhang.engine.suspects import name_suspects
from whyhang.engine.topology import find_topology
from whyhang.engine.unseen import not_seen
from whyhang.engine.world import World
from whyhang.engine.would_change import would_change
from whyhang.rules.ruleset import Rule, Ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import (
    Category,
    Suppression,
    Suspects,
    Undecided,
    Verdict,
    VerdictKind,
)


@dataclass(frozen=True, slots=True)
class Court:
    """What one judgement works with."""

    ruleset: Ruleset
    incident: Incident
    facts: Facts
    evaluator: Evaluator
    explainer: Explainer


def open_court(ruleset: Ruleset, incident: Incident) -> Court:
    """Arrange an incident's facts for a ruleset."""
    topology = find_topology(ruleset.config.topology, incident)
    facts = Facts(World(incident, topology), Positions(ruleset.lists))
    evaluator = Evaluator(ruleset, facts)
    return Court(ruleset, incident, facts, evaluator, Explainer(evaluator))


def judge(ruleset: Ruleset, incident: Incident, *, version: str | None = None) -> Verdict:
    """The verdict. Reads no clock, no disk and no environment."""
    return reach(open_court(ruleset, incident), version=version)


def reach(court: Court, *, version: str | None = None) -> Verdict:
    """The verdict of an opened court."""
    ruleset, evaluator = court.ruleset, court.evaluator
    suppressed = tuple(
        Suppression(
            id=entry.id, summary=entry.summary, evidence=court.explainer.explain(entry.when)
        )
        for entry in ruleset.suppress
        if evaluator.truth(entry.when).one() is Truth.TRUE
    )
    held = held_at(evaluator, ruleset.rules)
    fired = [rule for rule in ruleset.rules if rule.id in held]
    undecided = tuple(
        Undecided(rule=rule.id, because=reasons_of(court.explainer.explain(rule.when)))
        for rule in ruleset.rules
        if rule.id not in held and evaluator.truth(rule.when).one() is Truth.UNKNOWN
    )
    winner = None if suppressed else best(fired)
    evidence = None
    if winner is not None:
        kind, category, at = winner.verdict, winner.category, held[winner.id]
        suspects = name_suspects(court.facts, suspect_ranks(evaluator, winner, at))
        evidence = Explainer(evaluator, at).explain(winner.when)
    else:
        kind, category = _default(court, suppressed)
        suspects = Suspects()
    confidence, lowered = lower(
        winner.confidence if winner else "high" if suppressed else "medium", kind, court.facts
    )
    verdict = Verdict(
        verdict=kind,
        category=category,
        confidence=confidence,
        headline="",
        rule=winner.id if winner else None,
        summary=winner.summary if winner else "",
        print_id=court.incident.print_id,
        job_id=court.incident.job_id,
        suspects=suspects,
        evidence=evidence,
        also=tuple(rule.id for rule in fired if rule is not winner),
        suppressed=suppressed,
        undecided=undecided,
        not_seen=not_seen(court.facts),
        lowered=lowered,
        rules_digest=ruleset.digest or None,
        overrides=ruleset.overrides,
        whyhang=version,
    )
    return _finish(court, verdict, winner)


def best(fired: list[Rule]) -> Rule | None:
    """The rule that wins: none that fired refines it, then priority, then order in the file."""
    refined = {target for rule in fired for target in rule.refines}
    standing = [rule for rule in fired if not refined & {rule.id, rule.id.rpartition("/")[2]}]
    # Rules that refine each other in a circle would leave nobody standing.
    return max(standing or fired, key=lambda rule: rule.priority, default=None)


def held_at(evaluator: Evaluator, rules: Iterable[Rule]) -> dict[str, int]:
    """The rules that fire, each with the sample at which it did.

    That is the last one, or, as long as the rule's ``keep`` lasts, an earlier one.
    """
    found = {}
    for rule in rules:
        for sample in range(evaluator.last, -2, -1):
            if evaluator.truth(rule.when, sample=sample).one() is Truth.TRUE:
                found[rule.id] = sample
            lasts = rule.keep is not None and sample > 0
            if rule.id in found or not lasts or evaluator.window.age(sample - 1) > (rule.keep or 0):
                break
    return found


def suspect_ranks(evaluator: Evaluator, rule: Rule, sample: int | None = None) -> RankSet:
    """The ranks that a rule names; doubtful members are never named."""
    if rule.suspects is None:
        return NOBODY
    group = evaluator.group(rule.suspects, sample)
    return evaluator.world.ranks_of(group.kind, group.members)


def _default(court: Court, suppressed: tuple[Suppression, ...]) -> tuple[VerdictKind, Category]:
    """The verdict where no rule decides."""
    if suppressed:
        acted = {entry.id for entry in suppressed}
        found = [e.category for e in court.ruleset.suppress if e.id in acted]
        return "no_hang", next((category for category in found if category != "other"), "other")
    state = court.incident.progress.state
    if state == "slow":
        return "slow", "other"
    if state == "advancing":
        return "no_hang", "other"
    return "inconclusive", "other"


def _finish(court: Court, verdict: Verdict, winner: Rule | None) -> Verdict:
    headline = headline_of(verdict, court.facts, winner.message if winner else "")
    steps = list(next_steps(verdict, court.facts))
    changes = would_change(verdict, court.facts, court.ruleset)
    steps.extend(f"Would change with {change}" for change in changes)
    return replace(verdict, headline=headline, next_steps=tuple(steps))
