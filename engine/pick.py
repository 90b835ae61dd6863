"""Picks single processes of an incident, as people name them."""

from __future__ import annotations

import re

from whyhang.schemas.errors import UsageError
from whyhang.schemas.incident import Incident, Snapshot
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.words import ProcessKind

_NAMED = re.compile(r"(?P<rank>\d+)(?:@(?P<sample>\d+))?")


def sample_of(incident: Incident, index: int | None) -> Snapshot:
    """A sample by its index, the last one for None. Raises UsageError where there is none."""
    for sample in reversed(incident.samples):
        if index is None or sample.index == index:
            return sample
    there = ", ".join(str(sample.index) for sample in incident.samples) or "none"
    raise UsageError(
        "no such sample" if incident.samples else "no sample was taken", hint=f"samples: {there}"
    )


def pick(
    sample: Snapshot,
    *,
    rank: int | None = None,
    kind: ProcessKind | None = None,
    worker: int | None = None,
    gpu: int | None = None,
    pid: int | None = None,
    node: str | None = None,
) -> tuple[Process, ...]:
    """The processes that all given words fit. Raises UsageError where there is none.

    ``gpu`` is the device's number or, where that is unknown, the local rank.
    """
    found = tuple(
        process
        for process in sample.processes
        if (rank is None or process.rank == rank)
        and (kind is None or process.kind == kind)
        and (worker is None or process.worker == worker)
        and (gpu is None or gpu in (process.gpu_index, process.local_rank))
        and (pid is None or process.pid == pid)
        and (node is None or process.node == node)
    )
    if not found:
        ranks = RankSet(p.rank for p in sample.processes if p.rank is not None)
        kinds = ", ".join(dict.fromkeys(process.kind for process in sample.processes))
        raise UsageError(
            "no such process in that sample",
            hint=f"ranks: {ranks or 'none'}; kinds: {kinds or 'none'}",
        )
    return found


def pick_named(incident: Incident, name: str, *, kind: ProcessKind = "trainer") -> Process:
    """``3`` is rank 3 in the last sample, ``3@0`` the same in sample 0."""
    match = _NAMED.fullmatch(name)
    if match is None:
        raise UsageError(f"{name}: not a rank", hint="write 3, or 3@0 for rank 3 in sample 0")
    index = None if match["sample"] is None else int(match["sample"])
    return pick(sample_of(incident, index), rank=int(match["rank"]), kind=kind)[0]
