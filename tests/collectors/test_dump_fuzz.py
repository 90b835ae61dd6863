"""Damaged dumps of every shape: no crash, and no more time than their length is worth."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectors.test_text_dump import SHAPES
from tests.collectors.test_text_dump_wild import WILD
from whyhang.collectors.masking import mask_text
from whyhang.collectors.text_dump import parse_text_dump
from whyhang.schemas.errors import FormatError
from whyhang.schemas.stack_codec import StackReader, decode_threads

TEXTS = [text for text, _ in (*SHAPES.values(), *WILD.values())]
PIECES = (
    "\n", "\r", "\t", "\0", "\x1b[31m", "\ufffd", "²", "٣", '"', "(", ")", "<", "::", "|", "> ",
    "```", "...", "9" * 60, "Thread ", "Process 12: ", " (idle)", "0x7f", "[rank3]: ", "3 in:",
    "Locals:", '  File "x", line 3, in f', "line " + "7" * 5000, "ranks 0-99999999:", "#0  0x1 in ",
    "Traceback (most recent call last):", "(LWP 3)", '{"log":"', "| 1 | 2 | f (a.py:3) |",
)  # fmt: skip
VALUES: list[Any] = [None, True, -1, 1e308, 10**30, "", "x", "0x7f", [], {}, [[[]]], "\ud800"]
FRAME = {"name": "f", "filename": "/a/b.py", "module": None, "short_filename": "b.py", "line": 3}
DUMP = [
    {"pid": 3, "thread_id": 1, "thread_name": name, "os_thread_id": 3, "active": False,
     "owns_gil": True, "frames": [FRAME, {**FRAME, "module": "/lib/x.so"}], "process_info": None}
    for name in ("MainThread", None)
]  # fmt: skip


def damaged(chance: random.Random, text: str) -> str:
    """Cut, double, mix and replace parts of a text."""
    for _ in range(chance.randint(1, 12)):
        start, end = sorted(chance.randint(0, len(text)) for _ in range(2))
        other = chance.choice(TEXTS)
        new = chance.choice(
            (chance.choice(PIECES), "", 2 * text[start:end][:2000], other[: chance.randint(0, 400)])
        )
        text = text[:start] + new + text[start + chance.choice((0, 1, 5, end - start)) :]
    return text


def corrupt(chance: random.Random, value: Any) -> Any:
    """Another value somewhere in a document."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        copy = value.copy()
        key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
        copy[key] = corrupt(chance, copy[key])
        return copy
    return chance.choice(VALUES)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_damaged_texts_never_raise(text: str, chance: random.Random) -> None:
    """Whatever a paste has gone through, blocks come out, in time."""
    paste = damaged(chance, text)
    started = time.process_time()
    parse_text_dump(paste)
    assert time.process_time() - started < 0.5 + len(paste) * 1e-4


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_never_raise(data: bytes) -> None:
    """Binary garbage is no stack, and no crash."""
    parse_text_dump(data.decode("utf-8", "replace"))
    with pytest.raises(FormatError):
        decode_threads(b"{" + data)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_damaged_json_is_read_or_refused(chance: random.Random, cuts: int) -> None:
    """A wrong value of py-spy's JSON costs that value; what is no JSON is one error of ours."""
    document: Any = DUMP
    for _ in range(chance.randint(1, 6)):
        document = corrupt(chance, document)
    data = json.dumps(document).encode()
    for _ in range(cuts):
        start = chance.randint(0, len(data))
        data = data[:start] + chance.choice((b"", b"\xff", b"[", b"}", b'"')) + data[start + 1 :]
    try:
        StackReader().threads(data)
    except FormatError:
        return


@pytest.mark.parametrize("data", [b"[" * 500_000, b'[{"frames":' * 100_000, b'{"a":' * 200_000])
def test_bottomless_nesting_is_refused(data: bytes) -> None:
    """Brackets without an end cost an error, not the process."""
    with pytest.raises(FormatError):
        decode_threads(data)


@pytest.mark.parametrize("unit", ["hread", "eyJabcdefgh.", "a-", "a://", "password=", "1a:", "é"])
def test_masking_a_word_of_any_length_takes_no_time(unit: str) -> None:
    """A command line may be one word of many kilobytes."""
    word = unit * (64_000 // len(unit))
    started = time.process_time()
    mask_text(word)
    assert time.process_time() - started < 1.0


def test_many_headings_of_many_ranks_take_no_time() -> None:
    """Each line may name ten thousand ranks."""
    started = time.process_time()
    parse_text_dump("ranks 0-9999\n" * 5000)
    assert time.process_time() - started < 5.0
