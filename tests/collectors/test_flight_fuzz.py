"""Flight recorder dumps made to harm: no code is run, time and memory follow the file's size."""

from __future__ import annotations

import copyreg
import os
import pickle
import random
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectors.test_flight_recorder import dump, entry
from whyhang.collectors import flight_recorder_pickle
from whyhang.collectors.flight_recorder import parse_dump
from whyhang.collectors.flight_recorder_pickle import PickleRefused, load_plain
from whyhang.schemas.flight_recorder import FlightDump
from whyhang.schemas.missing import Missing

SIZE = 200_000


def text(content: str) -> bytes:
    """The opcode that puts a text on the stack."""
    data = content.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def dict_of(*parts: bytes) -> bytes:
    """Opcodes of a dict of keys and values in turn."""
    return b"}(" + b"".join(parts) + b"u"


def number(value: int) -> bytes:
    """The opcode of an integer of any size."""
    data = value.to_bytes(10, "little")
    return b"\x8a\x0a" + data


FRAME = dict_of(text("name"), text("n" * 900), text("filename"), text("f" * 900))
FAT_ENTRY = dict_of(
    text("frames"), b"](" + FRAME * 32 + b"e",
    text("input_sizes"), b"](](" + b"K\x01" * 64 + b"eq\x05" + b"h\x05" * 4095 + b"e",
)  # fmt: skip
WORLD = b"](" + b"".join(b"J" + n.to_bytes(4, "little") for n in range(20_000)) + b"e"

