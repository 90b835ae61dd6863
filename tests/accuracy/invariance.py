"""Whether a verdict keeps to what its evidence means."""

from __future__ import annotations

from collections.abc import Iterator

from tests.accuracy.changes import CHANGES, hide_dump, permute_nodes
from whyhang.engine.judge import judge
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import CONFIDENCES, Verdict


def conclusion(verdict: Verdict) -> tuple[object, ...]:
    """What a reader acts on; the suspects last."""
    suspects = str(verdict.suspects.ranks)
    return verdict.verdict, verdict.category, verdict.confidence, verdict.rule, suspects


def breaches(ruleset: Ruleset, incident: Incident) -> Iterator[str]:
    """One line for each change that carries no meaning and yet changed the verdict.

    Then one for each suspect whose hidden dump added a suspect or made the verdict surer.
    """
    before = judge(ruleset, incident)
    for change in CHANGES:
        after = judge(ruleset, change(incident))
        if conclusion(after) != conclusion(before):
            yield _told(change.__name__, before, after)
    moved, who = permute_nodes(incident)
    after = judge(ruleset, moved)
    expected = RankSet(who.get(rank, rank) for rank in before.suspects.ranks)
    if (*conclusion(after)[:-1], after.suspects.ranks) != (*conclusion(before)[:-1], expected):
        yield _told(permute_nodes.__name__, before, after)
    for rank in before.suspects.ranks:
        after = judge(ruleset, hide_dump(incident, rank))
        surer = CONFIDENCES.index(after.confidence) < CONFIDENCES.index(before.confidence)
        if surer or after.suspects.ranks - before.suspects.ranks:
            yield _told(f"{hide_dump.__name__} of rank {rank}", before, after)


def _told(change: str, before: Verdict, after: Verdict) -> str:
    return f"{change}: {conclusion(before)} became {conclusion(after)}"
