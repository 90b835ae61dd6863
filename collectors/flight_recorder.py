"""Reads the dumps of PyTorch's flight recorder: pickles and JSON, NCCL and gloo, torch 2.2 on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from whyhang.collectors.flight_recorder_pastes import load_text, packer_of, split_paste, text_of
from whyhang.collectors.flight_recorder_pickle import PickleRefused, load_plain
from whyhang.schemas.flight_recorder import (
    FlightDump,
    FlightEntry,
    FlightGroup,
    GroupStatus,
    Sizes,
)
from whyhang.schemas.missing import Missing

MAX_BYTES = 256 << 20
MAX_ENTRIES = 200_000
MAX_RANKS = 200_000
MAX_SHAPES = 4096
MAX_FRAMES = 32
_SPARE, _GROWTH = 1 << 20, 20
_RANK_IN_NAME = re.compile(r"(\d{1,7})(?:\.(?:json|pkl|pickle|bin))?\Z")
# A word tells more than a place: the last number of `rank_3-gpu01-pid-4242` is none.
_RANK_WORD = re.compile(
    r"(?<![A-Za-z])(?:global[-_.]?)?(?<!local)(?<!local[-_.])(?<!node)(?<!node[-_.])"
    r"rank[-_.]?(\d{1,7})(?!\d)",
    re.IGNORECASE,
)
# Files whose names say text may as well be logs.
_TEXTS = (".txt", ".log", ".out", ".err", ".md")
_MARKS = (b"pg_config", b"pg_status", b"entries", b"nccl_version")
_PEEK = 1 << 16
_NUMBER = re.compile(r"\d{1,9}")
_TEXT_LIMIT = 1000


def rank_in_name(name: str) -> int | None:
    """The rank in a file's name: after the word, else at its end (``_dump_12``, ``3.json``)."""
    match = _RANK_WORD.search(name) or _RANK_IN_NAME.search(name)
    return None if match is None else int(match[1])


def read_dumps(path: Path) -> tuple[tuple[FlightDump, ...], Mapping[int, str]]:
    """The dumps of a directory, or of one file with several, by rank; why others were not read.

    Of two files of one rank the one whose name sorts last counts. Where a directory holds only
    other directories, one for each node, theirs count. Raises OSError where nothing can be listed.
    """
    dumps: dict[int, FlightDump] = {}
    problems: dict[int, str] = {}
    found = _read_paste(path) if path.is_file() else _read_directory(path)
    for rank, dump in found:
        if isinstance(dump, Missing):
            problems[rank] = dump.reason
        else:
            dumps[rank] = dump
    return (
        tuple(dumps[rank] for rank in sorted(dumps)),
        {rank: why for rank, why in problems.items() if rank not in dumps},
    )


def _read_directory(directory: Path) -> Iterator[tuple[int, FlightDump | Missing]]:
    found = sorted(directory.iterdir())
    if all(path.is_dir() for path in found):
        found = sorted(path for folder in found for path in folder.iterdir())
    for path in found:
        rank = rank_in_name(path.name)
        if rank is None or rank >= MAX_RANKS or not path.is_file() or _is_log(path):
            continue
        yield rank, read_file(path, rank)


def _is_log(path: Path) -> bool:
    if path.suffix.lower() not in _TEXTS:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_PEEK)
    except OSError:
        return False
    return not any(mark in head for mark in _MARKS)


def _read_paste(path: Path) -> Iterator[tuple[int, FlightDump | Missing]]:
    """The dumps of one file: below headings that name their ranks, or one whose name tells it."""
    named = rank_in_name(path.name)
    told = []
    if path.stat().st_size <= MAX_BYTES:
        text = path.read_bytes().decode("utf-8", "replace")
        told = [(rank, data) for rank, data in split_paste(text) if rank is not None]
    for rank, data in told:
        yield rank, parse_dump(data, rank)
    if not told and named is not None:
        yield named, read_file(path, named)


def read_file(path: Path, rank: int) -> FlightDump | Missing:
    """The dump of one rank, or why it could not be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return Missing(f"{path.name}: larger than {MAX_BYTES} bytes")
        data = path.read_bytes()
    except OSError as error:
        return Missing(f"{path.name}: {error.strerror}")
    found = parse_dump(data, rank)
    return Missing(f"{path.name}: {found.reason}") if isinstance(found, Missing) else found


def parse_dump(data: bytes, rank: int) -> FlightDump | Missing:
    """Parse a dump in either form. Never raises."""
    if not data:
        return Missing("empty")
    packer = packer_of(data)
    if packer is not None:
        return Missing(f"packed by {packer}: unpack it first")
    text = text_of(data)
    try:
        found = load_plain(data) if text is None else load_text(text)
    except PickleRefused as error:
        return Missing(str(error))
    except (ValueError, RecursionError):
        return Missing("cut or damaged")
    if not isinstance(found, dict) or not ("entries" in found or "pg_status" in found):
        return Missing("not a flight recorder dump")
    try:
        return _dump(found, rank, _Budget(_SPARE + _GROWTH * len(data)))
    except PickleRefused as error:
        return Missing(str(error))


class _Budget:
    """How much may still be read. A pickle names a part once and repeats it in two bytes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise PickleRefused("too large: it repeats its parts too often")


