"""Where two sources say opposite things of one rank, so that nobody trusts one of them blindly."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facts import Facts, position, status
from whyhang.engine.headline import WAITING, name_ranks
from whyhang.engine.world import Subject
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet


def contradictions(facts: Facts) -> tuple[str, ...]:
    """What the sources disagree about in the last sample, each kind once with its ranks."""
    if facts.world.sample_count == 0:
        return ()
    return tuple(_found(facts))


def _found(facts: Facts) -> Iterator[str]:
    subjects = facts.world.ranks.subjects
    failed = {r for e in facts.world.incident.events if e.kind == "rank_failed" for r in e.ranks}
    runs = RankSet(rank for rank in failed if rank in subjects and _runs(facts, subjects[rank]))
    if runs:
        yield f"the log says that {name_ranks(runs)} ended, but a process of that rank runs"
    dead = RankSet(rank for rank in facts.comms.ras_dead() if rank in subjects)
    read = RankSet(rank for rank in dead if _is_read(facts, subjects[rank]))
    if read:
        yield f"NCCL RAS gave {name_ranks(read)} up as dead, but its stack was read"
    waits = RankSet(
        rank
        for rank, subject in subjects.items()
        if facts.comms.fr_behind(rank) is True and _waits(facts, subject)
    )
    if waits:
        yield (
            f"the flight recorder says that others wait for {name_ranks(waits)}, but its stack "
            "waits in communication: another collective, or an older dump"
        )


def _runs(facts: Facts, subject: Subject) -> bool:
    return status(facts, subject, facts.world.sample_count - 1) == "running"


def _is_read(facts: Facts, subject: Subject) -> bool:
    last = facts.world.sample_count - 1
    return _runs(facts, subject) and not isinstance(position(facts, subject, last), Missing)


def _waits(facts: Facts, subject: Subject) -> bool:
    top = position(facts, subject, facts.world.sample_count - 1)
    return isinstance(top, Frame) and bool(facts.positions.claims(top) & WAITING)
