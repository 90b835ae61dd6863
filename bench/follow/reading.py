"""How fast logs are followed, against a bare read of the same file.

A file grows by a mebibyte at a time. After each, that mebibyte is read in three ways, in turns and
measured in CPU time: bare; then searched for the built-in patterns of faults; then by a poll of the
watcher, which sees that the file has grown, searches all of it for faults and its end for
progress, and tells the state machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import truediv
from pathlib import Path
from statistics import median

import yaml

from bench.follow.mixed import mixed_lines
from whyhang.collectors.log_gate import LogGate
from whyhang.engine.log_watch import LogWatch
from whyhang.engine.streams import LogFile
from whyhang.schemas.config import Config

LOGS = Path(__file__).parents[2] / "tests" / "data" / "logs"
MIB = 1 << 20
# Until then presets are tried; this is measured apart.
START_BLOCKS = 16
# The turns of so many blocks give one ratio; the median of all counts.
_BLOCKS_A_ROUND = 8
_LINES_AT_ONCE = 20_000
_CONTROLS = {"␍": b"\r", "␛": b"\x1b", "␈": b"\b", "␀": b"\0", "␦": b"\xff"}


@dataclass(frozen=True, slots=True)
class Turn:
    """CPU seconds that one mebibyte takes."""

    bare: float
    patterns: float
    watcher: float


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU seconds per MiB; shares: how fast it is, a bare read being 1.

    ``start`` is the watcher in the first 16 MiB, where presets are tried.
    """

    bare: float
    patterns: float
    patterns_share: float
    watcher: float
    watcher_share: float
    start: float


def own_logs() -> Iterator[tuple[str, bytes, bytes]]:
    """Of each log of the tests: its name, the log, and its progress lines alone."""
    for path in sorted(LOGS.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text(encoding="utf-8")):
            data: bytes = case["log"].encode()
            for shown, byte in _CONTROLS.items():
                data = data.replace(shown.encode(), byte)
            lines = data.split(b"\n")
            wanted = {e["line_no"] for e in case["events"] if e["event"] == "progress"}
            dense = b"".join(lines[number - 1] + b"\n" for number in sorted(wanted))
            yield case["name"], data, dense


def repeated(head: bytes, body: bytes) -> Iterator[bytes]:
    """Mebibytes of a log that begins with ``head`` and repeats ``body``."""
    return _mebibytes(_endless(head, body * (MIB // len(body) + 1)))


def mixed() -> Iterator[bytes]:
    """Mebibytes of a made-up log of a large job."""
    lines = mixed_lines()
    return _mebibytes(
        "".join(line + "\n" for line in islice(lines, _LINES_AT_ONCE)).encode()
        for _ in iter(int, 1)
    )


def measure(path: Path, blocks: Iterable[bytes]) -> Speed:
    """Let the file grow by these blocks, and read it both ways."""
    path.write_bytes(b"")
    watch = LogWatch([LogFile(path=str(path))], Config(), 0.0)
    turns = list(_turns(path, blocks, watch))
    watch.close()
    steady = turns[START_BLOCKS:]
    rounds = [steady[at : at + _BLOCKS_A_ROUND] for at in range(0, len(steady), _BLOCKS_A_ROUND)]
    bare = [sum(turn.bare for turn in turns) for turns in rounds]
    patterns = [sum(turn.patterns for turn in turns) for turns in rounds]
    watcher = [sum(turn.watcher for turn in turns) for turns in rounds]
    return Speed(
        bare=median(turn.bare for turn in steady),
        patterns=median(turn.patterns for turn in steady),
        patterns_share=median(map(truediv, bare, patterns)),
        watcher=median(turn.watcher for turn in steady),
        watcher_share=median(map(truediv, bare, watcher)),
        start=sum(turn.watcher for turn in turns[:START_BLOCKS]) / START_BLOCKS,
    )


def measure_behind(path: Path, blocks: Iterable[bytes]) -> tuple[float, float]:
    """CPU seconds of a bare read of all, and of the watcher that finds all of it at once."""
    path.write_bytes(b"")
    watch = LogWatch([LogFile(path=str(path))], Config(), 0.0)
    list(_turns(path, islice(blocks, START_BLOCKS), watch))
    grown = path.stat().st_size
    with path.open("ab") as file:
        file.writelines(blocks)
    fd = os.open(path, os.O_RDONLY)
    places = range(grown, path.stat().st_size, MIB)
    bare = sum(_timed(partial(os.pread, fd, MIB, at)) for at in places)
    os.close(fd)
    ours = _timed(partial(watch.poll, float(START_BLOCKS)))
    watch.close()
    return bare, ours


def _turns(path: Path, blocks: Iterable[bytes], watch: LogWatch) -> Iterator[Turn]:
    fd = os.open(path, os.O_RDONLY)
    gate = LogGate()

    def search(at: int) -> None:
        for _line in gate.feed(os.pread(fd, MIB, at)):
            pass

    with path.open("ab", buffering=0) as file:
        for number, block in enumerate(blocks):
            file.write(block)
            yield Turn(
                bare=_timed(partial(os.pread, fd, MIB, number * MIB)),
                patterns=_timed(partial(search, number * MIB)),
                watcher=_timed(partial(watch.poll, float(number))),
            )
    os.close(fd)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _endless(head: bytes, body: bytes) -> Iterator[bytes]:
    yield head
    while True:
        yield body


def _mebibytes(parts: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for part in parts:
        held += part
        while len(held) >= MIB:
            yield held[:MIB]
            held = held[MIB:]
