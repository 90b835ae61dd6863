"""RAS replies and servers that mean harm or know nothing: no crash, and time follows the size."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyhang.collectors.ras_client import RasAnswer, RasFailure, RasLimits, ask_ras
from whyhang.collectors.ras_json import close_document, read_document
from whyhang.collectors.ras_replies import parse_reply
from whyhang.engine.ras_reading import is_our_job, join_ranks, read_report
from whyhang.schemas.ras import report_of
from whyhang.schemas.ras_codec import reply_document

DATA = Path(__file__).parent.parent / "data" / "ras"
LINES = sorted({line for path in DATA.glob("*.txt") for line in path.read_text().splitlines()})
WHOLE = [path.read_text() for path in DATA.glob("json*.txt")]
SIZE = 200_000
ODD = (
    *("9" * 15, "-1", "#1-2", "(", ")", ",", "GPU", " -- ", "\t", "\x0b", "\x85", "\u2028", "²"),
    *("٣", "\0", "\ufeff", "> ", "C: ", "S: ", "<EOF>", "{", "["),
)


def use(data: bytes) -> None:
    """Read a reply and ask it all that the engine asks."""
    reply = parse_reply(data)
    json.dumps(reply_document(reply))
    report = report_of(reply)
    if report is not None:
        read_report(report, report)
        is_our_job(report, [7003], processes=8)
        join_ranks(report, {("n", 7003): 1})


@st.composite
def reports(draw: st.DrawFn) -> str:
    """Lines of real reports in any order, some with other words in them."""
    chance = draw(st.randoms(use_true_random=False))
    lines = []
    for _ in range(chance.randint(1, 60)):
        words = chance.choice(LINES).split(" ")
        for _ in range(chance.choice((0, 0, 0, 1, 3))):
            words[chance.randrange(len(words))] = chance.choice(
                (*ODD, *chance.choice(LINES).split())
            )
        lines.append(" ".join(words))
    return chance.choice(("\n", "\n", "\r\n", "\n\n")).join(lines) + chance.choice(("", "\n"))


@settings(max_examples=300, deadline=None)
@given(reports())
def test_any_order_of_lines_is_read(text: str) -> None:
    """Lines of the grammar in any order, with any word in them, give a reply."""
    use(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WHOLE), st.randoms(use_true_random=False), st.integers(0, 6))
def test_any_cut_of_any_document_is_read(text: str, chance: random.Random, changes: int) -> None:
    """JSON that was changed and cut gives a reply, and what was closed is JSON."""
    for _ in range(changes):
        at = chance.randrange(len(text))
        new = chance.choice(('"', "\\", "{", "}", "[", "]", ",", ":", "1e999", "null", "\\u0", "é"))
        text = text[:at] + new + text[at + chance.choice((0, 1, 20)) :]
    text = text[: chance.randint(0, len(text))]
    use(text.encode())
    read_document(text)
    closed = close_document(text)
    assert closed == "" or closed.rstrip("]}") == text[: len(closed.rstrip("]}"))]


BLOCK = (
    "#0-1 (00000000000000aa) MISMATCH\n"
    "  Communicator ranks have different AllReduce operation counts\n"
)
OWNER = "x -- GPU 1 managed by process 1 on node "
EVENT = "[2026-01-01 00:00:00] PEER_DEAD: Process 1 on node  managing GPU 1,1\n"
RANKS = '{"hash":"0xf","ranks":[{"rank":1}]},'
HOSTILE = {
    "numbers in a row": "1 " * (SIZE // 2),
    "blanks in a row": "1" + " " * SIZE + "x",
    "a table of blanks": ("1" + " " * 500) * (SIZE // 500),
    "a list of ranks": BLOCK + "The missing ranks: " + "7," * (SIZE // 2),
    "commas": "Node  running processes " + "," * SIZE,
    "owners without end": "Rank 1 reported " + OWNER * (SIZE // 40),
    "heads": "#0-0 (1) MISMATCH\n" * (SIZE // 18),
    "groups": BLOCK + "  2 ranks have launched up to operation 7\n" * (SIZE // 42),
    "members": BLOCK + "  Rank 3 -- GPU 1 managed by process 9 on node n\n" * (SIZE // 50),
    "communicators": BLOCK * (SIZE // len(BLOCK)),
    "quotes": ">" * SIZE,
    "dialogue": "C: STATUS\nS: OK\n" * (SIZE // 16),
    "attempts": "Connecting to a:1: x\n" * (SIZE // 21),
    "attempts in one": "Connecting to " + "a:1: " * (SIZE // 5),
    "resolving": "Resolving " + ": " * (SIZE // 2),
    "events": EVENT * (SIZE // 69),
    "event objects": '{"event":"x"}' * (SIZE // 13),
    "open texts": '{"a":"' + '\\"' * (SIZE // 2),
    "backslashes": '{"a":"' + "\\" * SIZE,
    "quotes in json": '{"a":' + '"' * SIZE,
    "colons in json": '{"nvml_dev" : ' + "1" * SIZE,
    "lost commas": '{"nvml_dev": 1 "status"' * (SIZE // 23),
    "lost commas and blanks": '{"nvml_dev":' + " " * SIZE,
    "blanks before nothing": '{"nvml_dev": 1' + " " * SIZE,
    "brackets": '{"a":' + "[" * SIZE,
    "pairs of brackets": '{"a":[' + "[]," * (SIZE // 3),
    "long hash": '{"ras":{},"communicators":[{"hash":"' + "f" * SIZE + '"}]}',
    "many hashes": '{"ras":{},"communicators":[' + RANKS * (SIZE // 37),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_cost_no_time(name: str) -> None:
    """Two hundred kilobytes of anything are read within moments."""
    began = time.process_time()
    use(HOSTILE[name].encode())
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("name", HOSTILE)
def test_time_follows_the_size(name: str) -> None:
    """An eighth of the reply takes no more than about an eighth of the time."""
    small, large = HOSTILE[name][: SIZE // 8], HOSTILE[name]

    def took(text: str) -> float:
        began = time.process_time()
        use(text.encode())
        return time.process_time() - began

    # The best of a few: what shares the core with us takes time of ours as well.
    assert min(took(large) for _ in range(3)) < 24 * took(small) + 0.3


def serve_once(listener: socket.socket, pieces: list[bytes], pause: float, reset: bool) -> None:
    """Send pieces to whoever connects, whatever is said, and end."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with contextlib.suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


WORDS = st.sampled_from(
    [
        b"SERVER PROTOCOL 2\n",
        b"OK\n",
        b"ERROR: Unknown command\n",
        b"\n",
        b"{",
        b"\xff",
        b"x" * 5000,
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS | st.binary(max_size=60), max_size=8), st.booleans())
def test_any_server_gives_an_answer_or_a_reason(pieces: list[bytes], reset: bool) -> None:
    """Whatever a server says and when, the client ends in time with one of its own answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        thread = threading.Thread(
            target=serve_once, args=(listener, pieces, 0.001, reset), daemon=True
        )
        thread.start()
        limits = RasLimits(
            collect_seconds=1, factor=0.0, connect_seconds=0.5, hello_seconds=0.2, tries=2
        )
        began = time.monotonic()
        found = ask_ras(f"127.0.0.1:{listener.getsockname()[1]}", limits=limits)
        assert time.monotonic() - began < 12
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    assert isinstance(found, RasAnswer | RasFailure)
    if isinstance(found, RasAnswer):
        use(found.data)
