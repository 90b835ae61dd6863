"""What would have changed a verdict: the evidence that was missing, and what it decides."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facts import Facts
from whyhang.rules.ruleset import Rule, Ruleset
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import Verdict

RUNS_SHOWN = 8
SHOWN = 3
RULES_SHOWN = 2
# A missing source that tells desync, sizes, network and library apart.
IN_COMMUNICATION = ("collective_wait", "barrier", "device_sync", "network")


def would_change(verdict: Verdict, facts: Facts, ruleset: Ruleset) -> tuple[str, ...]:
    """The most telling pieces first, few of them; empty where the job runs or has ended."""
    if verdict.verdict in ("no_hang", "slow"):
        return tuple(_suppressed(verdict))
    found = list(dict.fromkeys(_pieces(verdict, facts, ruleset)))
    return tuple(found[:SHOWN]) or tuple(_second_look(verdict))


def _pieces(verdict: Verdict, facts: Facts, ruleset: Ruleset) -> Iterator[str]:
    if verdict.verdict == "global_hang" and verdict.category in IN_COMMUNICATION:
        yield from _communicators(facts)
    if verdict.verdict == "local_hang" and verdict.category == "user_code":
        yield from _native(verdict, facts)
    yield from _undecided(verdict, ruleset)


def _communicators(facts: Facts) -> Iterator[str]:
    """RAS and flight recorder; one of them is enough."""
    told = facts.comms.ras_known()
    if isinstance(told, Missing) and not facts.world.incident.flight:
        yield (
            f"operation counts of all ranks, from NCCL RAS ({_bare(told.reason)}) or flight "
            "recorder dumps: they tell unmatched calls from the network"
        )


def _native(verdict: Verdict, facts: Facts) -> Iterator[str]:
    last = facts.world.sample_count - 1
    unread = RankSet(
        rank
        for rank in verdict.suspects.ranks
        if last >= 0
        and isinstance(facts.get("native", facts.world.ranks.subjects[rank], last), Missing)
    )
    if unread:
        yield (
            f"native frames of {_ranks(unread)}: they tell a lock or a wait for the device "
            "from user code"
        )


def _undecided(verdict: Verdict, ruleset: Ruleset) -> Iterator[str]:
    """What left rules undecided that would have outranked the winner."""
    rules = {rule.id: rule for rule in ruleset.rules}
    waiting: dict[str, list[str]] = {}
    for entry in verdict.undecided:
        rule = rules.get(entry.rule)
        if rule is not None and entry.because and _outranks(rule, verdict, rules):
            waiting.setdefault(entry.because[0], []).append(rule.id)
    for why, ids in sorted(waiting.items(), key=lambda item: -len(item[1])):
        more = f" and {len(ids) - RULES_SHOWN} more" if len(ids) > RULES_SHOWN else ""
        yield f"{', '.join(ids[:RULES_SHOWN])}{more}, undecided: {why}"


def _outranks(rule: Rule, verdict: Verdict, rules: dict[str, Rule]) -> bool:
    if verdict.rule is None:
        return True
    names = (verdict.rule, verdict.rule.rpartition("/")[2])
    winner = rules.get(verdict.rule)
    return any(name in rule.refines for name in names) or (
        winner is not None and rule.priority > winner.priority
    )


def _suppressed(verdict: Verdict) -> Iterator[str]:
    """A rule that fired and was held back."""
    if verdict.suppressed and verdict.also:
        yield (
            f"the end of `{verdict.suppressed[0].id}` ({verdict.suppressed[0].summary}): then "
            f"`{verdict.also[0]}` holds"
        )


def _second_look(verdict: Verdict) -> Iterator[str]:
    if verdict.verdict == "local_hang" and verdict.suspects.ranks:
        yield f"a later sample in which {_ranks(verdict.suspects.ranks)} moved on"
    elif verdict.verdict == "global_hang":
        yield "a later sample in which a rank stands elsewhere"
    elif verdict.verdict == "inconclusive":
        yield "evidence that no rule found: `whyhang explain` shows which clause failed"


def _ranks(ranks: RankSet) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {ranks.format(RUNS_SHOWN)}"


def _bare(reason: str) -> str:
    return reason.removeprefix("NCCL RAS: ")
