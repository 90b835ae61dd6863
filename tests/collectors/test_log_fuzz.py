"""Whatever a log holds: nothing raises, and no byte costs more than its share of time."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.log_events import find_events
from whyhang.collectors.log_gate import LogGate
from whyhang.collectors.log_patterns import PATTERNS
from whyhang.collectors.normalise import MAX_PIECE_BYTES, Normaliser
from whyhang.collectors.preset_family import Family
from whyhang.collectors.preset_patterns import FAMILIES
from whyhang.collectors.presets import PresetReader, preset_names
from whyhang.collectors.tail import Chunk, Tailer
from whyhang.engine.log_source import LogSource

SIZE = 64 * 1024
# What the front of a pattern likes, repeated: digits, blanks, bars, brackets, numbers, words.
HOSTILE = (
    "1", " ", "|", "[", "(", "{", ":", "%|", "1/", "1 ", ". ", "e1", "'", "1:", "[1,1]", "\x1b[",
    "\x1b]", "\b", "step ", "loss: ", "epoch 1: ", "iteration 1/ 1 | ", "step: 1  ", "  ", "Epoch ",
    "[rank1]:", "(a pid=1) ", "1%|", "1%| | 1/1 [", "- ", "NCCL ", "Rank 1", "a" * 50 + " ",
)  # fmt: skip
# The slowest machine that shares its cores must pass, a quadratic pattern must not.
MAX_SECONDS = 3.0
BYTES = st.lists(
    st.binary(max_size=40) | st.sampled_from([text.encode() for text in HOSTILE]), max_size=80
).map(b"".join)


@pytest.mark.parametrize("filler", HOSTILE)
def test_normaliser_and_all_presets_on_hostile_pieces(filler: str) -> None:
    """A piece of 64 KiB made of what patterns begin with takes no time to speak of."""
    data = (filler * (SIZE // len(filler))).encode() + b"\n"
    start = time.process_time()
    for piece in Normaliser().feed(data):
        list(PresetReader("auto").feed(piece.text))
        for name in ("tqdm", *(family.name for family in FAMILIES)):
            list(PresetReader(name).feed(piece.text))
    list(find_events(line.decode("utf-8", "replace") for line in LogGate().feed(data)))
    assert time.process_time() - start < MAX_SECONDS


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(family.name))
def test_literals_among_hostile_pieces(family: Family) -> None:
    """Nor does one that holds a pattern's own text, so that the pattern itself is tried."""
    start = time.process_time()
    for literal in (literal.decode() for literal in family.literals or ()):
        for filler in ("1", " ", "|", literal + " 1 "):
            text = literal + filler * (SIZE // 4 // len(filler))
            list(PresetReader(family.name).feed(text))
    assert time.process_time() - start < 2 * MAX_SECONDS


def test_event_patterns_on_hostile_lines() -> None:
    """Every pattern of a fault is tried behind its own literal, on 64 KiB of each filler."""
    start = time.process_time()
    for pattern in PATTERNS:
        for filler in ("1", " ", "[", ", "):
            list(find_events([pattern.literal + filler * (SIZE // len(filler))]))
    assert time.process_time() - start < 2 * MAX_SECONDS


@pytest.mark.parametrize("filler", ["y", "1", "[1]", "a.b", " ", "rank1:"])
def test_many_faults_in_long_lines(filler: str) -> None:
    """A log full of faults with long words costs each line its length, not the square of it."""
    padding = filler * (4000 // len(filler))
    start = time.process_time()
    for pattern in PATTERNS:
        lines = [f"[rank0]: {pattern.literal} NCCL {padding}"] * 40
        list(find_events(lines))
    assert time.process_time() - start < 2 * MAX_SECONDS


@given(BYTES, st.sampled_from(preset_names()))
def test_any_bytes_through_the_whole_chain(data: bytes, name: str) -> None:
    """Random bytes never raise; pieces and kept lines are bounded."""
    assert all(len(piece.text) <= 2 * MAX_PIECE_BYTES for piece in Normaliser().feed(data))
    excerpt: deque[bytes] = deque(maxlen=400)
    source = LogSource(name, None, excerpt)
    for at in range(0, len(data), 100):
        chunk = Chunk(source="log", data=data[at : at + 100])
        for _, line in source.progress(chunk, float(at)):
            assert line.step is None or line.step >= 0
        find_events(source.notable(chunk))


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_any_bytes_through_the_tailer(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    """Random writes come out as they are, save for blank lines and the cut of a begun one."""
    path: Path = tmp_path_factory.mktemp("fuzz") / "log"
    path.touch()
    tailer = Tailer([path])
    got = b""
    for number, part in enumerate(parts):
        with path.open("ab") as file:
            file.write(part)
        got += b"".join(chunk.data for chunk in tailer.poll(float(number)))
    tailer.close()
    whole = b"".join(parts)
    assert len(got) <= 2 * len(whole)