def _dump(found: Mapping[Any, Any], rank: int, budget: _Budget) -> FlightDump:
    return FlightDump(
        rank=rank,
        version=_text(found.get("version")),
        nccl_version=_text(found.get("nccl_version") or found.get("comm_lib_version")),
        groups=tuple(_groups(found.get("pg_config"), budget)),
        status=dict(_statuses(found.get("pg_status"))),
        entries=tuple(
            sorted(_entries(found.get("entries"), budget), key=lambda entry: entry.record)
        ),
    )


def _groups(found: object, budget: _Budget) -> Iterator[FlightGroup]:
    for key, value in _items(found):
        if not isinstance(value, dict):
            continue
        name = _text(value.get("name")) or key
        if name:
            ranks = _ranks(value.get("ranks"))
            budget.spend(len(ranks or ()))
            yield FlightGroup(name=name, description=_text(value.get("desc")) or "", ranks=ranks)


def _ranks(found: object) -> tuple[int, ...] | None:
    """Members as a list or as its text ``[0, 1]``; gloo leaves it empty: unknown."""
    if isinstance(found, str):
        return _written_ranks(found)
    if not isinstance(found, (list, tuple)):
        return None
    return _members(n for n in map(_integer, found[:MAX_RANKS]) if n is not None)


@lru_cache(maxsize=4096)
def _written_ranks(text: str) -> tuple[int, ...] | None:
    """Read once for all the dumps that repeat it."""
    return _members(int(match[0]) for match in islice(_NUMBER.finditer(text), MAX_RANKS))


def _members(ranks: Iterable[int]) -> tuple[int, ...] | None:
    return tuple(sorted({rank for rank in ranks if 0 <= rank < MAX_RANKS})) or None


def _statuses(found: object) -> Iterator[tuple[int, GroupStatus]]:
    for key, value in _items(found):
        number = _integer(key)
        if number is not None and isinstance(value, dict):
            yield (
                number,
                GroupStatus(
                    enqueued=_counter(value.get("last_enqueued_collective")),
                    started=_counter(value.get("last_started_collective")),
                    completed=_counter(value.get("last_completed_collective")),
                ),
            )


def _entries(found: object, budget: _Budget) -> Iterator[FlightEntry]:
    if not isinstance(found, (list, tuple)):
        return
    for place, value in enumerate(found[-MAX_ENTRIES:]):
        if isinstance(value, dict):
            entry = _entry(value, place)
            budget.spend(_extent(entry))
            yield entry


def _extent(entry: FlightEntry) -> int:
    """How many numbers, names and characters a record holds."""
    shapes = (*entry.input_sizes, *entry.output_sizes)
    return len(shapes) + sum(map(len, (*shapes, *entry.frames))) + len(entry.dtypes)


def _entry(value: Mapping[Any, Any], place: int) -> FlightEntry:
    group = value.get("process_group")
    if isinstance(group, (list, tuple)):
        group = group[0] if group else ""
    op = _text(value.get("profiling_name")) or ""
    record = _integer(value.get("record_id", value.get("id")))
    state = _text(value.get("state")) or "scheduled"
    retired = value.get("retired") is True
    seq = _integer(value.get("collective_seq_id", value.get("seq_id")))
    # Old releases have one number for collectives and transfers.
    p2p_seq = _integer(value.get("p2p_seq_id")) if "p2p_seq_id" in value else seq
    completed = (_integer(value.get("time_discovered_completed_ns")) or 0) > 0
    return FlightEntry(
        record=place if record is None else record,
        group=_text(group) or "",
        group_id=_integer(value.get("pg_id")),
        op=op,
        seq=seq or 0,
        p2p_seq=p2p_seq or 0,
        is_p2p=value.get("is_p2p") is True or "->" in op or "<-" in op,
        state="completed" if completed else state,
        retired=retired,
        input_sizes=_sizes(value.get("input_sizes")),
        output_sizes=_sizes(value.get("output_sizes")),
        dtypes=_names(value.get("input_dtypes")) + _names(value.get("output_dtypes")),
        created_ns=_integer(value.get("time_created_ns")),
        # Records that are over are many, and nobody asks where they came from.
        frames=() if retired or completed else _frames(value.get("frames")),
    )


def _sizes(found: object) -> Sizes:
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(
        tuple(n for n in map(_integer, shape[:64]) if n is not None)
        for shape in found[:MAX_SHAPES]
        if isinstance(shape, (list, tuple))
    )


def _names(found: object) -> tuple[str, ...]:
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(name for name in found[:MAX_SHAPES] if isinstance(name, str))


def _frames(found: object) -> tuple[str, ...]:
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(
        f"{_text(f.get('name')) or '?'} {_text(f.get('filename')) or '?'}:{_integer(f.get('line'))}"
        for f in found[:MAX_FRAMES]
        if isinstance(f, dict)
    )


def _items(found: object) -> Iterator[tuple[str, object]]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield str(key)[:_TEXT_LIMIT], value


def _text(value: object) -> str | None:
    return value[:_TEXT_LIMIT] if isinstance(value, str) else None


def _counter(value: object) -> int | None:
    """A sequence number; -1 stands for none."""
    number = _integer(value)
    return None if number is None or number < 0 else number


def _integer(value: object) -> int | None:
    """A number, also where JSON dumps write it as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    if isinstance(value, str) and len(value) < 20:
        try:
            return int(value)
        except ValueError:
            return None
    return None
