"""From loose dumps (py-spy's JSON, pasted text) to an incident of one sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from whyhang.collectors.kinds import Identity, kind_of, number_workers, refine_kind
from whyhang.collectors.masking import shorten_homes
from whyhang.collectors.text_dump import parse_text_dump
from whyhang.collectors.text_dump_blocks import ProcessBlock
from whyhang.collectors.text_dump_headers import node_of_file
from whyhang.engine.store import INDEX
from whyhang.schemas.codec import StackReader
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.rankset import MAX_RANK, RankSet

NODE = "imported"
SUFFIXES = (".json", ".txt", ".out", ".log", ".dump", ".stack", ".pyspy", ".md")
# What `diagnose --write` leaves beside the dumps.
REPORTS = ("diagnosis.md", "report.txt", "verdict.json")
MAX_FILE_BYTES = 256 << 20
MAX_PROCESSES = 200_000
# Where a dump tells no pid: beyond all that a kernel gives.
NO_PID = 1 << 32
# No rank has more digits than this; an int() of thousands of them raises.
_NUMBER = r"(\d{1,18})"
_FLAGS = re.IGNORECASE | re.ASCII
_RANK_IN_NAME = (
    re.compile(rf"rank[-_.]?{_NUMBER}", _FLAGS),
    re.compile(rf"gpu[-_.]?{_NUMBER}(?!.*gpu)", _FLAGS),
    re.compile(rf"{_NUMBER}\D*\Z", _FLAGS),
)
# `trace-gpu31.out` holds a node's dumps, `gpu3.json` one rank's.
_NODE_FILE = re.compile(r"(?:trace|stacks?|dump|py-?spy)[-_.](?!rank|gpu[-_.]?\d\b|\d+\b)", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A process of a dump before its rank is settled."""

    block: ProcessBlock
    rank: int | None
    node: str
    order: int


def read_dumps(path: Path) -> Incident:
    """One sample from a file with dumps, or from a directory of such files.

    A heading, a prefix or the file's name tells the rank (``rank3.json``, ``3.txt``,
    ``worker-0-gpu-3.json``). Where no rank is told at all, the processes are numbered in their
    order, and ``sources`` says so. Raises UsageError where there is no dump.
    """
    problems: list[str] = []
    alone = path.is_file()
    reader = StackReader()
    found = [one for file in _files(path) for one in _read_file(file, reader, problems, alone)]
    problems += reader.ignored
    if not found:
        why = f" ({problems[0]})" if problems else ""
        raise UsageError(
            f"{path} holds neither {INDEX} nor stacks that could be read{why}",
            hint="expected incident.json, or what `py-spy dump` prints, as text or JSON, in files "
            "such as rank3.json or 3.txt",
        )
    processes, numbered = _settle(found)
    said = list(problems[:5])
    if numbered:
        said.append("the dumps name no ranks: the processes were numbered in their order")
    return Incident(
        print_id=None,
        trigger="import",
        nodes=tuple(_nodes(processes)),
        samples=(Snapshot(index=0, at="", monotonic_seconds=0.0, processes=processes),),
        sources={
            "stacks": Source(ok=not problems, reason="; ".join(said) or None),
            "io": Source(ok=False, reason="plain dumps carry no counters"),
            "log": Source(ok=False, reason="plain dumps come without a log"),
        },
    )


def rank_in(stem: str) -> int | None:
    """The rank that a file name carries: after ``rank``, after ``gpu``, else its last number."""
    for pattern in _RANK_IN_NAME:
        match = pattern.search(stem)
        if match is not None and int(match[1]) <= MAX_RANK:
            return int(match[1])
    return None


