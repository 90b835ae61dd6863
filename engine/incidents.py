"""Reading recorded evidence back: incident directories, and loose dumps by way of ``imported``."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeVar, cast

from whyhang.collectors.log_events import find_events
from whyhang.engine.comm_files import read_flight_dumps, read_ras_replies
from whyhang.engine.facts_files import read_facts
from whyhang.engine.imported import read_dumps
from whyhang.engine.store import INDEX
from whyhang.engine.told_ranks import with_told_ranks
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.event_codec import decode_log_event, decode_progress_event
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.incident_codec import decode_index
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.process_codec import ProcessReader
from whyhang.schemas.rankset import NOBODY, RankSet

T = TypeVar("T")

LOG_TAIL_BYTES = 1 << 20
# A few kB may unpack to more than a machine can hold.
MOST_BYTES = 2 << 30
SAMPLE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


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
    index = directory / INDEX
    try:
        data = index.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {index}: {error.strerror}") from error
    try:
        incident, times = decode_index(data)
    except FormatError as error:
        raise FormatError(f"{index}: {error.message}", error.hint) from error
    problems: list[str] = []
    reader = ProcessReader()
    samples: list[Snapshot] = []
    lost: dict[str, RankSet] = {}
    for moment in times:
        folder = directory / "samples" / str(moment.index)
        if not folder.is_dir():
            problems.append(f"samples/{moment.index}: missing")
            continue
        damage: list[str] = []
        reader.kindless.clear()
        processes = tuple(_processes(folder, reader, damage))
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
        # Only of the last sample: who has no line there counts as exited.
        lost = {
            node.name: _unaccounted(
                node, processes, damaged=bool(damage), kindless=RankSet(reader.kindless)
            )
            for node in incident.nodes
        }
    history = tuple(_read_lines(directory / "progress.jsonl", decode_progress_event, problems))
    excerpt = tuple(_log_excerpt(directory / "logs", problems))
    events = tuple(_read_lines(directory / "events.jsonl", decode_log_event, problems))
    ras, flight = read_ras_replies(directory, problems), read_flight_dumps(directory, problems)
    problems += reader.ignored
    sources = dict(incident.sources)
    if problems:
        sources["files"] = Source(ok=False, reason=_some(problems))
    read = replace(
        incident,
        nodes=tuple(_with_unread(node, lost.get(node.name, NOBODY)) for node in incident.nodes),
        samples=tuple(samples),
        history=history,
        events=events or find_events(excerpt),
        log_excerpt=excerpt,
        ras=ras,
        flight=flight,
        sources=sources,
    )
    return with_told_ranks(read)


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


def _processes(folder: Path, reader: ProcessReader, problems: list[str]) -> Iterator[Process]:
    for path in _files(folder):
        if not path.name.endswith(SAMPLE_SUFFIXES):
            continue
        node = path.name.partition(".jsonl")[0]

        def decode(line: bytes, node: str = node) -> Process:
            return reader.process(line, node=node)

        yield from _read_lines(path, decode, problems)


def _files(folder: Path, pattern: str = "*") -> list[Path]:
    """The regular files of a directory by name: opening a pipe or a device would never end."""
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _read_lines(path: Path, decode: Callable[[bytes], T], problems: list[str]) -> Iterator[T]:
    """Decode a file line by line; a line that cannot be decoded becomes a problem."""
    if not path.is_file():
        return
    try:
        data = _read(path)
    except (zlib.error, OSError, EOFError, FormatError) as error:
        problems.append(f"{path.name}: {error}")
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield decode(line)
        except FormatError as error:
            problems.append(f"{path.name}:{number}: {error.message}")


def _read(path: Path) -> bytes:
    with _open(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(f"holds more than {MOST_BYTES >> 20} MiB")
    return data


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file as it was before it was compressed."""
    if path.suffix == ".gz":
        with gzip.open(path) as unpacked:
            yield cast("IO[bytes]", unpacked)
        return
    with path.open("rb") as file:
        if path.suffix != ".zst":
            yield file
            return
        try:
            import zstandard
        except ImportError as error:
            raise FormatError("compressed with zstd: pip install zstandard to read it") from error
        try:
            with zstandard.ZstdDecompressor().stream_reader(file) as stream:
                yield stream
        except zstandard.ZstdError as error:
            raise FormatError(f"no archive of zstd: {error}") from error


def _log_excerpt(folder: Path, problems: list[str]) -> Iterator[str]:
    for path in _files(folder, "*.txt"):
        try:
            data = path.read_bytes()[-LOG_TAIL_BYTES:]
        except OSError as error:
            problems.append(f"{path.name}: {error}")
            continue
        yield from data.decode("utf-8", "replace").splitlines()
