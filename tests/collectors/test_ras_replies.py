"""RAS replies of every kind and release: what is read from them, and that nothing breaks it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyhang.collectors.ras_json import close_document
from whyhang.collectors.ras_replies import parse_reply
from whyhang.collectors.ras_text import MAX_LINES, parse_text
from whyhang.schemas.ras import JsonReply, RasRank, TextReply, report_of
from whyhang.schemas.ras_codec import reply_document

DATA = Path(__file__).parent.parent / "data" / "ras"
TRANSCRIPTS = sorted(DATA.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcripts(path: Path) -> None:
    """Each transcript reads as the document beside it says."""
    expected = json.loads(path.with_suffix(".json").read_text())
    assert reply_document(parse_reply(path.read_bytes())) == expected


@pytest.mark.parametrize("ending", ["\r\n", "\n\n"])
@pytest.mark.parametrize("name", ["dead_ipv6", "behind_two_operations", "lists_2.24", "ghost"])
def test_blank_lines_and_line_ends_do_not_matter(name: str, ending: str) -> None:
    """Blank lines between blocks come and go with the release: the same is read without them."""
    text = (DATA / f"{name}.txt").read_text()
    packed = ending.join(line for line in text.split("\n") if line.strip()) + ending
    assert parse_text(packed) == parse_text(text)


@pytest.mark.parametrize("name", ["unresponsive", "errors_of_two_phases", "uneven_gpus"])
def test_an_excerpt_without_headings_reads_the_same(name: str) -> None:
    """The headings are not needed to tell errors from warnings."""
    text = (DATA / f"{name}.txt").read_text()
    bare = [line for line in text.split("\n") if line.strip("=") not in ("Errors", "Warnings", "")]
    excerpt = parse_text("\n".join(bare) + "\n")
    assert excerpt.blocks == parse_text(text).blocks
    assert not excerpt.complete


def test_a_cut_member_is_not_believed() -> None:
    """A line that the peer did not finish may end inside a number: it names nobody."""
    text = (DATA / "behind_none_launched.txt").read_text()
    cut = text[: text.rindex("192.168.7.21") + len("192.168.7.2")]
    reply = parse_text(cut.replace("Warnings\n========\n", ""))
    groups = reply.blocks[0].count_groups
    assert groups is not None
    assert [rank.rank for rank in groups[0].values[1].ranks or ()] == [6]
    assert reply.unparsed[0].endswith("192.168.7.2")


def test_members_that_nobody_lists_are_unknown() -> None:
    """A group that NCCL does not list has no ranks; that is not an empty list."""
    reply = parse_text((DATA / "behind_none_launched.txt").read_text())
    groups = reply.blocks[0].count_groups
    assert groups is not None
    assert groups[0].values[0].ranks is None
    assert groups[0].values[1].ranks is not None
    assert groups[0].values[1].ranks[0] == RasRank(
        rank=6, gpu=2, nvml=2, pid=7018, host="192.168.7.21"
    )


@pytest.mark.parametrize("cut", range(0, 2600, 97))
def test_json_is_read_up_to_the_cut(cut: int) -> None:
    """A document that was cut anywhere gives the ranks that stand whole in it, and says so."""
    whole = (DATA / "json_crosswise.txt").read_text()
    reply = parse_reply(whole[:cut].encode())
    report = report_of(reply)
    assert report is not None
    assert not report.complete
    if cut > 1500:
        assert isinstance(report, JsonReply)
        assert report.communicators[0].members[0].pid == 7000


def test_brackets_in_texts_do_not_close_anything() -> None:
    """Only brackets outside of texts count, quotes behind a backslash included."""
    assert json.loads(close_document('{"a": ["}]\\"", {"b": [1]}, {"c": "')) == {
        "a": ['}]"', {"b": [1]}]
    }
    assert close_document('{"a": 1') == ""


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TRANSCRIPTS), st.integers(0, 1 << 30), st.integers(1, 20))
def test_damaged_replies_never_break_the_reader(path: Path, seed: int, count: int) -> None:
    """Bytes that are changed, dropped or doubled give a reply, whatever it says."""
    chance = random.Random(seed)
    data = bytearray(path.read_bytes() or b"x")
    for _ in range(count):
        place = chance.randrange(len(data))
        action = chance.randrange(3)
        if action == 0:
            data[place] = chance.randrange(256)
        elif action == 1:
            del data[place : place + chance.randrange(40)]
        else:
            data[place:place] = data[place : place + chance.randrange(200)]
        data = data or bytearray(b"{")
    reply_document(parse_reply(bytes(data)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=300).map(str.encode))
def test_foreign_bytes_never_break_the_reader(data: bytes) -> None:
    """Whatever another service answers is a reply that is not complete."""
    report = report_of(parse_reply(data))
    assert report is None or not report.complete


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 200_000,
        b'{"communicators":' + b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"hash": ' + b"9" * 100_000 + b"}",
        b"Rank 1 reported " + b"x -- GPU 1 managed by process 1 on " * 20_000,
        b"DEAD\n" + b"  Process 1 on node a managing GPUs 1" + b",1" * 200_000 + b"\n",
        b"#0-0 (1) MISMATCH\n" * 30_000,
        b"[2026-01-01 00:00:00] PEER_DEAD: " + b"Process " * 50_000,
        b" " * 1_000_000 + b"\n" + b"1 " * 100_000,
    ],
    ids=lambda data: data[:12].decode(),
)
def test_hostile_replies_are_read_in_bounded_time(data: bytes) -> None:
    """Deep nesting, endless lines and numbers cost no more than seconds and no crash."""
    began = time.monotonic()
    reply_document(parse_reply(data))
    assert time.monotonic() - began < 10


def test_endless_replies_are_cut() -> None:
    """A reply of more lines than any job gives is read in part and said to be."""
    reply = parse_text("Errors\n" * (MAX_LINES + 5))
    assert isinstance(reply, TextReply)
    assert not reply.complete
    assert reply.problem is not None and reply.problem.startswith("too long")
