"""Documents with faulty values: those are lost, the rest is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from whyhang.schemas.errors import FormatError
from whyhang.schemas.incident_codec import decode_index
from whyhang.schemas.missing import Missing
from whyhang.schemas.process_codec import ProcessReader
from whyhang.schemas.rankset import RankSet

FORMAT = "whyhang.incident/1"


def index(**more: Any) -> bytes:
    """An incident index with these keys."""
    return json.dumps({"format": FORMAT, **more}).encode()


def line(**more: Any) -> bytes:
    """A process line with these keys."""
    return json.dumps({"pid": 7, "kind": "trainer", **more}).encode()


@pytest.mark.parametrize("key", ["nodes", "samples", "progress", "sources", "world_size", "job_id"])
def test_null_is_unknown(key: str) -> None:
    """A key that is null is a key that is absent."""
    assert decode_index(index(**{key: None})) == decode_index(index())


def test_a_wrong_type_costs_its_value() -> None:
    """What is no number is unknown and told of; the rest of the index counts."""
    incident, times = decode_index(
        index(
            job_id="jo-1",
            world_size="many",
            nodes=[{"name": "a", "ranks": "0-3", "status": 5}, 7, {"name": "b", "ranks": "x"}],
            samples=[{"index": 1}, {"index": 0, "at": []}],
            sources={"log": {"ok": True}, "io": None},
        )
    )
    assert (incident.job_id, incident.world_size) == ("jo-1", None)
    assert [(node.name, str(node.ranks)) for node in incident.nodes] == [("a", "0-3"), ("b", "")]
    assert [moment.index for moment in times] == [0, 1]
    assert incident.sources["log"].ok
    reason = incident.sources["index"].reason or ""
    assert "$.world_size" in reason
    assert "ranks of b" in reason


@pytest.mark.parametrize("size", [-1, 0, 10**12, 10**30])
def test_impossible_sizes_are_unknown(size: int) -> None:
    """No bitmap of terabytes is made of a world that cannot be."""
    assert decode_index(index(world_size=size))[0].world_size is None


def test_a_sample_counts_once() -> None:
    """The same sample listed twice would prove that everything stands still."""
    times = decode_index(index(samples=[{"index": 0}, {"index": 0, "monotonic_seconds": 60}]))[1]
    assert [moment.index for moment in times] == [0]


def test_steps_of_impossible_ranks_are_left_out() -> None:
    """Keys that are no rank, and steps that are no number, are no steps."""
    steps = {"3": 9, "²": 1, "9" * 5000: 1, "-1": 1, "4": None}
    incident, _ = decode_index(index(progress={"per_rank_step": steps}))
    assert incident.progress.per_rank_step == {3: 9}


@pytest.mark.parametrize("rank", [-1, 10**8, 10**30, "x", [], 1.5])
def test_impossible_ranks_are_unknown(rank: object) -> None:
    """A process whose rank cannot be has none; it is still read."""
    process = ProcessReader().process(line(rank=rank, state="D"))
    assert (process.rank, process.state) == (None, "D")


def test_faults_inside_a_line_cost_themselves() -> None:
    """A task without its number, a dump without an answer, a frame without a name or file."""
    reader = ProcessReader()
    process = reader.process(
        line(
            rank=3,
            cmdline=["python", None],
            os_threads=[{"state": "D"}, {"tid": 8, "state": "S"}],
            dump={},
            io={"rchar": "lots", "wchar": 5},
            threads=[
                {"thread_name": None, "frames": None},
                {"thread_name": "MainThread", "frames": [{"name": None, "filename": 5}]},
            ],
        )
    )
    assert process.rank == 3
    assert process.os_threads is not None and [task.tid for task in process.os_threads] == [8]
    assert process.dump is None
    assert process.io is not None and (process.io.rchar, process.io.wchar) == (None, 5)
    assert not isinstance(process.threads, Missing)
    assert [thread.name for thread in process.threads] == [None, "MainThread"]
    assert process.threads[1].stack.frames[0].name == "?"
    assert any("$.os_threads[0]" in note for note in reader.ignored)


def test_bytes_that_are_no_text_are_replaced() -> None:
    """A process may be called anything: its line is not lost for that."""
    assert ProcessReader().process(b'{"pid": 7, "rank": 2, "name": "a\xff\xfe"}').rank == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"7",
        b"null",
        b'{"rank": 3}',
        b'{"pid": "x"}',
        b'{"pid": 1, "x": ' + b"[" * 50000,
    ],
)
def test_what_cannot_be_saved_is_a_format_error(data: bytes) -> None:
    """Foreign and torn lines, and such as nest without end, end in our own error."""
    with pytest.raises(FormatError):
        ProcessReader().process(data)


def test_lines_without_a_kind_are_remembered() -> None:
    """Whose trainer may be hidden among them is for the reader of the incident to say."""
    reader = ProcessReader()
    reader.process(b'{"pid": 1, "rank": 4}')
    reader.process(b'{"pid": 2, "rank": 5, "kind": "other"}')
    assert RankSet(reader.kindless) == RankSet([4])
