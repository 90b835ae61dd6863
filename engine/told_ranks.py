"""Ranks of trainers whose environment tells none: from NCCL RAS, and from prefixes of log lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import MAX_RANK, RankSet
from whyhang.schemas.ras import JsonReply

# Ray's prefix before torch's, what Ray Train says of its workers, and torch's set-up line.
_PID_AND_RANK = (
    re.compile(r"\([\w.]{1,80} pid=(\d{1,9})(?:, ip=[\d.]+)?\)\D{0,80}?\[rank ?=? ?(\d{1,7})[\],]"),
    re.compile(r"\bpid=(\d{1,9})\)? world_rank=(\d{1,7})\b"),
)
_LONGEST = 1000
Key = tuple[str, int]


def with_told_ranks(incident: Incident) -> Incident:
    """The incident with the ranks that RAS or the log tell of trainers without one.

    A number that two sources, two processes or a known rank contradict is not believed.
    """
    nameless = {p.key for s in incident.samples for p in s.processes if _is_nameless(p)}
    if not nameless:
        return incident
    told = _undisputed(incident, nameless)
    if not told:
        return incident
    return replace(
        incident,
        samples=tuple(_named(sample, told) for sample in incident.samples),
        nodes=tuple(_with(node, told) for node in incident.nodes),
    )


def _is_nameless(process: Process) -> bool:
    return process.kind == "trainer" and process.rank is None


def _undisputed(incident: Incident, nameless: set[Key]) -> dict[Key, int]:
    by_pid: dict[int, list[Key]] = {}
    for key in nameless:
        by_pid.setdefault(key[1], []).append(key)
    claims: dict[int, set[int]] = {}
    for pid, rank in (*_from_ras(incident), *_from_log(incident.log_excerpt)):
        claims.setdefault(pid, set()).add(rank)
    taken = {p.rank for s in incident.samples for p in s.processes if p.kind == "trainer"} | {
        rank for node in incident.nodes for rank in node.ranks
    }
    found = {
        by_pid[pid][0]: next(iter(ranks))
        for pid, ranks in claims.items()
        if len(ranks) == 1 and len(by_pid.get(pid, ())) == 1 and not ranks & taken
    }
    counts = list(found.values())
    return {key: rank for key, rank in found.items() if counts.count(rank) == 1}


def _from_ras(incident: Incident) -> Iterator[tuple[int, int]]:
    """The members of communicators as large as the job: there a rank is the job's own."""
    for report in incident.ras:
        for comm in report.communicators if isinstance(report, JsonReply) else ():
            pids = [member.pid for member in comm.members]
            if comm.size != incident.world_size or len(set(pids)) < len(pids):
                continue
            yield from ((m.pid, m.rank) for m in comm.members if m.pid is not None)


def _from_log(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    for line in lines:
        for pattern in _PID_AND_RANK:
            for match in pattern.finditer(line[:_LONGEST]):
                if int(match[2]) <= MAX_RANK:
                    yield int(match[1]), int(match[2])


def _named(sample: Snapshot, told: Mapping[Key, int]) -> Snapshot:
    """The sample with these ranks, also of what the trainers started."""
    parents = {p.key: p.ppid for p in sample.processes}

    def rank_of(process: Process) -> int | None:
        pid: int | None = process.pid
        for _ in range(len(parents)):
            if pid is None or (process.node, pid) in told:
                break
            pid = parents.get((process.node, pid))
        return None if pid is None else told.get((process.node, pid))

    return replace(
        sample,
        processes=tuple(
            process if process.rank is not None else replace(process, rank=rank_of(process))
            for process in sample.processes
        ),
    )


def _with(node: Node, told: Mapping[Key, int]) -> Node:
    return replace(
        node, ranks=node.ranks | RankSet(r for (n, _), r in told.items() if n == node.name)
    )
