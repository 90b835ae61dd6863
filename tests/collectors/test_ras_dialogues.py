"""Whole dialogues with a RAS server, byte by byte: what each release and each fault does."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.collectors.local_server import LocalServer
from whyhang.collectors.ras_client import RasAnswer, RasFailure, RasLimits, ask_ras
from whyhang.collectors.ras_replies import parse_reply
from whyhang.engine.ras_reading import is_our_job, read_report
from whyhang.schemas.ras import report_of

DATA = Path(__file__).parent.parent / "data"
DIALOGUES: list[dict[str, Any]] = yaml.safe_load(
    (DATA / "ras_dialogues" / "dialogues.yaml").read_text()
)


class Server(LocalServer):
    """Plays one list of steps on each connection in turn."""

    def __init__(self, connections: Sequence[Sequence[str]]) -> None:
        is_v6 = connections[0][0] == "v6"
        self.connections = [[step for step in steps if step != "v6"] for steps in connections]
        self.taken = 0
        self.surprises: list[str] = []
        super().__init__(socket.AF_INET6 if is_v6 else socket.AF_INET)

    def serve(self) -> None:
        for steps in self.connections:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.taken += 1
            self.held.append(connection)
            # A client that gives up in the middle is a part of some dialogues.
            with contextlib.suppress(OSError):
                self._play(connection, steps)

    def _play(self, connection: socket.socket, steps: Sequence[str]) -> None:
        piece = 1 << 20
        for step in steps:
            word, _, rest = step.partition(" ")
            if word == "<":
                self._expect(connection, rest)
            elif word == "pieces":
                piece = int(rest)
            elif word == "pause":
                time.sleep(float(rest))
            elif word in ("end", "reset", "hold"):
                _leave(connection, word)
            else:
                data = _bytes(word, rest)
                for start in range(0, len(data), piece):
                    connection.sendall(data[start : start + piece])
                    if piece < 20:
                        time.sleep(0.0002)

    def _expect(self, connection: socket.socket, line: str) -> None:
        """Read one line; what else the client sends before its answer is a surprise."""
        connection.settimeout(5)
        found = b""
        while not found.endswith(b"\n"):
            data = connection.recv(1)
            if not data:
                self.surprises.append(f"{found!r} instead of {line}")
                return
            found += data
        if found != line.encode() + b"\n":
            self.surprises.append(f"{found!r} instead of {line}")


def _leave(connection: socket.socket, how: str) -> None:
    if how == "hold":
        return
    if how == "reset":
        time.sleep(0.1)  # a reset discards what is still on its way
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _bytes(word: str, rest: str) -> bytes:
    if word == ">":
        return rest.encode() + b"\n"
    if word == "~":
        return rest.encode("latin-1").decode("unicode_escape").encode("latin-1")
    if word == "flood":
        return b"x" * 100_000
    assert word == "report", word
    name, _, part = rest.partition(" ")
    start, _, end = part.partition(":")
    return (DATA / "ras" / f"{name}.txt").read_bytes()[int(start or 0) : int(end) if end else None]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Plays the dialogue of the test."""
    try:
        found = Server(request.param["connections"])
    except OSError:
        pytest.skip("no IPv6 here")
    yield found
    found.close()


def other_service(kind: str) -> socket.socket:
    """What stands at the first address: nothing that listens, or a service that talks first."""
    first = socket.socket()
    first.bind(("127.0.0.1", 0))
    if kind == "foreign":
        first.listen(4)

        def talk() -> None:
            with contextlib.suppress(OSError):
                connection, _ = first.accept()
                connection.sendall(b"220 mail ready\r\n")
                connection.close()

        threading.Thread(target=talk, daemon=True).start()
    return first


def ask(
    dialogue: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch
) -> RasAnswer | RasFailure:
    """Let the client have the dialogue."""
    limits = RasLimits(
        collect_seconds=1,
        factor=-1.0,
        hello_seconds=0.3,
        tries=3,
        max_bytes=dialogue.get("max_bytes", 1 << 20),
    )
    monkeypatch.setattr("whyhang.collectors.ras_client.SPARE_SECONDS", 1.0)
    places: list[tuple[Any, ...]] = []
    with contextlib.ExitStack() as stack:
        if "first" in dialogue:
            first = stack.enter_context(other_service(dialogue["first"]))
            places.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", first.getsockname()))
        places.append((server.listener.family, 1, 6, "", server.listener.getsockname()))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        return ask_ras("trainer:28028", form=dialogue.get("form", "json"), limits=limits)


@pytest.mark.parametrize(
    ("dialogue", "server"),
    [pytest.param(each, each, id=each["name"]) for each in DIALOGUES],
    indirect=["server"],
)
def test_dialogues(
    dialogue: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dialogue goes as recorded, ends in time, and says what stands beside it."""
    began = time.monotonic()
    found = ask(dialogue, server, monkeypatch)
    assert time.monotonic() - began < 8
    assert server.surprises == []
    expected = dict(dialogue["outcome"])
    if isinstance(found, RasFailure):
        seen: dict[str, Any] = {"kind": found.kind}
    else:
        seen = {"kind": "answer", **_read(found, expected)}
    seen["connections"] = server.taken
    assert {key: seen.get(key) for key in expected} == expected


def _read(found: RasAnswer, expected: dict[str, Any]) -> dict[str, Any]:
    """What the answer says, in the words of the dialogues."""
    report = report_of(parse_reply(found.data))
    assert report is not None
    reading = read_report(report)
    ours = expected.get("ours", {})
    verdict = is_our_job(report, ours.get("pids", ()), processes=ours.get("processes"))
    return {
        "form": found.form,
        "address": found.address.rpartition(":")[0],
        "version": report.version,
        "complete": report.complete,
        "mismatch": reading.mismatch,
        "missing": reading.missing,
        "suspects": [f"{s.reason} {s.rank} {s.pid}" for s in reading.suspects],
        "ours": {**ours, "is": verdict},
    }


def test_the_dialogues_cover_the_releases() -> None:
    """Every family of releases answers in some dialogue, and every way to fail is there."""
    outcomes = [each["outcome"] for each in DIALOGUES]
    versions = {str(outcome.get("version", ""))[:4] for outcome in outcomes}
    assert {"2.24", "2.25", "2.27", "2.28", "2.29", "2.30"} <= versions
    assert {"answer", "silent", "timeout", "died", "foreign"} == {o["kind"] for o in outcomes}
