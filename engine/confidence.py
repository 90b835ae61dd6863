"""How sure a verdict can be: the rule's own confidence, lowered by missing evidence."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facts import Facts
from whyhang.engine.suspects import rank_classes
from whyhang.schemas.verdict import CONFIDENCES, Confidence, VerdictKind

HANGS = ("local_hang", "global_hang")


def lower(
    own: Confidence, verdict: VerdictKind, facts: Facts
) -> tuple[Confidence, tuple[str, ...]]:
    """The confidence that the evidence allows, and why it is below the rule's own.

    Only verdicts of a hang rest on samples; each gap caps the confidence at medium, and at low
    where most ranks that were found could not be read. Ranks of nodes that nobody asked are a gap
    too, however many they are: those that were read still show where they stand.
    """
    if verdict not in HANGS:
        return own, ()
    reasons = tuple(_gaps(facts))
    if _unread_share(facts) > 0.5:
        return "low", reasons
    if not reasons or CONFIDENCES.index(own) >= CONFIDENCES.index("medium"):
        return own, reasons
    return "medium", reasons


def _gaps(facts: Facts) -> Iterator[str]:
    incident = facts.world.incident
    if incident.progress.state == "unknown":
        seen = incident.progress.stalled_seconds is not None
        lack = "no step has been seen yet" if seen else "no log was read"
        yield f"{lack}: standing I/O and CPU over two samples stand in for it"
    if facts.world.sample_count == 1:
        yield "only one sample was taken"
    elif facts.world.sample_count == 0:
        yield "no stacks were sampled"
    uncollected = [node.name for node in incident.nodes if not node.was_asked]
    if uncollected:
        yield f"not collected: {', '.join(uncollected[:8])}"
    silent = [node.name for node in incident.nodes if node.status == "missing"]
    if silent:
        yield f"no answer from {', '.join(silent[:8])}"
    unread = _unread_share(facts)
    if unread > 0.02:
        yield f"{unread:.0%} of the ranks were not read"
    size = incident.world_size
    if size is not None and size > len(facts.world.ranks):
        yield f"{len(facts.world.ranks)} of {size} ranks were found"


def _unread_share(facts: Facts) -> float:
    if not len(facts.world.ranks) or facts.world.sample_count == 0:
        return 0.0
    last = facts.world.sample_count - 1
    unread = sum(
        len(members)
        for first, members in rank_classes(facts)
        if facts.get("unreadable", facts.world.ranks.subjects[first], last) is True
    )
    return unread / len(facts.world.ranks)
