"""Who the suspects are and where they stand, and who was not read at all."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facts import Facts, position
from whyhang.engine.positions import is_user_code
from whyhang.engine.suspect_groups import exact_groups, shared_group
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.verdict import SuspectPosition, Suspects
from whyhang.schemas.words import PROCESS_KINDS, ProcessKind

IDLE = "idle"
# The trainer of a rank only waits for these: where one of them blocks, it is the cause.
WORKING_CHILDREN: tuple[ProcessKind, ...] = ("dataloader", "checkpoint")


def name_suspects(facts: Facts, ranks: RankSet) -> Suspects:
    """The suspects with their nodes, groups and positions: the worker's before the trainer's."""
    if not ranks:
        return Suspects()
    nodes = []
    for rank in ranks:
        node = facts.world.ranks.subjects[rank].node
        if node is not None and node.name not in nodes:
            nodes.append(node.name)
    topology = facts.world.topology
    return Suspects(
        ranks=ranks,
        nodes=tuple(nodes),
        groups=exact_groups(topology, ranks) or shared_group(topology, ranks),
        positions=positions_of(facts, ranks),
    )


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


def rank_classes(facts: Facts) -> list[tuple[int, RankSet]]:
    """The ranks that look alike in the last sample, each class with its first, upwards."""
    last = facts.world.sample_count - 1
    classes = facts.classes.of("rank", ("stack", "state", "tasks"), last)
    firsts = enumerate(classes.representatives())
    return sorted((first, RankSet.from_bits(classes.bitmap(n))) for n, first in firsts)
