"""Who is missing where the log only names those who are there, and the reverse."""

from __future__ import annotations

import re
from dataclasses import replace

from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import LogEvent
from whyhang.schemas.rankset import MAX_RANK, NOBODY, RankSet

SUBMITTED, NOT_SUBMITTED = "op_submitted", "op_not_submitted"
WAITING, ABSENT = "store_waiting", "store_absent"
STATUS_KINDS = ("watchdog_status", "dump_signal")
# What a rank wrote of the group of all ranks when a collective had timed out.
_ENQUEUED = re.compile(r"\[PG ID 0 .{0,200}[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,18})")
# How many had come to PyTorch's store-based barrier when a rank wrote its line.
_CAME = re.compile(r"world_size=(\d{1,8}), worker_count=(\d{1,8})")


def name_absent(incident: Incident) -> Incident:
    """The incident with an event more for those whom a list of the others leaves out."""
    found = [
        _not_submitted(incident),
        _submitted(incident),
        _not_enqueued(incident),
        _not_at_the_store(incident),
    ]
    more = tuple(event for event in found if event is not None)
    return replace(incident, events=(*incident.events, *more)) if more else incident


def _not_submitted(incident: Incident) -> LogEvent | None:
    """Horovod lists the ranks that are ready; of several lines the last one counts."""
    size = incident.world_size
    lines = [event for event in incident.events if event.kind == SUBMITTED and event.ranks]
    if not lines or size is None or not 0 < size <= MAX_RANK:
        return None
    absent = RankSet(range(size)) - lines[-1].ranks
    return replace(lines[-1], kind=NOT_SUBMITTED, ranks=absent) if absent else None


def _submitted(incident: Incident) -> LogEvent | None:
    """Horovod lists the ranks that are missing: so all others are there."""
    size = incident.world_size
    lines = [event for event in incident.events if event.kind == NOT_SUBMITTED and event.ranks]
    if not lines or size is None or not 0 < size <= MAX_RANK:
        return None
    if any(event.kind == SUBMITTED for event in incident.events):
        return None
    others = RankSet(range(size)) - lines[-1].ranks
    return replace(lines[-1], kind=SUBMITTED, ranks=others) if others else None


def _not_enqueued(incident: Incident) -> LogEvent | None:
    """After a timeout ranks write how many collectives they had enqueued; a few enqueued fewer.

    The first number of a rank counts: later ones are of what the timeout tore down.
    """
    counts: dict[int, int] = {}
    last = None
    for event in incident.events:
        found = _ENQUEUED.search(event.line) if event.kind in STATUS_KINDS else None
        if found is None or len(event.ranks) != 1:
            continue
        counts.setdefault(next(iter(event.ranks)), int(found[1]))
        last = event
    if last is None:
        return None
    behind = RankSet(rank for rank, count in counts.items() if count < max(counts.values()))
    if not behind or len(behind) * 2 >= len(counts):
        return None
    return replace(last, kind=NOT_SUBMITTED, ranks=behind)


def _not_at_the_store(incident: Incident) -> LogEvent | None:
    """Each rank that waits at the store writes its number and how many came.

    The missing ones are known where all that came have written; else only that some are missing.
    """
    lines = [event for event in incident.events if event.kind == WAITING]
    counted = _CAME.search(lines[-1].line) if lines else None
    if counted is None:
        return None
    size, came = int(counted[1]), int(counted[2])
    if not came < size <= MAX_RANK:
        return None
    written = NOBODY
    for event in lines:
        written = written | event.ranks
    absent = RankSet(range(size)) - written if len(written) == came else NOBODY
    return replace(lines[-1], kind=ABSENT, ranks=absent)
