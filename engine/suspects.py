"""Who the suspects are and where they stand, and who was not read at all."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facts import Facts, main_stack, position, status
from whyhang.engine.positions import is_user_code
from whyhang.engine.world import Subject
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import PROCESS_KINDS, ProcessKind
from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet
from whyhang.schemas.verdict import NotSeen, SuspectPosition, Suspects

IDLE = "idle"
# The trainer of a rank only waits for these: where one of them blocks, it is the cause.
WORKING_CHILDREN: tuple[ProcessKind, ...] = ("dataloader", "checkpoint")


def name_suspects(facts: Facts, ranks: RankSet) -> Suspects:
    """The suspects with their nodes and positions: the worker's first, then the trainer's."""
    if not ranks:
        return Suspects()
    nodes = []
    for rank in ranks:
        node = facts.world.ranks.subjects[rank].node
        if node is not None and node.name not in nodes:
            nodes.append(node.name)
    return Suspects(ranks=ranks, nodes=tuple(nodes), positions=positions_of(facts, ranks))


def positions_of(facts: Facts, ranks: RankSet) -> tuple[SuspectPosition, ...]:
    """Where the processes of these ranks stand, each distinct place once.

    Idle workers are left out. Workers come before the trainer that waits for them, then the
    places that more ranks share.
    """
    found: dict[tuple[ProcessKind, str], RankSet] = {}
    for rank in ranks:
        for kind, place in _places(facts, rank):
            found[kind, place] = found.get((kind, place), NOBODY) | RankSet([rank])
    order = {kind: number for number, kind in enumerate(PROCESS_KINDS)}
    return tuple(
        SuspectPosition(frame=place, kind=kind, ranks=members)
        for (kind, place), members in sorted(
            found.items(),
            key=lambda item: (
                item[0][0] == "trainer",
                -len(item[1]),
                order[item[0][0]],
                item[0][1],
            ),
        )
    )


def _places(facts: Facts, rank: int) -> Iterator[tuple[ProcessKind, str]]:
    last = facts.world.sample_count - 1
    if last < 0:
        return
    children = facts.world.inside("rank", rank, "child")
    for _, child in facts.world.children.of(children):
        process = child.track[last]
        if process is None or process.kind not in WORKING_CHILDREN:
            continue
        top = position(facts, child, last)
        if isinstance(top, Frame) and IDLE not in facts.positions.claims(top):
            yield process.kind, describe(top)
    top = position(facts, facts.world.ranks.subjects[rank], last)
    if isinstance(top, Frame):
        yield "trainer", describe(top)


def describe(frame: Frame) -> str:
    """A position for people: ``read_shard /workspace/data.py:88``.

    User code is named by its full path, libraries by the path below their root.
    """
    if is_user_code(frame) and frame.filename:
        line = f":{frame.line}" if frame.line else ""
        return f"{frame.function} {frame.filename}{line}"
    return str(frame)


def not_seen(facts: Facts) -> tuple[NotSeen, ...]:
    """The ranks whose stack was not read in the last sample, grouped by the reason."""
    found: dict[str, RankSet] = {}
    for first, members in rank_classes(facts):
        reason = why_unread(facts, facts.world.ranks.subjects[first])
        if reason is not None:
            found[reason] = found.get(reason, NOBODY) | members
    for node in facts.world.incident.nodes:
        if not node.was_asked and node.ranks:
            reason = f"{node.name}: {node.reason or 'not collected'}"
            found[reason] = found.get(reason, NOBODY) | node.ranks
    size = facts.world.incident.world_size
    if size is not None and facts.world.ranks.members:
        listed = RankSet.from_bits(facts.world.ranks.members)
        for ranks in found.values():
            listed = listed | ranks
        beyond = RankSet.from_bits((1 << min(max(size, 0), MAX_RANK)) - 1) - listed
        if beyond:
            found["no process of these ranks was found"] = beyond
    return tuple(NotSeen(ranks=ranks, reason=reason) for reason, ranks in found.items())


def rank_classes(facts: Facts) -> list[tuple[int, RankSet]]:
    """The ranks that look alike in the last sample, each class with its first, upwards."""
    last = facts.world.sample_count - 1
    classes = facts.classes.of("rank", ("stack", "state", "tasks"), last)
    firsts = enumerate(classes.representatives())
    return sorted((first, RankSet.from_bits(classes.bitmap(n))) for n, first in firsts)


def why_unread(facts: Facts, subject: Subject) -> str | None:
    """Why a rank's stack is missing in the last sample; None if it was read or has ended."""
    last = facts.world.sample_count - 1
    if last < 0:
        return "no sample was taken"
    if status(facts, subject, last) in ("exited", "zombie"):
        return None
    stack = main_stack(facts, subject, last)
    if not isinstance(stack, Missing):
        return None
    if subject.node is not None and subject.track[last] is None and subject.node.reason:
        return subject.node.reason
    return stack.reason.splitlines()[0] if stack.reason else "unread"
