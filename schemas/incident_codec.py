"""``incident.json`` to types and back. Pure: reads and writes no file.

Readers ignore unknown keys, and take missing ones, null and values of a wrong type for unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict

import msgspec
from msgspec import Struct

from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.errors import FormatError
from whyhang.schemas.incident import FORMAT, Incident, Node, Source
from whyhang.schemas.lenient import decode_leniently
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.wire import choice, rank_or_none, reader
from whyhang.schemas.words import PHASES

_RANK = re.compile(r"[0-9]{1,7}")


class _Node(Struct):
    name: str | None = None
    ranks: str | None = None
    unread: str | None = None
    status: str | None = None
    reason: str | None = None


class _Progress(Struct):
    state: str | None = None
    preset: str | None = None
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    stalled_seconds: float | None = None
    threshold_seconds: float | None = None
    median_interval_seconds: float | None = None
    phase: str | None = None
    last_line: str | None = None
    per_rank_step: dict[str, int | None] | None = None


class _Checkpoint(Struct):
    name: str | None = None
    step: int | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None


class _Sample(Struct):
    index: int | None = None
    at: str | None = None
    monotonic_seconds: float | None = None


class _Source(Struct):
    ok: bool | None = None
    reason: str | None = None


class _Index(Struct):
    format: str
    print_id: str | None = None
    job_id: str | None = None
    job_name: str | None = None
    framework: str | None = None
    taken_at: str | None = None
    finished_at: str | None = None
    trigger: str | None = None
    world_size: int | None = None
    nodes: list[_Node] | None = None
    samples: list[_Sample] | None = None
    progress: _Progress | None = None
    checkpoint: _Checkpoint | None = None
    sources: dict[str, _Source | None] | None = None
    whyhang: str | None = None


class SampleTime(Struct, frozen=True):
    """When a sample was taken; ``monotonic_seconds`` counts from sample 0."""

    index: int
    at: str
    monotonic_seconds: float


def decode_index(data: bytes) -> tuple[Incident, tuple[SampleTime, ...]]:
    """Decode ``incident.json``: the incident without samples, and when those were taken.

    Raises FormatError.
    """
    decoder = msgspec.json.Decoder(_Index, strict=False)
    wire, ignored = decode_leniently(data, reader(decoder, "an incident index"))
    problems = list(ignored)
    if wire.format.partition("/")[0] != FORMAT.partition("/")[0]:
        raise FormatError(f"format is {wire.format!r}, expected {FORMAT!r}")
    if wire.format != FORMAT:
        raise FormatError(
            f"format is {wire.format!r}, this release reads {FORMAT!r}",
            hint="use the release of whyhang that wrote the incident, or a newer one",
        )
    incident = Incident(
        print_id=wire.print_id,
        job_id=wire.job_id,
        job_name=wire.job_name,
        framework=wire.framework,
        taken_at=wire.taken_at,
        finished_at=wire.finished_at,
        trigger=choice(wire.trigger, ("stall", "manual", "exit", "import"), "manual"),
        world_size=rank_or_none(wire.world_size) or None,
        nodes=tuple(_node(number, node, problems) for number, node in enumerate(wire.nodes or ())),
        progress=_progress(wire.progress or _Progress()),
        checkpoint=None if wire.checkpoint is None else _checkpoint(wire.checkpoint),
        sources=_sources(wire.sources or {}, problems),
        whyhang=wire.whyhang,
    )
    return incident, _sample_times(wire.samples or [])


def _node(number: int, wire: _Node, problems: list[str]) -> Node:
    name = wire.name or f"node{number}"
    return Node(
        name=name,
        ranks=_rank_set(wire.ranks, f"ranks of {name}", problems),
        unread=_rank_set(wire.unread, f"unread ranks of {name}", problems),
        status=choice(wire.status, ("ok", "partial", "missing", "not_collected"), "ok"),
        reason=wire.reason,
    )


def _rank_set(text: str | None, what: str, problems: list[str]) -> RankSet:
    try:
        return RankSet.parse(text or "")
    except ValueError as error:
        problems.append(f"{what}: {error}")
        return NOBODY


def _sources(wires: Mapping[str, _Source | None], problems: list[str]) -> Mapping[str, Source]:
    found = {
        name: Source(ok=bool(wire.ok), reason=wire.reason)
        for name, wire in wires.items()
        if wire is not None
    }
    if problems:
        found["index"] = Source(ok=False, reason="; ".join(problems[:5]))
    return found


def _sample_times(wires: list[_Sample]) -> tuple[SampleTime, ...]:
    """The samples in the order of their indexes, each once: read twice, it would prove stillness.

    One without an index has that of its place.
    """
    found: dict[int, SampleTime] = {}
    for place, wire in enumerate(wires):
        index = place if wire.index is None else wire.index
        moment = SampleTime(index, wire.at or "", wire.monotonic_seconds or 0.0)
        found.setdefault(index, moment)
    return tuple(found[index] for index in sorted(found))


def _progress(wire: _Progress) -> Progress:
    return Progress(
        state=choice(wire.state, ("stalled", "advancing", "slow", "unknown"), "unknown"),
        preset=wire.preset,
        step=wire.step,
        total=wire.total,
        epoch=wire.epoch,
        stalled_seconds=wire.stalled_seconds,
        threshold_seconds=wire.threshold_seconds,
        median_interval_seconds=wire.median_interval_seconds,
        phase=choice(wire.phase, PHASES, None),
        last_line=wire.last_line,
        per_rank_step=_rank_keys(wire.per_rank_step or {}),
    )


def _checkpoint(wire: _Checkpoint) -> Checkpoint:
    return Checkpoint(
        name=wire.name,
        step=wire.step,
        age_seconds=wire.age_seconds,
        max_age_seconds=wire.max_age_seconds,
    )


def _rank_keys(steps: Mapping[str, int | None]) -> Mapping[int, int]:
    return {
        int(rank): step
        for rank, step in steps.items()
        if step is not None and _RANK.fullmatch(rank)
    }


def encode_index(incident: Incident) -> bytes:
    """``incident.json`` of an incident, indented for people."""
    progress = incident.progress
    wire = {
        "format": FORMAT,
        "print_id": incident.print_id,
        "job_id": incident.job_id,
        "job_name": incident.job_name,
        "framework": incident.framework,
        "taken_at": incident.taken_at,
        "finished_at": incident.finished_at,
        "trigger": incident.trigger,
        "world_size": incident.world_size,
        "nodes": [
            {
                "name": node.name,
                "ranks": str(node.ranks),
                "unread": str(node.unread),
                "status": node.status,
                "reason": node.reason,
            }
            for node in incident.nodes
        ],
        "samples": [
            {"index": s.index, "at": s.at, "monotonic_seconds": s.monotonic_seconds}
            for s in incident.samples
        ],
        "checkpoint": None if incident.checkpoint is None else asdict(incident.checkpoint),
        "progress": {
            "preset": progress.preset,
            "step": progress.step,
            "total": progress.total,
            "epoch": progress.epoch,
            "stalled_seconds": progress.stalled_seconds,
            "threshold_seconds": progress.threshold_seconds,
            "median_interval_seconds": progress.median_interval_seconds,
            "phase": progress.phase,
            "state": progress.state,
            "last_line": progress.last_line,
            "per_rank_step": {str(k): v for k, v in sorted(progress.per_rank_step.items())} or None,
        },
        "sources": {
            name: {"ok": source.ok, "reason": source.reason}
            for name, source in incident.sources.items()
        },
        "whyhang": incident.whyhang,
    }
    return msgspec.json.format(msgspec.json.encode(wire), indent=1) + b"\n"
