"""A whole log from its begin: each clean piece with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from whyhang.collectors.normalise import MAX_PIECE_BYTES, Normaliser, Piece
from whyhang.collectors.presets import PresetReader
from whyhang.schemas.progress import LogLine

_BLOCK_BYTES = 1 << 20
# Detection goes on past a generic choice, as long as the presets themselves would (20,000 pieces).
_PROBED_PIECES = 25_000
_GENERIC = ("tqdm", "step")


@dataclass(frozen=True, slots=True)
class Place:
    """``line_no`` counts lines that end in ``\\n`` from 1.

    ``seg`` counts what is not blank between the ``\\r`` of that line, from 0.
    """

    line_no: int
    seg: int


def read_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a mebibyte at a time. Raises OSError."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def placed_pieces(blocks: Iterable[bytes]) -> Iterator[tuple[Place, Piece]]:
    """The clean pieces of a log with their places. Never raises for its bytes.

    Text glued behind a bar makes a piece of its own with the bar's place.
    """
    normaliser = Normaliser()
    for place, raw in _placed(blocks):
        for piece in normaliser.feed(raw):
            yield place, piece


def read_progress(
    blocks: Iterable[bytes], preset: str, pattern: str | None = None
) -> Iterator[tuple[Place, LogLine]]:
    """What a preset, or a user's pattern, reads in a log. Raises ValueError for a bad one."""
    reader = PresetReader(preset, pattern)
    for place, piece in placed_pieces(blocks):
        for line in reader.feed(piece.text, None if piece.local else piece.rank):
            yield place, line


def detect_preset(blocks: Iterable[bytes]) -> str | None:
    """The preset that fits a log; None where none does."""
    reader = PresetReader("auto")
    since = 0
    for _, piece in placed_pieces(blocks):
        for _ in reader.feed(piece.text):
            pass
        if reader.preset is not None:
            since += 1
            if reader.preset not in _GENERIC or since > _PROBED_PIECES:
                break
    return reader.preset


def _placed(blocks: Iterable[bytes]) -> Iterator[tuple[Place, bytes]]:
    line_no, seg, held = 1, 0, b""
    for block in blocks:
        *whole, last = (held + block).split(b"\n")
        for line in whole:
            for raw in line.split(b"\r"):
                if _is_something(raw):
                    yield Place(line_no, seg), raw
                    seg += 1
            line_no, seg = line_no + 1, 0
        *bars, held = last.split(b"\r")
        for raw in bars:
            if _is_something(raw):
                yield Place(line_no, seg), raw
                seg += 1
        if len(held) > 2 * MAX_PIECE_BYTES:
            # A line of megabytes: the normaliser keeps its two ends only.
            held = held[:MAX_PIECE_BYTES] + held[-MAX_PIECE_BYTES:]
    if _is_something(held):
        yield Place(line_no, seg), held


def _is_something(raw: bytes) -> bool:
    bare = raw.lstrip(b"\0")
    return bool(bare) and not bare.isspace()
