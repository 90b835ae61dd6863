"""One sentence that says what happened: the first thing that is read at 3 a.m."""

from __future__ import annotations

from collections import Counter

from whyhang.engine.facts import Facts, position, status
from whyhang.engine.suspect_groups import exact_groups
from whyhang.engine.suspects import describe, rank_classes
from whyhang.rules.messages import render_message
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import SuspectPosition, Suspects, Verdict

RUNS_SHOWN = 8
LINKS_SHOWN = 3
# The lists whose frames wait for other ranks.
WAITING = frozenset(
    (
        "communication",
        "point_to_point",
        "stage_before",
        "stage_after",
        "behind_communication",
        "rendezvous",
        "device_wait",
    )
)
CAUSES = {
    "dataloader": "waiting for data",
    "disk_io": "asleep in storage that does not answer",
    "checkpoint_io": "in checkpoint code",
    "collective_wait": "in a collective",
    "barrier": "in a barrier",
    "device_sync": "waiting for the device",
    "gpu_device": "asleep in a device driver",
    "compile": "compiling",
    "user_code": "outside communication",
    "lock_deadlock": "waiting for a lock",
    "init_rendezvous": "in the rendezvous",
    "exited_rank": "gone",
    "stopped_process": "stopped",
    "network": "silent",
    "logging_service": "waiting for an experiment tracker",
    "other": "asleep in the kernel and cannot be interrupted",
}


def headline_of(verdict: Verdict, facts: Facts, message: str = "") -> str:
    """The headline; a rule's own message comes first."""
    if message:
        groups = _groups(verdict.suspects, facts)
        return render_message(message, message_values(verdict, groups, name_links(facts))).strip()
    if verdict.verdict == "local_hang":
        return _local(verdict, facts)
    if verdict.verdict == "global_hang":
        return _global(verdict, facts)
    if verdict.verdict == "inconclusive":
        return _inconclusive(verdict, facts)
    if verdict.verdict == "slow":
        return "Slow, not hung: steps advance far below this job's own pace"
    return _no_hang(verdict, facts)


