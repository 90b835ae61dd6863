"""What was not read: which ranks, why, and what helps. Nobody is accused or cleared by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from whyhang.engine.facets import process_of
from whyhang.engine.facts import Facts, main_stack, status
from whyhang.engine.suspects import rank_classes
from whyhang.engine.world import Subject
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet
from whyhang.schemas.unread import UnreadKind
from whyhang.schemas.verdict import NotSeen

_SHOWN_PIDS = 8


@dataclass(frozen=True, slots=True)
class _Why:
    """A reason; equal ones are told of once."""

    reason: str
    kind: UnreadKind | None = None
    cure: str | None = None


def not_seen(facts: Facts) -> tuple[NotSeen, ...]:
    """The ranks whose stack was not read in the last sample, grouped by the reason."""
    found: dict[_Why, RankSet] = {}
    for first, members in rank_classes(facts):
        why = _why_unread(facts, facts.world.ranks.subjects[first])
        if why is not None:
            found[why] = found.get(why, NOBODY) | members
    for node in facts.world.incident.nodes:
        if not node.was_asked and node.ranks:
            why = _Why(f"{node.name}: {node.reason or 'not collected'}")
            found[why] = found.get(why, NOBODY) | node.ranks
    absent, closed = _absent(facts, found), _closed(facts)
    if len(closed) == 1 and len(absent) == sum(map(len, closed.values())):
        # Nobody else is left to be these ranks.
        found.update({_named(why, pids): absent for why, pids in closed.items()})
    else:
        found.update({_Why("no process of these ranks was found"): absent} if absent else {})
        found.update({_named(why, pids): NOBODY for why, pids in closed.items()})
    return tuple(
        NotSeen(ranks=ranks, reason=why.reason, kind=why.kind, cure=why.cure)
        for why, ranks in found.items()
    )


def _absent(facts: Facts, found: Mapping[_Why, RankSet]) -> RankSet:
    """The ranks of the job that nothing has told of; none where its size is unknown."""
    size = facts.world.incident.world_size
    if size is None or not facts.world.ranks.members:
        return NOBODY
    listed = RankSet.from_bits(facts.world.ranks.members)
    for ranks in found.values():
        listed = listed | ranks
    return RankSet.from_bits((1 << min(max(size, 0), MAX_RANK)) - 1) - listed


def _closed(facts: Facts) -> dict[_Why, list[int]]:
    """Trainers whose environment could not be read, and with it their rank; by the reason."""
    last = facts.world.incident.last
    found: dict[_Why, list[int]] = {}
    for process in last.processes if last is not None else ():
        lacks = process.rank is None and isinstance(process.threads, Missing)
        if process.kind == "trainer" and lacks and process.state not in ("Z", "X"):
            why = _of_dump(process.dump, process.threads)
            found.setdefault(why, []).append(process.pid)
    return found


def _named(why: _Why, pids: list[int]) -> _Why:
    return replace(
        why, reason=f"{_name_pids(pids)}, whose rank could not be read either: {why.reason}"
    )


def _name_pids(pids: list[int]) -> str:
    shown = ", ".join(map(str, pids[:_SHOWN_PIDS])) + (", …" if len(pids) > _SHOWN_PIDS else "")
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}"


def _why_unread(facts: Facts, subject: Subject) -> _Why | None:
    """Why a rank's stack is missing in the last sample; None if it was read or has ended."""
    last = facts.world.sample_count - 1
    if last < 0:
        return _Why("no sample was taken")
    if status(facts, subject, last) in ("exited", "zombie"):
        return None
    stack = main_stack(facts, subject, last)
    if not isinstance(stack, Missing):
        return None
    if subject.node is not None and subject.track[last] is None and subject.node.reason:
        return _Why(subject.node.reason)
    process = process_of(subject, last)
    dump = process.dump if isinstance(process, Process) else None
    return _of_dump(dump, stack)


def _of_dump(dump: Dump | None, threads: object) -> _Why:
    reason = threads.reason if isinstance(threads, Missing) else ""
    why = _Why(reason.splitlines()[0] if reason else "unread")
    if dump is None or dump.ok:
        return why
    return replace(why, kind=dump.kind, cure=dump.cure)