HOSTILE = {
    "an entry repeated by two bytes": b"\x80\x02}" + text("entries") + b"]" + FAT_ENTRY
    + b"q\x000(" + b"h\x00" * 60_000 + b"es.",
    "members repeated for each group": b"\x80\x02}" + text("entries") + b"]s" + text("pg_config")
    + b"}(" + text("g") + dict_of(text("ranks"), WORLD) + b"q\x00"
    + b"".join(text(str(n)) + b"h\x00" for n in range(9000)) + b"us.",
    "keys of one hash": b"\x80\x02}("
    + b"".join(number(n * ((1 << 61) - 1)) + b"N" for n in range(SIZE // 13)) + b"u.",
    "a set of one hash": b"\x80\x04\x8f("
    + b"".join(number(n * ((1 << 61) - 1)) for n in range(SIZE // 12)) + b"\x90.",
    "tuples in tuples": b"\x80\x02)" + b"\x85" * SIZE + b".",
    "tuples by marks": b"\x80\x02" + b"(" * (SIZE // 2) + b"t" * (SIZE // 2) + b".",
    "lists in lists": b"\x80\x02" + b"](" * (SIZE // 2) + b"e" * (SIZE // 2) + b".",
    "doubled tops": b"\x80\x02]" + b"2" * SIZE + b".",
    "empty appends": b"\x80\x02]" + b"(e" * (SIZE // 2) + b".",
    "marks among many": b"\x80\x02(" + b"N" * (SIZE // 2) + b"(1" * (SIZE // 4) + b".",
    "memo of everything": b"\x80\x04N" + b"\x94" * SIZE + b".",
    "memo index": b"\x80\x02]r\xff\xff\xff\x7f.",
    "integer of 2 GiB": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "integer of minus one byte": b"\x80\x02\x8b\xff\xff\xff\xff.",
    "text of 8 EiB": b"\x80\x04\x8d" + ((1 << 63) - 1).to_bytes(8, "little") + b"x.",
    "bytes of 4 GiB": b"\x80\x03B\xff\xff\xff\xffx.",
    "frame of 4 EiB": b"\x80\x04\x95" + (1 << 62).to_bytes(8, "little") + b"N.",
    "digits": b"\x80\x02I" + b"7" * SIZE + b"\n.",
    "digits of a float": b"\x80\x02F" + b"7" * SIZE + b"\n.",
    "digits of a memo index": b"\x80\x02g" + b"7" * SIZE + b"\n.",
    "json in json": b'{"entries":' + b"[" * SIZE,
    "json objects": b'{"entries":' * (SIZE // 11),
    "json digits": b'{"entries":' + b"7" * SIZE + b"}",
    "blanks": b" " * SIZE + b"{",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_dumps_cost_no_time(name: str) -> None:
    """A few hundred kilobytes are read or refused within moments."""
    began = time.process_time()
    found = parse_dump(HOSTILE[name], 0)
    assert time.process_time() - began < 10.0
    assert isinstance(found, Missing)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_dumps_cost_no_memory(name: str) -> None:
    """Neither lengths nor repetition make more than the file's size is worth."""
    tracemalloc.start()
    try:
        parse_dump(HOSTILE[name], 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (32 << 20) + 200 * len(HOSTILE[name])


def test_time_follows_the_size() -> None:
    """Four times the records take about four times as long, not sixteen."""
    took = []
    for count in (500, 2000):
        data = pickle.dumps(dump(*map(entry, range(count))), 2)
        runs = []
        for _ in range(3):
            began = time.process_time()
            assert isinstance(parse_dump(data, 0), FlightDump)
            runs.append(time.process_time() - began)
        took.append(min(runs))
    assert took[1] < 9 * took[0] + 0.05


def test_containers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte can ask for two hundred: there is a limit on how many may ask."""
    monkeypatch.setattr(flight_recorder_pickle, "MAX_CONTAINERS", 100)
    assert load_plain(b"\x80\x04" + b"\x8f0" * 99 + b"N.") is None
    with pytest.raises(PickleRefused, match="too large"):
        load_plain(b"\x80\x04" + b"\x8f0" * 101 + b"N.")


SHELL = "touch {}"


def hostile_code(target: Path) -> dict[str, bytes]:
    """Pickles that touch a file when Python loads them, or need something only Python has."""
    command = text(SHELL.format(target))
    call = b"\x85R."
    return {
        "os.system": b"\x80\x02cos\nsystem\n" + command + call,
        "posix.system": b"\x80\x02cposix\nsystem\n" + command + call,
        "eval": b"\x80\x02cbuiltins\neval\n"
        + text(f"__import__('os').system({SHELL.format(target)!r})") + call,
        "getattr": b"\x80\x02cbuiltins\ngetattr\ncbuiltins\n__import__\n" + text("x") + b"\x86R.",
        "inst": b"(" + command + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + command + b"o.",
        "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + command + call,
        "reconstructor": b"\x80\x02ccopyreg\n_reconstructor\ncbuiltins\nobject\n"
        b"cbuiltins\nobject\nN\x87R.",
        "tensor": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.",
        "storage": b"\x80\x02(" + text("storage") + b"tQ.",
        "persistent id": b"Pstorage\n.",
        "newobj": b"\x80\x02cbuiltins\nobject\n)\x81.",
        "newobj_ex": b"\x80\x04cbuiltins\nobject\n)}\x92.",
        "build on a dict": b"\x80\x02}}b.",
        "reduce a text": b"\x80\x02" + command + b")R.",
        "extension 1": b"\x80\x02\x82\xf0.",
        "extension 2": b"\x80\x02\x83\xf0\x00.",
        "extension 4": b"\x80\x02\x84\xf0\x00\x00\x00.",
        "buffer": b"\x80\x05\x97.",
        "bytearray": b"\x80\x05\x96" + (4).to_bytes(8, "little") + b"abcd.",
    }  # fmt: skip


@contextmanager
def extension(code: int) -> Iterator[None]:
    """Register a number that stands for ``os.system`` in pickles."""
    copyreg.add_extension("os", "system", code)
    try:
        yield
    finally:
        copyreg.remove_extension("os", "system", code)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", hostile_code(Path("x")))
def test_code_is_refused_and_never_run(name: str, inside: bool, tmp_path: Path) -> None:
    """What names code is refused with a reason, alone or deep in a dump, and nothing happens."""
    target = tmp_path / "touched"
    data = hostile_code(target)[name]
    if inside:
        data = b"\x80\x02}" + text("entries") + b"]" + data.removesuffix(b".") + b"as."
    with extension(0xF0):
        found = parse_dump(data, 0)
    assert isinstance(found, Missing)
    assert found.reason.startswith("refused: it holds ")
    assert not target.exists()


@pytest.mark.parametrize("name", ["os.system", "eval", "inst", "obj", "stack global"])
def test_the_hostile_code_is_real(name: str, tmp_path: Path) -> None:
    """Python's own loader does run it: the test above could fail."""
    target = tmp_path / "touched"
    child = os.fork()
    if child == 0:
        try:
            pickle.loads(hostile_code(target)[name])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert target.exists()


OPCODES = [bytes([n]) for n in range(256)]
PIECES = [
    *(b"h\x00", b"q\x00", b"\x94", b"(", b"e", b"u", b"]", b"}", b"2", b"0", b"1", b"\x85", b"t"),
    *(text("entries"), text("frames"), text("9" * 18), number(1 << 70)),
    b"G\x7f\xf8" + b"\0" * 6,
]
VALUES: list[Any] = [
    *(None, True, -1, 1 << 62, 1e308, float("nan"), "", "x" * 3000, "\ud800", [], {}, ()),
    *([[]], b"\xff", {"a": [1]}, "12", "nccl:send 9->1", [[1 << 62] * 70]),
]


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([2, 4, 5]), st.integers(1, 12))
def test_pickles_with_other_opcodes_never_break_the_reader(
    chance: random.Random, protocol: int, count: int
) -> None:
    """Opcodes put in, taken out or doubled give a dump or a reason."""
    data = pickle.dumps(dump(entry(0), entry(1)), protocol)
    for _ in range(count):
        at = chance.randrange(len(data))
        new = chance.choice(PIECES if chance.random() < 0.6 else OPCODES) * chance.choice(
            (1, 1, 40)
        )
        data = data[:at] + new + data[at + chance.choice((0, 1, 8)) :]
    assert isinstance(parse_dump(data, 0), FlightDump | Missing)


def corrupt(chance: random.Random, value: Any) -> Any:
    """Another value somewhere in a document."""
    if isinstance(value, dict | list | tuple) and value and chance.random() < 0.85:
        copy: Any = value.copy() if isinstance(value, dict) else list(value)
        key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
        copy[key] = corrupt(chance, copy[key])
        return copy
    return chance.choice(VALUES)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_values_of_any_kind_never_break_the_reader(chance: random.Random, count: int) -> None:
    """A field that holds something else costs that field."""
    document: Any = dump(entry(0), entry(1))
    for _ in range(count):
        document = corrupt(chance, document)
    found = parse_dump(pickle.dumps(document, 4), 3)
    assert isinstance(found, FlightDump | Missing)
    if isinstance(found, FlightDump):
        hash(found.entries)
        assert all(isinstance(each.record, int) for each in found.entries)
