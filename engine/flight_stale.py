"""Dumps that are older than what the other ranks have finished.

A collective that needs everybody cannot be over on one rank while another has not come to it. Where
dumps say so, one of them is of an earlier moment, or of an earlier attempt of the job: it tells
nothing of where its rank is now.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from whyhang.engine.flight_record import FlightRecord


def stale_ranks(record: FlightRecord) -> frozenset[int]:
    """The fewest ranks without whose dumps the others agree; of equals, those that end earliest."""
    groups = [counts for counts in _counts(record) if _disagree(counts, frozenset())]
    found: frozenset[int] = frozenset()
    while True:
        conflicts: dict[int, int] = {}
        for counts in groups:
            for rank, number in _conflicts(counts, found).items():
                conflicts[rank] = conflicts.get(rank, 0) + number
        most = max(conflicts.values(), default=0)
        if not most:
            return found
        equals = [rank for rank, number in conflicts.items() if number == most]
        ends = {rank: _end(record, rank) for rank in equals}
        found |= {rank for rank in equals if ends[rank] == min(ends.values())}


_Counts = Mapping[int, tuple[int, int]]


def _end(record: FlightRecord, rank: int) -> int:
    """When a rank recorded its last operation; 0 where that is unknown."""
    times = (entry.created_ns for entry in record.dumps[rank].entries)
    return max((at for at in times if at is not None), default=0)


def _counts(record: FlightRecord) -> list[_Counts]:
    """By group, of every rank: the last collective that it came to, and the last that is over."""
    return [
        {
            rank: (last, record.last_over(rank, key))
            for rank in key.ranks
            if (last := record.last_enqueued(rank, key)) is not None
        }
        for key in record.groups()
        if record.counts_collectives(key)
    ]


def _disagree(counts: _Counts, without: frozenset[int]) -> bool:
    left = [pair for rank, pair in counts.items() if rank not in without]
    return bool(left) and max(over for _, over in left) > min(last for last, _ in left)


def _conflicts(counts: _Counts, without: frozenset[int]) -> dict[int, int]:
    """With how many others each rank disagrees."""
    if not _disagree(counts, without):
        return {}
    left = {rank: pair for rank, pair in counts.items() if rank not in without}
    lasts = sorted(last for last, _ in left.values())
    overs = sorted(over for _, over in left.values())
    return {
        rank: bisect_left(lasts, over) + len(overs) - bisect_right(overs, last)
        for rank, (last, over) in left.items()
    }
