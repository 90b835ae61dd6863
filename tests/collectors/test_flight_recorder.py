"""Flight recorder dumps: both forms, what is refused, and that nothing breaks the reader."""

from __future__ import annotations

import io
import json
import pickle
import pprint
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyhang.collectors.flight_recorder import parse_dump, rank_in_name, read_dumps
from whyhang.collectors.flight_recorder_pickle import PickleRefused, load_plain
from whyhang.schemas.flight_recorder import FlightDump, GroupStatus
from whyhang.schemas.missing import Missing


def entry(record: int = 0, **changes: Any) -> dict[str, Any]:
    """A record as PyTorch writes it."""
    return {
        "record_id": record,
        "pg_id": 3,
        "process_group": ("7", "DATA"),
        "collective_seq_id": 41 + record,
        "p2p_seq_id": 0,
        "op_id": 50 + record,
        "profiling_name": "nccl:all_reduce",
        "is_p2p": False,
        "state": "scheduled",
        "retired": False,
        "input_sizes": [[8, 4]],
        "output_sizes": [[8, 4]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "time_created_ns": 1_700_000_000_000_000_000 + record,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "timeout_ms": 600_000,
        "frames": [{"name": "step", "filename": "/home/ada/train.py", "line": 9}],
        **changes,
    }


def dump(*entries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A whole dump."""
    return {
        "version": "2.9",
        "nccl_version": "2.27.5",
        "pg_config": {"7": {"name": "7", "desc": "DATA", "ranks": "[0, 2]"}},
        "pg_status": {
            "3": {
                "last_enqueued_collective": 41,
                "last_started_collective": -1,
                "last_completed_collective": 40,
            }
        },
        "entries": list(entries),
        **changes,
    }


def as_json(found: dict[str, Any]) -> bytes:
    """The JSON form writes numbers of the status as text, and zero for no time."""
    text = json.loads(json.dumps(found))
    for status in text["pg_status"].values():
        status.update({name: str(number) for name, number in status.items()})
    for each in text["entries"]:
        each["time_discovered_completed_ns"] = each["time_discovered_completed_ns"] or 0
    return json.dumps(text).encode()


def plain(protocol: int) -> Callable[[dict[str, Any]], bytes]:
    """Pickles of a protocol."""
    return lambda found: pickle.dumps(found, protocol)


@pytest.mark.parametrize("write", [as_json, plain(2), plain(4), plain(5)])
def test_both_forms_read_the_same(write: Callable[[dict[str, Any]], bytes]) -> None:
    """Pickles and JSON give one dump: members, numbers, records with their frames."""
    read = parse_dump(write(dump(entry(1), entry(0, state="completed"))), 2)
    assert isinstance(read, FlightDump)
    assert (read.rank, read.version, read.nccl_version) == (2, "2.9", "2.27.5")
    assert read.groups[0].ranks == (0, 2)
    assert read.status == {3: GroupStatus(41, None, 40)}
    first, second = read.entries
    assert (first.record, first.completed, second.completed) == (0, True, False)
    assert (second.seq, second.name, second.backend, second.group) == (
        42,
        "all_reduce",
        "nccl",
        "7",
    )
    assert second.input_sizes == ((8, 4),)
    assert second.frames == ("step /home/ada/train.py:9",)


def test_older_dumps() -> None:
    """PyTorch 2.2 has no status, no names of groups in records, one kind of number."""
    old = {"version": "1.0", "entries": [{"pg_id": 0, "seq_id": 5, "profiling_name": "nccl:bar"}]}
    read = parse_dump(pickle.dumps(old, 2), 0)
    assert isinstance(read, FlightDump)
    assert (read.entries[0].seq, read.status, read.groups) == (5, {}, ())


@pytest.mark.parametrize(
    ("op", "transfer"),
    [("nccl:send 0->3", (0, 3)), ("nccl:recv 0<-3", (3, 0)), ("nccl:all_reduce", None)],
)
def test_transfers(op: str, transfer: tuple[int, int] | None) -> None:
    """A receiver names itself first, a sender too: both give sender and receiver."""
    read = parse_dump(pickle.dumps(dump(entry(profiling_name=op)), 2), 0)
    assert isinstance(read, FlightDump)
    assert read.entries[0].transfer == transfer


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("_dump_12", 12),
        ("nccl_trace_rank_3", 3),
        ("3.json", 3),
        ("rank07.pkl", 7),
        ("README.md", None),
        ("notes.txt", None),
        ("global_rank_3-host-gpu01-pid-4242.json", 3),
        ("rank2_trace.json", 2),
        ("nccl_trace_rank_5.json.txt", 5),
        ("node_rank_1-dump_6", 6),
        ("local_rank_1-rank_9.pkl", 9),
    ],
)
def test_ranks_in_names(name: str, rank: int | None) -> None:
    """The number after the word is the rank, else the last one; other files are none."""
    assert rank_in_name(name) == rank


def test_directory(tmp_path: Path) -> None:
    """A dump that cannot be read is named with its reason and hides no other."""
    (tmp_path / "_dump_0").write_bytes(pickle.dumps(dump(entry()), 2))
    (tmp_path / "_dump_1").write_bytes(pickle.dumps(dump(entry()), 2)[:50])
    (tmp_path / "_dump_2").write_bytes(b"")
    (tmp_path / "README").write_text("no dump")
    (tmp_path / "sub_3").mkdir()
    dumps, problems = read_dumps(tmp_path)
    assert [each.rank for each in dumps] == [0]
    assert problems == {1: "_dump_1: cut or damaged", 2: "_dump_2: empty"}


def printed(value: dict[str, Any]) -> bytes:
    """A dump as JSON with indentation."""
    return json.dumps(value, indent=1).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + printed(dump(entry())),
        b"```json\n" + printed(dump(entry())) + b"\n```\n",
        repr(dump(entry())).encode(),
        b"```python\n" + pprint.pformat(dump(entry())).encode() + b"\n```\n",
    ],
)
def test_dumps_as_people_print_them(data: bytes) -> None:
    """A mark at the beginning, fences and Python's own form change nothing."""
    assert parse_dump(data, 3) == parse_dump(printed(dump(entry())), 3)
    assert isinstance(parse_dump(data, 3), FlightDump)


@pytest.mark.parametrize(
    "data", [b"{'entries': [", b"{'entries': [" + b"(" * 5000, b"```\nabc\n```"]
)
def test_printed_dumps_that_are_cut(data: bytes) -> None:
    """What is neither form is refused."""
    assert isinstance(parse_dump(data, 0), Missing)


@pytest.mark.parametrize("packer", ["gzip", "zstd", "zip"])
def test_packed_dumps_tell_the_remedy(packer: str) -> None:
    """Nobody is told that a packed dump is damaged."""
    magic = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "zip": b"PK\x03\x04"}[packer]
    assert parse_dump(magic + b"x", 0) == Missing(f"packed by {packer}: unpack it first")


def test_one_file_with_headings(tmp_path: Path) -> None:
    """A heading tells the rank of the dump below it; one of several ranks or of none does not."""
    paste = tmp_path / "paste.md"
    parts = ("### rank 3", "Ranks 4 and 5:", "dump:", "[rank 6]")
    paste.write_text("".join(f"{head}\n{printed(dump(entry())).decode()}\n" for head in parts))
    dumps, problems = read_dumps(paste)
    assert ([each.rank for each in dumps], problems) == ([3, 6], {})


def test_one_file_of_one_rank(tmp_path: Path) -> None:
    """Its name tells the rank where nothing in it does."""
    (tmp_path / "_dump_7").write_bytes(pickle.dumps(dump(entry()), 2))
    assert [each.rank for each in read_dumps(tmp_path / "_dump_7")[0]] == [7]


def test_a_directory_of_each_node(tmp_path: Path) -> None:
    """Where nothing but directories is there, their files count; logs are none of them."""
    for rank in (0, 1):
        (tmp_path / f"node{rank}").mkdir()
        (tmp_path / f"node{rank}" / f"_dump_{rank}").write_bytes(printed(dump(entry())))
        (tmp_path / f"node{rank}" / f"rank{rank + 4}.log").write_text("step 3\n")
    dumps, problems = read_dumps(tmp_path)
    assert ([each.rank for each in dumps], problems) == ([0, 1], {})


class Evil:
    """Calls something when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("/tmp/whyhang-was-here"),))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value",
    [Evil(), OrderedDict(a=1), Path("/"), len, {1, 2}, 1j],
    ids=["call", "class", "path", "builtin", "set", "complex"],
)
def test_globals_are_refused(value: object, protocol: int) -> None:
    """No name is looked up, however harmless; sets are plain only from protocol 4 on."""
    data = pickle.dumps({"entries": [value], "pg_status": {}}, protocol)
    if isinstance(value, set) and protocol >= 4:
        assert load_plain(data) == {"entries": [{1, 2}], "pg_status": {}}
        return
    with pytest.raises(PickleRefused, match="refused: it holds a"):
        load_plain(data)
    read = parse_dump(data, 0)
    assert isinstance(read, Missing)
    assert "refused" in read.reason
    assert not Path("/tmp/whyhang-was-here").exists()


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(1 << 80), 1 << 80)
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary(max_size=300),
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.lists(inner, max_size=5).map(tuple)
            | st.dictionaries(st.text() | st.integers(-(1 << 60), 1 << 60), inner, max_size=5)
        ),
        max_leaves=20,
    ),
    st.integers(3, 5),
)
def test_plain_data_reads_as_python_reads_it(value: object, protocol: int) -> None:
    """Plain values come back as they were; before protocol 3 Python writes bytes as calls."""
    data = pickle.dumps(value, protocol)
    assert load_plain(data) == pickle.loads(data)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 12), st.booleans())
def test_damaged_dumps_never_break_the_reader(seed: int, count: int, as_text: bool) -> None:
    """Bytes that are changed, dropped or doubled give a dump or a reason."""
    chance = random.Random(seed)
    whole = dump(entry(0), entry(1))
    data = bytearray(as_json(whole) if as_text else pickle.dumps(whole, 2))
    for _ in range(count):
        place = chance.randrange(len(data))
        if chance.randrange(2):
            data[place] = chance.randrange(256)
        else:
            data[place : place + chance.randrange(8)] = data[place : place + chance.randrange(8)]
        data = data or bytearray(b"\x80")
    assert isinstance(parse_dump(bytes(data), 0), FlightDump | Missing)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_foreign_bytes_never_break_the_reader(data: bytes) -> None:
    """Any bytes give a reason."""
    assert isinstance(parse_dump(data, 0), Missing)


def bomb() -> bytes:
    """Tuples of themselves, sixty levels deep, as the key of a dict: their hash never ends."""
    parts = io.BytesIO()
    parts.write(b"\x80\x02}K\x01")
    parts.write(b"2\x86" * 60)
    parts.write(b"Ns.")
    return parts.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        bomb(),
        b"\x80\x02]r\xff\xff\xff\x7f.",
        b"\x80\x04\x8d" + (1 << 62).to_bytes(8, "little") + b"x.",
        b"\x80\x02\x8b" + (1 << 31).to_bytes(4, "little"),
        b"\x80\x02" + b"]" * 300_000 + b"." + b"a" * 10,
        b"(" * 1_000_000,
        b"\x80\x02I" + b"9" * 100_000 + b"\n.",
        b"{" + b'"entries":[' * 100_000,
    ],
    ids=["hash", "memo", "text", "integer", "lists", "marks", "digits", "json"],
)
def test_hostile_dumps_are_refused_in_bounded_time(data: bytes) -> None:
    """Neither time nor memory goes beyond the size of the file."""
    began = time.monotonic()
    assert isinstance(parse_dump(data, 0), Missing)
    assert time.monotonic() - began < 10


def test_absurd_numbers_do_not_ask_for_memory() -> None:
    """A rank or a shape beyond all sense is cut or left out."""
    config = {"7": {"name": "7", "desc": "", "ranks": "[0, 999999999]"}}
    read = parse_dump(
        pickle.dumps(dump(entry(input_sizes=[[1 << 100] * 5]), pg_config=config), 2), 0
    )
    assert isinstance(read, FlightDump)
    assert read.groups[0].ranks == (0,)
    assert read.entries[0].input_sizes == ((),)
