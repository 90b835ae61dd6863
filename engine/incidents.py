"""Reading recorded evidence back: incident directories, and loose dumps by way of ``imported``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from whyhang.collectors.log_events import find_events
from whyhang.engine.comm_files import read_flight_dumps, read_ras_replies
from whyhang.engine.evidence_files import read_lines, read_log_excerpt, read_processes
from whyhang.engine.facts_files import read_facts
from whyhang.engine.foreign_events import classify_events
from whyhang.engine.imported import read_dumps
from whyhang.engine.store import INDEX
from whyhang.engine.told_ranks import with_told_ranks
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.event_codec import decode_log_event, decode_progress_event
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.incident_codec import SampleTime, decode_index
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.process_codec import ProcessReader
from whyhang.schemas.rankset import RankSet


def read_evidence(path: Path) -> Incident:
    """Read an incident directory, a directory of plain dumps, or one file with pasted stacks.

    Raises UsageError where there is none of them, FormatError where the index is not one.
    """
    if (path / INDEX).is_file():
        return read_incident(path)
    if not path.exists():
        raise UsageError(
            f"no such directory: {path}", hint="incidents stand in .whyhang/<print-id>"
        )
    if path.name == INDEX:
        raise UsageError(f"{path} is a file", hint="give the incident's directory")
    return read_dumps(path)


def read_incident(directory: Path) -> Incident:
    """Read an incident directory.

    A torn or foreign line costs that line, not the incident: what could not be read stands in
    ``sources`` as ``files``. Raises UsageError or FormatError where the index cannot be read.
    """
    incident, times = _read_index(directory / INDEX)
    problems: list[str] = []
    samples, nodes = _read_samples(directory, times, incident.nodes, problems)
    history = tuple(read_lines(directory / "progress.jsonl", decode_progress_event, problems))
    excerpt = tuple(read_log_excerpt(directory / "logs", problems))
    events = tuple(
        classify_events(read_lines(directory / "events.jsonl", decode_log_event, problems))
    )
    ras, flight = read_ras_replies(directory, problems), read_flight_dumps(directory, problems)
    sources = dict(incident.sources)
    if problems:
        sources["files"] = Source(ok=False, reason=_some(problems))
    read = replace(
        incident,
        nodes=nodes,
        samples=samples,
        history=history,
        events=events or find_events(excerpt),
        log_excerpt=excerpt,
        ras=ras,
        flight=flight,
        sources=sources,
    )
    return with_told_ranks(read)


def _read_index(path: Path) -> tuple[Incident, tuple[SampleTime, ...]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        return decode_index(data)
    except FormatError as error:
        raise FormatError(f"{path}: {error.message}", error.hint) from error


def _read_samples(
    directory: Path,
    times: Sequence[SampleTime],
    nodes: tuple[Node, ...],
    problems: list[str],
) -> tuple[tuple[Snapshot, ...], tuple[Node, ...]]:
    """The samples, and the nodes with the ranks whose lines the last one has lost.

    Only the last counts: who has no line there counts as exited.
    """
    reader = ProcessReader()
    samples: list[Snapshot] = []
    read = nodes
    for moment in times:
        folder = directory / "samples" / str(moment.index)
        if not folder.is_dir():
            problems.append(f"samples/{moment.index}: missing")
            continue
        damage: list[str] = []
        reader.kindless.clear()
        processes = tuple(read_processes(folder, reader, damage))
        facts = read_facts(folder)
        samples.append(
            Snapshot(
                index=moment.index,
                at=moment.at,
                monotonic_seconds=moment.monotonic_seconds,
                processes=processes,
                facts=facts,
            )
        )
        problems += damage
        problems += (told.reason for told in facts.values() if isinstance(told, Missing))
        kindless = RankSet(reader.kindless)
        read = tuple(
            _with_unread(
                node, _unaccounted(node, processes, damaged=bool(damage), kindless=kindless)
            )
            for node in nodes
        )
    problems += reader.ignored
    return tuple(samples), read


def _unaccounted(
    node: Node, processes: Sequence[Process], *, damaged: bool, kindless: RankSet
) -> RankSet:
    """The ranks of a node without a trainer line that may be there all the same.

    Of a damaged file all; where a trainer's rank is not known it may be any of them; and a line
    without a kind may be the trainer's.
    """
    trainers = [process for process in processes if process.kind == "trainer"]
    absent = node.ranks - RankSet(p.rank for p in trainers if p.rank is not None)
    if damaged or any(p.rank is None and p.node == node.name for p in trainers):
        return absent
    return absent & kindless


def _with_unread(node: Node, lost: RankSet) -> Node:
    if node.status not in ("ok", "partial") or not lost - node.unread:
        return node
    reason = node.reason or "its last sample is damaged or does not say which line is whose"
    return replace(node, unread=node.unread | lost, status="partial", reason=reason)


def _some(problems: Sequence[str], limit: int = 5) -> str:
    more = f"; and {len(problems) - limit} more" if len(problems) > limit else ""
    return "; ".join(problems[:limit]) + more
