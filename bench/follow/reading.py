"""How fast logs are read, against a bare read of the same file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from whyhang.collectors.tail import MAX_POLL_BYTES, Chunk
from whyhang.engine.log_watch import LogWatch
from whyhang.schemas.config import Config

LOGS = Path(__file__).parents[2] / "tests" / "data" / "logs"
MIB = 1 << 20
_CONTROLS = {"␍": b"\r", "␛": b"\x1b", "␈": b"\b", "␀": b"\0", "␦": b"\xff"}


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU seconds per MiB."""

    bare: float
    ours: float

    @property
    def ratio(self) -> float:
        """Ours as a share of a bare read's speed."""
        return self.bare / self.ours


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
            yield case["name"], data, dense or data


def write_log(path: Path, head: bytes, body: bytes, size: int) -> None:
    """A log that begins with ``head`` and repeats ``body`` up to this size."""
    block = body * (MIB // len(body) + 1)
    with path.open("wb") as file:
        file.write(head)
        while file.tell() < size:
            file.write(block)


def measure(path: Path, times: int = 3) -> Speed:
    """The best of some runs of both, one after the other."""
    size = path.stat().st_size / MIB
    bare = ours = float("inf")
    for _ in range(times):
        bare = min(bare, _timed(lambda: _read_bare(path)))
        ours = min(ours, _timed(lambda: _follow(path)))
    return Speed(bare / size, ours / size)


def _timed(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _blocks(path: Path) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY)
    try:
        while block := os.read(fd, MAX_POLL_BYTES):
            yield block
    finally:
        os.close(fd)


def _read_bare(path: Path) -> None:
    for _ in _blocks(path):
        pass


def _follow(path: Path) -> None:
    """What the watcher does with a log that grows by a mebibyte at each poll."""
    watch = LogWatch([], Config(), 0.0)
    held = b""
    for number, block in enumerate(_blocks(path)):
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        watch.read(Chunk(source=str(path), data=held + block[:end]), float(number))
        held = block[end:]
