"""From loose dumps (py-spy's JSON, pasted text) to an incident of one sample."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path

from whyhang.collectors.foreign_texts import recognise
from whyhang.collectors.json_pastes import heading_in, split_values
from whyhang.collectors.kinds import Identity, kind_of, number_workers, refine_kind
from whyhang.collectors.masking import shorten_homes
from whyhang.collectors.text_dump import parse_text_dump
from whyhang.collectors.text_dump_blocks import ProcessBlock
from whyhang.collectors.text_dump_headers import node_of_file
from whyhang.engine.dump_names import node_in, ranks_of
from whyhang.engine.store import INDEX
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Thread
from whyhang.schemas.stack_codec import StackReader

NODE = "imported"
SUFFIXES = (".json", ".txt", ".out", ".log", ".dump", ".stack", ".pyspy", ".md")
# What `diagnose --write` leaves beside the dumps.
REPORTS = ("diagnosis.md", "report.txt", "verdict.json")
MAX_FILE_BYTES = 256 << 20
MAX_PROCESSES = 200_000
# Where a dump tells no pid: beyond all that a kernel gives.
NO_PID = 1 << 32
# `trace-gpu31.out` holds a node's dumps, `gpu3.json` one rank's.
_NODE_FILE = re.compile(r"(?:trace|stacks?|dump|py-?spy)[-_.](?!rank|gpu[-_.]?\d\b|\d+\b)", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A process of a dump before its rank is settled."""

    block: ProcessBlock
    rank: int | None
    node: str
    file: str


def read_dumps(path: Path, *, called: str | None = None) -> Incident:
    """One sample from a file with dumps, or from a directory of such files.

    A heading, a prefix or the file's name tells the rank (``rank3.json``, ``3.txt``,
    ``worker-0-gpu-3.json``). Where no rank is told at all, the processes are numbered in their
    order, and ``sources`` says so. ``called`` is what the user knows the path as. Raises UsageError
    where there is no dump.
    """
    problems: list[str] = []
    reader = StackReader()
    files = _files(path)
    # The name of a single pasted file is whatever its owner called it.
    ranks = {} if path.is_file() and "rank" not in path.stem.lower() else ranks_of(files)
    every = (one for file in files for one in _read_file(file, ranks.get(file), reader, problems))
    found = list(islice(every, MAX_PROCESSES))
    problems += reader.ignored
    if not found:
        why = f" ({problems[0]})" if problems else ""
        raise UsageError(
            f"{called} holds no stack that could be read{why}"
            if called
            else f"{path} holds neither {INDEX} nor stacks that could be read{why}",
            hint="expected what `py-spy dump`, faulthandler, gdb or pystack print, best with a "
            "line above each process that names its rank"
            if called
            else "expected incident.json, or what `py-spy dump` prints, as text or JSON, in files "
            "such as rank3.json or 3.txt",
        )
    processes, numbered = _settle(found, problems)
    repeated = Counter((one.node, one.block.pid) for one in found)
    said = problems[:5] + [f"and {len(problems) - 5} more"] * (len(problems) > 5)
    if numbered:
        said.append("the dumps name no ranks: the processes were numbered in their order")
        again = [pid for (_, pid), seen in repeated.items() if pid is not None and seen > 1]
        if again:
            said.append(
                f"process {again[0]} occurs more than once: taken for processes of several "
                "machines, which is wrong where one was dumped again"
            )
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
    path: Path, named: int | None, reader: StackReader, problems: list[str]
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
        problems.append(f"{path.name}: {recognise(data) or 'no stack in it'}")
        return
    whole_node = _NODE_FILE.match(path.stem) is not None
    rank = None if whole_node else named
    node = node_of_file(path.name) if whole_node else node_in(path.stem) or NODE
    for block in blocks:
        ranks: Sequence[int | None] = tuple(block.ranks) or (None,) * max(1, block.count)
        for own in ranks:
            yield _Found(
                block=block,
                rank=rank if own is None else own,
                node=block.node or node,
                file=path.name,
            )


def _blocks(data: bytes, reader: StackReader) -> tuple[ProcessBlock, ...]:
    """The processes of a file: what ``py-spy dump --json`` prints, else text. FormatError."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell's `>` writes
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    data = data.removeprefix(codecs.BOM_UTF8)
    text = data.decode("utf-8", "replace")
    if '"frames"' in text:
        several = tuple(_json_blocks(shorten_homes(text), reader))
        if len(several) > 1 or (several and any(block.ranks for block in several)):
            return several
    start = data[:4096].lstrip()
    if start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]"):
        threads = reader.threads(shorten_homes(text).encode())
        return (ProcessBlock(pid=_main_tid(threads), threads=threads),) if threads else ()
    return parse_text_dump(text)


def _json_blocks(text: str, reader: StackReader) -> Iterator[ProcessBlock]:
    """Dumps in JSON, one after another; the last heading above each tells whose it is."""
    for above, found, own in split_values(text):
        if not _is_dump(found):
            continue
        threads, header = reader.threads(own.encode()), heading_in(above)
        yield ProcessBlock(
            pid=header.pid or _main_tid(threads),
            threads=threads,
            ranks=header.ranks,
            node=header.node,
            count=header.count,
        )


def _is_dump(found: object) -> bool:
    return isinstance(found, list) and all(
        isinstance(thread, dict) and "frames" in thread for thread in found
    )


def _main_tid(threads: Iterable[Thread]) -> int | None:
    return next((t.tid for t in threads if t.name == "MainThread" and t.tid), None)


def _settle(found: Sequence[_Found], problems: list[str]) -> tuple[tuple[Process, ...], bool]:
    """The processes with ranks and kinds; whether the ranks had to be made up."""
    fresh = count(NO_PID)
    seen: set[tuple[str, int]] = set()
    processes: list[Process] = []
    for one in found:
        pid = one.block.pid
        if pid is None or (one.node, pid) in seen:
            pid = next(fresh)
        seen.add((one.node, pid))
        processes.append(_process(one, pid))
    processes = list(_one_trainer_each(processes, [one.file for one in found], problems))
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
    return tuple(number_workers(_with_parents_rank(processes))), numbered


def _with_parents_rank(processes: Sequence[Process]) -> Iterator[Process]:
    """A trainer's children have its rank: a dump of subprocesses names the parent of each."""
    ranks: dict[tuple[str, int], int] = {}
    for process in processes:
        rank = process.rank
        if rank is None and process.ppid is not None and process.kind != "launcher":
            # A parent stands before its children, so that a child's own children find it as well.
            rank = ranks.get((process.node, process.ppid))
        if rank is not None:
            ranks[process.node, process.pid] = rank
        yield process if rank == process.rank else replace(process, rank=rank)


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


def _one_trainer_each(
    processes: Iterable[Process], files: Iterable[str], problems: list[str]
) -> Iterator[Process]:
    """Of several trainers of one rank (a file with its children) the first is it.

    Where another file claims the rank as well, that is told.
    """
    taken: dict[int, str] = {}
    for process, file in zip(processes, files, strict=True):
        if process.kind == "trainer" and process.rank is not None:
            if process.rank in taken:
                if file != taken[process.rank]:
                    told = f"{file}: rank {process.rank} was read from {taken[process.rank]}"
                    problems.append(told)
                yield replace(process, kind="other")
                continue
            taken[process.rank] = file
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
