"""``whyhang fr DIR``: analyses flight recorder dumps of a job that hangs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whyhang.engine.flight_analysis import FlightAnalysis, FlightSuspect, Operation, Waiting
    from whyhang.engine.flight_record import GroupKey

_REASONS = {
    "missing": "never came to it and waits for nothing itself",
    "lagging": "has not finished what its peers have finished",
    "odd": "brought another operation or other sizes than the rest",
    "crossed": "waits in another operation than the ranks that wait for it",
    "not_started": "has enqueued it, but not started it",
    "no_dump": "no dump tells where it is, and all others have come",
}
MAX_GROUPS_SHOWN = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``fr``."""
    parser.add_argument(
        "directory",
        type=Path,
        help="dumps whose names carry the rank, pickles or JSON, or a file with several under "
        "headings that name their ranks",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--world-size", type=int, help="the number of ranks, where dumps are lost")


def run(options: argparse.Namespace) -> int:
    """Read the dumps, find out who is missing, print it."""
    from whyhang.collectors.flight_recorder import read_dumps
    from whyhang.engine.flight_analysis import analyse
    from whyhang.schemas.errors import UsageError

    try:
        dumps, problems = read_dumps(options.directory)
    except OSError as error:
        raise UsageError(f"cannot read {options.directory}: {error.strerror}") from error
    if not dumps:
        reasons = "; ".join(list(problems.values())[:3])
        raise UsageError(
            f"no flight recorder dump in {options.directory}" + (f": {reasons}" if reasons else ""),
            hint="set TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE before PyTorch 2.6) and "
            "TORCH_NCCL_DUMP_ON_TIMEOUT=1; names carry the rank (nccl_trace_rank_3), or "
            "headings in one file do",
        )
    analysis = analyse(dumps, world_size=_bounded(options.world_size))
    if options.format == "json":
        print(json.dumps(_document(analysis, problems), indent=1))
        return 0
    for line in _lines(analysis, problems):
        print(line)
    return 0


def _bounded(size: int | None) -> int | None:
    from whyhang.collectors.flight_recorder import MAX_RANKS

    return None if size is None else max(0, min(size, MAX_RANKS))


def _document(analysis: FlightAnalysis, problems: Mapping[int, str]) -> dict[str, Any]:
    record = analysis.record
    return {
        "format": "whyhang.flight/1",
        "world_size": len(record.world),
        "ranks": str(_ranks(record.dumps)),
        "unread": str(analysis.unread),
        "stale": str(analysis.stale),
        "problems": {str(rank): why for rank, why in problems.items()},
        "groups": [_group(analysis, key) for key in record.groups()],
        "waiting": [_waiting(analysis, waiting) for waiting in analysis.waiting],
        "sizes_differ": [
            {**_operation(analysis, op), "ranks": {str(rank): text for rank, text in by.items()}}
            for op, by in analysis.sizes.items()
        ],
        "lagging": str(analysis.lagging),
        "suspects": {
            "ranks": str(analysis.ranks),
            "rank_list": list(analysis.ranks),
            "reasons": [_suspect(analysis, suspect) for suspect in analysis.suspects],
        },
    }


def _group(analysis: FlightAnalysis, key: GroupKey) -> dict[str, Any]:
    record = analysis.record
    last: dict[str, dict[str, int | None]] = {}
    for rank in key.ranks:
        if rank in record.dumps:
            status = record.status(rank, key)
            last[str(rank)] = {
                "enqueued": record.last_enqueued(rank, key),
                "started": None if status is None else status.started,
                "completed": record.last_completed(rank, key),
            }
    return {
        "name": key.name,
        "description": record.description(key),
        "ranks": str(_ranks(key.ranks)),
        "last": last,
    }


def _operation(analysis: FlightAnalysis, op: Operation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "group": op.group.name,
        "description": analysis.record.description(op.group),
    }
    if op.transfer is None:
        document["seq"] = op.seq
    else:
        document["transfer"] = list(op.transfer)
    return document


def _waiting(analysis: FlightAnalysis, waiting: Waiting) -> dict[str, Any]:
    return {
        "rank": waiting.rank,
        "op": waiting.entry.op,
        "state": waiting.entry.state,
        **_operation(analysis, waiting.operation),
        "frames": list(waiting.entry.frames[:8]),
    }


def _suspect(analysis: FlightAnalysis, suspect: FlightSuspect) -> dict[str, Any]:
    document: dict[str, Any] = {
        "rank": suspect.rank,
        "reason": suspect.reason,
        "waiting": str(suspect.waiting),
    }
    if suspect.operation is not None:
        document.update(_operation(analysis, suspect.operation))
    return document


def _lines(analysis: FlightAnalysis, problems: Mapping[int, str]) -> Iterator[str]:
    record = analysis.record
    yield f"flight recorder dumps of {len(record.dumps)} of {len(record.world)} ranks"
    for rank, why in list(problems.items())[:20]:
        yield f"  rank {rank} unread: {why}"
    missing = analysis.unread - analysis.stale
    if missing:
        yield f"  no dump: ranks {missing.format(8)}"
    if analysis.stale:
        yield f"  dump of an earlier moment, not used: ranks {analysis.stale.format(8)}"
    yield "what each rank waits in, oldest first:"
    together: dict[tuple[str, str], list[int]] = {}
    for waiting in analysis.waiting:
        together.setdefault((_spell(analysis, waiting.operation), waiting.entry.op), []).append(
            waiting.rank
        )
    for (place, name), ranks in list(together.items())[:MAX_GROUPS_SHOWN]:
        yield f"  {_ranks(ranks)}: {name} in {place}"
    idle = _ranks(rank for rank in record.dumps if not record.pending(rank))
    if idle:
        yield f"  {idle}: nothing unfinished"
    for op, brought in list(analysis.sizes.items())[:MAX_GROUPS_SHOWN]:
        yield f"ranks differ in {_spell(analysis, op)}:"
        sides: dict[str, list[int]] = {}
        for rank, text in brought.items():
            sides.setdefault(text, []).append(rank)
        for text, ranks in sides.items():
            yield f"  {_ranks(ranks).format(8)}: {text}"
    yield from _verdict(analysis)


def _verdict(analysis: FlightAnalysis) -> Iterator[str]:
    if not analysis.suspects:
        yield "suspects: none can be named from these dumps"
        for op in analysis.stuck[:4]:
            yield (
                f"  all ranks of {_spell(analysis, op)} have come to it and it does not end: look "
                "at their GPUs and the network between them"
            )
        return
    yield f"suspects: {analysis.ranks}"
    for suspect in analysis.suspects:
        where = "" if suspect.operation is None else f" in {_spell(analysis, suspect.operation)}"
        yield (
            f"  rank {suspect.rank}: {_REASONS[suspect.reason]}; ranks "
            f"{suspect.waiting.format(8)} wait for it{where}"
        )
    yield "  (of a job that hangs: dumps of a running one name whoever was last)"


def _spell(analysis: FlightAnalysis, op: Operation) -> str:
    name = analysis.record.description(op.group)
    group = f"group {op.group.name}" + (f" ({name})" if name else "")
    if op.transfer is not None:
        return f"{group}, rank {op.transfer[0]} to rank {op.transfer[1]}"
    return f"{group}, collective {op.seq}"


def _ranks(ranks: Any) -> Any:
    from whyhang.schemas.rankset import RankSet

    return RankSet(ranks)