def _files(path: Path) -> list[Path]:
    """Regular files only: opening a pipe would never end."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        return []
    return sorted(
        p
        for p in path.iterdir()
        if p.suffix.lower() in SUFFIXES and p.name not in REPORTS and p.is_file()
    )


def _read_file(
    path: Path, reader: StackReader, problems: list[str], alone: bool
) -> Iterator[_Found]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        problems.append(f"{path.name}: {error.strerror}")
        return
    try:
        blocks = _blocks(data, reader)
    except FormatError as error:
        problems.append(f"{path.name}: {error.message}")
        return
    if not blocks:
        problems.append(f"{path.name}: no stack in it")
        return
    whole_node = _NODE_FILE.match(path.stem) is not None
    # The name of a single pasted file is whatever its owner called it.
    rank = None if whole_node or (alone and "rank" not in path.stem.lower()) else rank_in(path.stem)
    node = node_of_file(path.name) if whole_node else NODE
    for order, block in enumerate(blocks):
        ranks: Sequence[int | None] = tuple(block.ranks) or (None,) * max(1, block.count)
        for own in ranks:
            yield _Found(
                block=block,
                rank=rank if own is None else own,
                node=block.node or node,
                order=order,
            )


def _blocks(data: bytes, reader: StackReader) -> tuple[ProcessBlock, ...]:
    """The processes of a file: what ``py-spy dump --json`` prints, else text. FormatError."""
    start = data[:4096].lstrip()
    if start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]"):
        threads = reader.threads(shorten_homes(data.decode("utf-8", "replace")).encode())
        pid = next((t.tid for t in threads if t.name == "MainThread" and t.tid), None)
        return (ProcessBlock(pid=pid, threads=threads),) if threads else ()
    return parse_text_dump(data.decode("utf-8", "replace"))


def _settle(found: Iterable[_Found]) -> tuple[tuple[Process, ...], bool]:
    """The processes with ranks and kinds; whether the ranks had to be made up."""
    listed = list(found)[:MAX_PROCESSES]
    fresh = count(NO_PID)
    seen: set[tuple[str, int]] = set()
    processes: list[Process] = []
    for one in listed:
        pid = one.block.pid
        if pid is None or (one.node, pid) in seen:
            pid = next(fresh)
        seen.add((one.node, pid))
        processes.append(_process(one, pid))
    processes = list(_one_trainer_each(processes))
    numbered = False
    if all(process.rank is None for process in processes):
        ranks = iter(range(len(processes)))
        numbered = any(process.kind == "other" for process in processes)
        processes = [
            replace(process, rank=next(ranks), kind="trainer")
            if process.kind == "other"
            else process
            for process in processes
        ]
    return tuple(number_workers(processes)), numbered


def _process(found: _Found, pid: int) -> Process:
    block = found.block
    error = "; ".join(block.errors)
    threads = block.threads or Missing(
        f"{block.tool}: {error}" if error else "the paste shows no thread of it"
    )
    identity = Identity(
        pid=pid,
        ppid=block.ppid or 0,
        name=block.cmdline[0] if block.cmdline else "",
        state="",
        is_python=True,
        cmdline=block.cmdline,
    )
    kind = kind_of(identity, {}, trainers=frozenset(), starters={})
    if kind == "other" and found.rank is not None:
        kind = "trainer"
    tool = block.tool
    process = Process(
        pid=pid,
        node=found.node,
        kind=kind,
        rank=None if kind == "launcher" else found.rank,
        ppid=block.ppid,
        cmdline=block.cmdline,
        python=block.python,
        threads=threads,
        dump=Dump(ok=bool(block.threads), tool=tool, error=error or None),
    )
    return replace(process, kind=refine_kind(process))


def _one_trainer_each(processes: Iterable[Process]) -> Iterator[Process]:
    """Of several trainers of one rank (a file with its children) the first is it."""
    taken: set[int] = set()
    for process in processes:
        if process.kind == "trainer" and process.rank is not None:
            if process.rank in taken:
                yield replace(process, kind="other")
                continue
            taken.add(process.rank)
        yield process


def _nodes(processes: Iterable[Process]) -> Iterator[Node]:
    ranks: dict[str, list[int]] = {}
    unread: dict[str, list[int]] = {}
    for process in processes:
        here, missed = ranks.setdefault(process.node, []), unread.setdefault(process.node, [])
        if process.kind == "trainer" and process.rank is not None:
            here.append(process.rank)
            if isinstance(process.threads, Missing):
                missed.append(process.rank)
    for name, members in ranks.items():
        missing = RankSet(unread[name])
        yield Node(
            name=name,
            ranks=RankSet(members),
            unread=missing,
            status="partial" if missing else "ok",
            reason="its dump failed" if missing else None,
        )
