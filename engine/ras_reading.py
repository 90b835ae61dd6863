"""What RAS replies mean: who is behind, who is gone, and which of our processes that is.

Counts are of operations that the host has launched. A rank with a lower count has not come to that
operation: it is stuck elsewhere. Counts that moved between two replies belong to a living job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from whyhang.schemas.ras import (
    CommGroup,
    Communicator,
    JsonReply,
    MissingRank,
    RasBlock,
    RasMember,
    RasProcess,
    RasRank,
    RasReport,
    TextReply,
)

# Reported by ranks that lost a peer: the peer is the one to look at.
_CONSEQUENCES = frozenset({"Remote process error", "NCCL operation in progress"})
_ERROR_NAMES = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RasSuspect:
    """A rank or process that a reply sets apart. ``comm`` is the communicator's hash."""

    reason: str
    comm: str | None = None
    rank: int | None = None
    pid: int | None = None
    host: str | None = None
    behind_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RasReading:
    """What one reply says, in the light of an earlier one.

    ``mismatch``: counts differ and did not move. ``missing`` counts processes that did not
    answer; None where the reply does not tell.
    """

    mismatch: bool | None
    missing: int | None
    suspects: tuple[RasSuspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    count: int
    n: int
    ranks: tuple[RasRank | RasMember, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mismatch:
    """One operation of one communicator, its sides by falling count."""

    comm: str | None
    op: str | None
    sides: tuple[_Side, ...]

    @property
    def key(self) -> tuple[str | None, str | None]:
        return self.comm, self.op


def read_report(report: RasReport, earlier: RasReport | None = None) -> RasReading:
    """Read a report; ``earlier`` is one of the same hang, some seconds older."""
    mismatches = list(_mismatches(report))
    if earlier is not None:
        before = {mismatch.key: mismatch for mismatch in _mismatches(earlier)}
        mismatches = [m for m in mismatches if not _moved(before.get(m.key), m, earlier)]
    suspects = [*_gone(report), *_erring(report), *_apart(mismatches)]
    tells = report.complete or bool(suspects) or bool(mismatches)
    return RasReading(
        mismatch=bool(mismatches) if tells else None,
        missing=_count_missing(report) if tells else None,
        suspects=tuple(dict.fromkeys(suspects)),
    )


def _moved(before: _Mismatch | None, now: _Mismatch, earlier: RasReport) -> bool:
    """Whether the counts of an operation changed; no earlier mismatch means that they did."""
    if before is None:
        return earlier.complete
    return {side.count for side in before.sides} != {side.count for side in now.sides}


def _mismatches(report: RasReport) -> Iterator[_Mismatch]:
    if isinstance(report, JsonReply):
        for comm in report.communicators:
            yield from _json_mismatches(comm)
        return
    for block in _blocks(report):
        for group in block.count_groups or ():
            sides = (_Side(count=v.op_count, n=v.n, ranks=v.ranks) for v in group.values)
            yield _Mismatch(comm=_hash(block), op=group.op, sides=_by_falling_count(sides))


def _json_mismatches(comm: Communicator) -> Iterator[_Mismatch]:
    members = {member.rank: member for member in comm.members}
    for operation, counts in comm.count_mismatch().items():
        sides = (
            _Side(count=count, n=len(ranks), ranks=tuple(members[rank] for rank in ranks))
            for count, ranks in counts.items()
        )
        yield _Mismatch(comm=comm.hash, op=operation, sides=_by_falling_count(sides))


def _by_falling_count(sides: Iterable[_Side]) -> tuple[_Side, ...]:
    return tuple(sorted(sides, key=lambda side: -side.count))


def _apart(mismatches: list[_Mismatch]) -> Iterator[RasSuspect]:
    """The odd side of each mismatch; nobody where neither side is the smaller one.

    A lone rank ahead of all others ran an operation that they did not run.
    """
    for mismatch in mismatches:
        sides, name = mismatch.sides, mismatch.op or "collective"
        if len(sides) < 2:
            continue
        total, top = sum(side.n for side in sides), sides[0]
        lower = sides[1:]
        if top.n == 1 and len(lower) == 1 and total > 2:
            yield from _named(mismatch, top, f"ahead:{name}", None)
        elif 2 * sum(side.n for side in lower) < total:
            for side in lower:
                yield from _named(mismatch, side, f"behind:{name}", top.count - side.count)


def _named(
    mismatch: _Mismatch, side: _Side, reason: str, behind_by: int | None
) -> Iterator[RasSuspect]:
    for rank in side.ranks or ():
        yield RasSuspect(
            reason=reason,
            comm=mismatch.comm,
            rank=rank.rank,
            pid=rank.pid,
            host=rank.host,
            behind_by=behind_by,
        )


def _gone(report: RasReport) -> Iterator[RasSuspect]:
    """Processes that did not answer: stopped, frozen, exited, or cut off."""
    if isinstance(report, JsonReply):
        for comm in report.communicators:
            for missing in comm.missing:
                if missing.unresponsive is not False:
                    yield _gone_rank(missing, comm.hash, dead=missing.considered_dead is True)
        return
    for block in _blocks(report):
        reason = block.kind.lower()
        if block.kind in ("DEAD", "INCOMPLETE"):
            for process in block.processes or ():
                yield RasSuspect(reason=reason, pid=process.pid, host=process.host)
            for rank in block.ranks or ():
                yield _gone_rank(rank, _hash(block), dead=False)


def _gone_rank(rank: RasRank | MissingRank, comm: str | None, *, dead: bool) -> RasSuspect:
    return RasSuspect(
        reason="dead" if dead else "incomplete",
        comm=comm,
        rank=rank.rank,
        pid=rank.pid,
        host=rank.host,
    )


def _erring(report: RasReport) -> Iterator[RasSuspect]:
    """Ranks with an error of their own. Ranks that only lost a peer are not named."""
    if isinstance(report, JsonReply):
        for comm in report.communicators:
            for member in comm.members:
                name = _ERROR_NAMES.get(member.async_error or 0)
                if name is not None:
                    yield RasSuspect(
                        reason=f"asynchronous:{name}",
                        comm=comm.hash,
                        rank=member.rank,
                        pid=member.pid,
                        host=member.host,
                    )
        return
    for block in _blocks(report):
        for group in block.error_groups or ():
            for value in group.values:
                for rank in value.ranks or ():
                    if value.error not in _CONSEQUENCES:
                        yield RasSuspect(
                            reason=f"{group.phase}:{value.error}",
                            comm=_hash(block),
                            rank=rank.rank,
                            pid=rank.pid,
                            host=rank.host,
                        )


def _count_missing(report: RasReport) -> int:
    if isinstance(report, JsonReply):
        return len(
            {
                (rank.host, rank.pid) if rank.pid is not None else (comm.hash, rank.rank)
                for comm in report.communicators
                for rank in comm.missing
                if rank.unresponsive is not False
            }
        )
    blocks = list(_blocks(report))
    processes = [block.count or 0 for block in blocks if block.comm is None and _is_gone(block)]
    ranks = [block.count or 0 for block in blocks if block.comm is not None and _is_gone(block)]
    # A dead process is dead for all its communicators: they are not added up.
    return max(sum(processes), max(ranks, default=0))


def _is_gone(block: RasBlock) -> bool:
    return block.kind in ("DEAD", "INCOMPLETE")


def _blocks(report: TextReply) -> Iterator[RasBlock]:
    """The blocks of communicators that exist, and those of the job."""
    for block in report.blocks:
        if block.comm is None or block.comm.group not in report.ghosts:
            yield block


def _hash(block: RasBlock) -> str | None:
    return None if block.comm is None else block.comm.hash


Owner = tuple[str, int]


def owners(report: RasReport) -> frozenset[Owner]:
    """All (host, pid) that a report names."""
    return frozenset(_owners(report))


def _owners(report: RasReport) -> Iterator[Owner]:
    found: list[RasRank | RasProcess | RasMember | MissingRank] = []
    if isinstance(report, JsonReply):
        for comm in report.communicators:
            found += [*comm.members, *comm.missing]
    else:
        for block in _blocks(report):
            found += [*(block.processes or ()), *(block.ranks or ())]
            for status in block.status_groups or ():
                found += status.ranks or ()
            for counts in block.count_groups or ():
                for count in counts.values:
                    found += count.ranks or ()
            for errors in block.error_groups or ():
                for error in errors.values:
                    found += error.ranks or ()
    for each in found:
        if each.pid is not None and each.host is not None:
            yield each.host, each.pid


def join_ranks(report: RasReport, trainers: Mapping[Owner, int]) -> Mapping[Owner, int]:
    """Global ranks of the (host, pid) of a report; ``trainers`` holds ours by (node, pid).

    Hosts are addresses and nodes are names: a host is the node that shares most pids with it. A
    tie is left open.
    """
    on_node: dict[str, dict[int, int]] = {}
    for (node, pid), rank in trainers.items():
        on_node.setdefault(node, {})[pid] = rank
    on_host: dict[str, set[int]] = {}
    for host, pid in owners(report):
        on_host.setdefault(host, set()).add(pid)
    joined: dict[Owner, int] = {}
    for host, pids in on_host.items():
        shared = Counter({node: len(pids & known.keys()) for node, known in on_node.items()})
        best = [host] if host in on_node else [node for node, _ in shared.most_common(2)]
        if not best or not shared[best[0]]:
            continue
        if len(best) > 1 and shared[best[0]] == shared[best[1]]:
            continue
        known = on_node[best[0]]
        joined.update({(host, pid): known[pid] for pid in pids if pid in known})
    return joined


def comm_sizes(report: RasReport) -> Mapping[str, int]:
    """How many ranks each communicator has that a report names, by its hash."""
    if isinstance(report, JsonReply):
        return {comm.hash: comm.size for comm in report.communicators}
    rows = {row.group: row.ranks_per_comm for row in report.groups}
    return {
        block.comm.hash: rows[block.comm.group]
        for block in _blocks(report)
        if block.comm is not None and block.comm.group in rows
    }


def is_our_job(
    report: RasReport, local_pids: Iterable[int], *, processes: int | None = None
) -> bool | None:
    """Whether the report is about the job of these local trainers; None where it does not tell.

    Jobs on one node share the default port, and any of them may have answered.
    """
    ours = set(local_pids)
    named = {pid for _, pid in owners(report)}
    if isinstance(report, JsonReply) and named and ours:
        return bool(named & ours)
    if named & ours:
        return True
    job = report.job if isinstance(report, TextReply) else None
    if job is not None and job.processes is not None and processes is not None:
        return None if job.processes == processes else False
    return None


def row_text(row: CommGroup) -> str:
    """One line about a row of the table of communicators."""
    low, high = row.ranks_per_node
    spread = str(low) if low == high else f"{low}-{high}"
    return (
        f"{row.comms} communicator{'s' * (row.comms != 1)} of {row.ranks_per_comm} ranks "
        f"({spread} per node on {row.nodes_per_comm}): {row.status}, "
        f"{', '.join(row.errors) or 'OK'}"
    )