def name_ranks(ranks: RankSet) -> str:
    """``rank 3`` or ``ranks 40-47``."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {ranks.format(RUNS_SHOWN)}"


def _local(verdict: Verdict, facts: Facts) -> str:
    suspects = verdict.suspects
    be = "is" if len(suspects.ranks) == 1 else "are"
    text = f"Local hang: {name_ranks(suspects.ranks)}{_shared(suspects, facts)}"
    text += f" {be} {CAUSES[verdict.category]}"
    if suspects.positions:
        first = suspects.positions[0]
        text += f": {_position(first)}"
        more = sum(each.kind == first.kind for each in suspects.positions) - 1
        if more:
            text += f" and {more} other {'place' if more == 1 else 'places'}"
    return text + _others(RankSet.from_bits(facts.world.ranks.members) - suspects.ranks, facts)


def _others(others: RankSet, facts: Facts) -> str:
    """What the rest does: who was not read does not wait, as far as anybody knows."""
    world = facts.world.incident.world_size or 0
    beyond = max(0, world - len(facts.world.ranks))
    total = len(others) + beyond
    if not total:
        return ""
    waiting, unread = _count(others, facts)
    unread += beyond
    if waiting == total:
        return "; the other rank waits" if waiting == 1 else f"; the other {waiting} ranks wait"
    told = []
    if waiting:
        told.append(f"{waiting} of the other {total} {'waits' if waiting == 1 else 'wait'}")
    if unread:
        told.append(f"{unread} {'was' if unread == 1 else 'were'} not read")
    return f"; {', '.join(told)}" if told else ""


def _count(ranks: RankSet, facts: Facts) -> tuple[int, int]:
    """How many of the ranks wait in the last sample, and how many were not read."""
    last = facts.world.sample_count - 1
    waiting = unread = 0
    for first, members in rank_classes(facts) if last >= 0 else ():
        subject, number = facts.world.ranks.subjects[first], len(members & ranks)
        if status(facts, subject, last) not in ("running", "stopped"):
            unread += number if facts.get("unreadable", subject, last) is True else 0
            continue
        top = position(facts, subject, last)
        if isinstance(top, Frame):
            waiting += number if facts.positions.claims(top) & WAITING else 0
        else:
            unread += number if facts.get("unreadable", subject, last) is True else 0
    return waiting, unread


def _global(verdict: Verdict, facts: Facts) -> str:
    if verdict.suspects.ranks:
        odd = name_ranks(verdict.suspects.ranks) + _bracketed(_groups(verdict.suspects, facts))
        place = (
            verdict.suspects.positions[0].frame if verdict.suspects.positions else "another call"
        )
        return f"Global hang: unmatched collectives: {odd} at {place}, the rest elsewhere"
    everybody = RankSet.from_bits(facts.world.ranks.members)
    if len(everybody) == 1:
        who = "the only rank"
    else:
        who = "every rank that was read" if _count(everybody, facts)[1] else "every rank"
    place = _common_place(facts)
    where = f", at {place}" if place else ""
    what = {
        "dataloader": f"{who} waits for data",
        "user_code": f"{who} stands outside communication{where}",
        "collective_wait": f"{who} waits in communication"
        + (" and none is outside" if len(everybody) > 1 else ""),
        "init_rendezvous": f"{who} waits in the rendezvous",
        "barrier": f"{who} waits in a barrier"
        + (" and none is outside" if len(everybody) > 1 else ""),
        "device_sync": f"{who} waits for its device",
        "disk_io": "most ranks wait for storage that does not answer",
    }
    return f"Global hang: {what.get(verdict.category, verdict.summary or 'no rank stands out')}"


def _common_place(facts: Facts) -> str:
    """Where most ranks stand in the last sample; empty where that is not known."""
    last, places = facts.world.sample_count - 1, Counter[str]()
    for first, members in rank_classes(facts) if last >= 0 else ():
        top = position(facts, facts.world.ranks.subjects[first], last)
        if isinstance(top, Frame):
            places[describe(top)] += len(members)
    return places.most_common(1)[0][0] if places else ""


def _inconclusive(verdict: Verdict, facts: Facts) -> str:
    if verdict.not_seen:
        unread = verdict.not_seen[0].ranks
        for entry in verdict.not_seen[1:]:
            unread = unread | entry.ranks
        if not unread:
            return "Inconclusive: the job's processes could not be read"
        return f"Inconclusive: read these first: {name_ranks(unread)}"
    if not facts.world.ranks.members and facts.world.incident.unranked:
        number = len(facts.world.incident.unranked)
        whom = f"{number} trainers" if number > 1 else "the trainer"
        return f"Inconclusive: no rank is known of {whom}"
    if not facts.world.ranks.members:
        return "Inconclusive: no process with a rank was seen"
    if facts.world.sample_count < 2:
        return "Inconclusive: one sample cannot tell a wait from a hang"
    return "Inconclusive: the evidence does not decide"


def _no_hang(verdict: Verdict, facts: Facts) -> str:
    if verdict.category == "exited_rank":
        failed = [event for event in facts.world.incident.events if event.kind == "rank_failed"]
        for event in failed:
            if event.exit_code is not None and event.ranks:
                return f"Not a hang: the job ended; {_exit(event.ranks, event.exit_code)}"
        if verdict.suspects.ranks:
            return f"Not a hang: the job ended; {name_ranks(verdict.suspects.ranks)} failed first"
        return "Not a hang: the job ended"
    if verdict.suppressed:
        return f"Not a hang: {verdict.suppressed[0].summary or verdict.suppressed[0].id}"
    return "Not a hang: steps advance"


def _exit(ranks: RankSet, code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{name_ranks(ranks)} {how}"


def _position(position: SuspectPosition) -> str:
    who = "" if position.kind == "trainer" else f" ({position.kind} process)"
    return f"{position.frame}{who}"


def _shared(suspects: Suspects, facts: Facts) -> str:
    """The groups that the suspects make up, and their nodes."""
    return _bracketed("; ".join(filter(None, (_groups(suspects, facts), _nodes(suspects.nodes)))))


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""


def _groups(suspects: Suspects, facts: Facts) -> str:
    return ", ".join(exact_groups(facts.world.topology, suspects.ranks))


def _nodes(nodes: tuple[str, ...]) -> str:
    shown = ", ".join(nodes[:3])
    return shown if len(nodes) <= 3 else f"{shown} and {len(nodes) - 3} more nodes"


def name_links(facts: Facts) -> str:
    """The failing links of the last sample, the worst first: ``gpu31 and gpu32``."""
    links = facts.world.machines.links.failing(facts.world.sample_count - 1)
    shown = [" and ".join(link.ends) for link in links[:LINKS_SHOWN]]
    more = [f"{len(links) - LINKS_SHOWN} other pairs"] if len(links) > LINKS_SHOWN else []
    return ", ".join([*shown, *more])


def message_values(verdict: Verdict, groups: str = "", links: str = "") -> dict[str, object]:
    """What a rule's message may use; ``groups`` are those that the suspects make up."""
    positions = verdict.suspects.positions
    return {
        "ranks": verdict.suspects.ranks.format(RUNS_SHOWN),
        "who": name_ranks(verdict.suspects.ranks) + _bracketed(groups),
        "nodes": list(verdict.suspects.nodes),
        "position": positions[0].frame if positions else "",
        "links": links,
        "verdict": verdict.verdict,
        "category": verdict.category,
        "summary": verdict.summary,
    }
