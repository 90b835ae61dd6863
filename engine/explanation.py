"""How every rule decided on an incident: what ``whyhang explain`` prints."""

from __future__ import annotations

from collections.abc import Mapping

from whyhang.engine.explain import Explainer
from whyhang.engine.judge import Court, best, held_at, reach, suspect_ranks
from whyhang.engine.witness import Witness
from whyhang.rules.ruleset import Rule
from whyhang.schemas.explanation import Definition, Explanation, RuleExplanation, RuleResult
from whyhang.schemas.rankset import NOBODY
from whyhang.schemas.truth import Truth

RESULT_OF: Mapping[Truth, RuleResult] = {
    Truth.TRUE: "fired",
    Truth.FALSE: "not",
    Truth.UNKNOWN: "inconclusive",
}


def explain_all(court: Court, *, version: str | None = None) -> Explanation:
    """The verdict, and the result of every suppression and rule with its evidence. Pure."""
    evaluator, ruleset = court.evaluator, court.ruleset
    verdict = reach(court, version=version)
    held = held_at(evaluator, ruleset.rules)
    winner = best([rule for rule in ruleset.rules if rule.id in held])
    acted = [entry.id for entry in verdict.suppressed]
    suppressions = tuple(
        RuleExplanation(
            id=entry.id,
            result=RESULT_OF[evaluator.truth(entry.when).one()],
            evidence=court.explainer.explain(entry.when),
            summary=entry.summary,
            span=entry.span,
        )
        for entry in ruleset.suppress
    )
    return Explanation(
        verdict=verdict,
        definitions=tuple(
            Definition(name=name, text=body.text, span=body.span)
            for names in (ruleset.defs, ruleset.sets)
            for name, body in names.items()
        ),
        suppressions=suppressions,
        rules=tuple(_explain(court, rule, held, winner, acted) for rule in ruleset.rules),
    )


def _explain(
    court: Court, rule: Rule, held: Mapping[str, int], winner: Rule | None, acted: list[str]
) -> RuleExplanation:
    evaluator = court.evaluator
    at = held.get(rule.id)
    result = RESULT_OF[evaluator.truth(rule.when, sample=at).one()]
    explainer, note = court.explainer, ""
    if at is not None:
        result = "suppressed" if acted else "fired"
        note = f"suppressed by {', '.join(acted)}" if acted else _standing(rule, winner)
        if at != evaluator.last:
            explainer = Explainer(evaluator, at)
            note += f"; held {evaluator.window.age(at):.0f} s earlier and is kept"
    named = at is not None and rule.suspects is not None
    return RuleExplanation(
        id=rule.id,
        result=result,
        evidence=explainer.explain(rule.when),
        concludes=(rule.verdict, rule.category, rule.confidence),
        summary=rule.summary,
        span=rule.span,
        note=note,
        suspects=suspect_ranks(evaluator, rule, at) if named else NOBODY,
        who=Witness(evaluator, at).membership(rule.suspects) if rule.suspects and named else None,
    )


def _standing(rule: Rule, winner: Rule | None) -> str:
    """How a rule that fired stands to the one that decides."""
    if winner is None or rule is winner:
        return "decides"
    if {rule.id, rule.id.rpartition("/")[2]} & set(winner.refines):
        return f"outranked by {winner.id}, which refines it"
    if winner.priority > rule.priority:
        return f"outranked by {winner.id}, which has priority {winner.priority}"
    return f"outranked by {winner.id}"
