"""The RAS client against a double that replays recorded answers in every awkward way."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.collectors.local_server import LocalServer
from whyhang.collectors.ras_client import (
    RasAnswer,
    RasFailure,
    RasLimits,
    ask_ras,
    parse_address,
    settings_of,
)

DATA = Path(__file__).parent.parent / "data" / "ras"
TEXT = (DATA / "behind_two_operations.txt").read_bytes()
JSON = (DATA / "json_crosswise.txt").read_bytes()
QUICK = RasLimits(collect_seconds=1, factor=0.0, connect_seconds=1.0, hello_seconds=0.2, tries=3)


class Double(LocalServer):
    """A server on one port; ``behave`` says what it does with each connection in turn."""

    def __init__(
        self,
        behave: Sequence[str],
        *,
        json: bool = True,
        report: bytes = JSON,
        piece: int = 1 << 20,
        family: socket.AddressFamily = socket.AF_INET,
    ) -> None:
        self.behave, self.json, self.report, self.piece = list(behave), json, report, piece
        self.commands: list[bytes] = []
        self.connections = 0
        self.half_closed = False
        self.form = "text"
        super().__init__(family)

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            place = min(self.connections, len(self.behave) - 1)
            self.connections += 1
            self.held.append(connection)
            # A client that gives up in the middle is nothing special.
            with contextlib.suppress(OSError):
                self._talk(connection, self.behave[place])

    def _talk(self, connection: socket.socket, behaviour: str) -> None:
        if behaviour == "silent":
            return
        unread = b""
        while True:
            while b"\n" not in unread:
                data = connection.recv(100)
                if not data:
                    self.half_closed = True
                    return
                unread += data
            line, _, unread = unread.partition(b"\n")
            self.commands.append(line)
            if not self._answer(connection, line, behaviour):
                return

    def _answer(self, connection: socket.socket, line: bytes, behaviour: str) -> bool:
        command = line.lower()
        if behaviour == "foreign":
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        elif command.startswith(b"client protocol"):
            self._send(connection, b"SERVER PROTOCOL 2\n")
        elif command.startswith(b"timeout"):
            if behaviour == "silent after greeting":
                return False
            self._send(connection, b"OK\n")
        elif command == b"set format json":
            self.form = "json" if self.json else "text"
            known = b"OK\n" if self.json else b"ERROR: Unknown command SET FORMAT json\n"
            self._send(connection, known)
        elif command in (b"status", b"verbose status"):
            self._report(connection, behaviour)
            return False
        else:
            self._send(connection, b"ERROR: Unknown command " + line + b"\n")
        return True

    def _report(self, connection: socket.socket, behaviour: str) -> None:
        report = self.report
        if behaviour == "dies":
            report = b""
        elif behaviour in ("truncates", "resets", "stalls"):
            report = report[: len(report) // 2]
        elif behaviour == "floods":
            report = b"x" * (1 << 20)
        self._send(connection, report)
        if behaviour == "stalls":
            return
        if behaviour == "resets":
            time.sleep(0.1)  # let the bytes arrive: a reset discards what is on its way
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def _send(self, connection: socket.socket, data: bytes) -> None:
        for start in range(0, len(data), self.piece):
            connection.sendall(data[start : start + self.piece])
            if self.piece < 100:
                time.sleep(0.0002)


Serve = Callable[..., Double]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts doubles and stops them."""
    doubles: list[Double] = []

    def start(*behave: str, **options: object) -> Double:
        double = Double(behave or ("answers",), **options)  # type: ignore[arg-type]
        doubles.append(double)
        return double

    yield start
    for double in doubles:
        double.close()


def ask(double: Double, limits: RasLimits = QUICK) -> RasAnswer | RasFailure:
    """Ask a double."""
    return ask_ras(f"127.0.0.1:{double.port}", limits=limits)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_json_in_pieces(serve: Serve, piece: int) -> None:
    """The report arrives whole, however it is cut on its way."""
    double = serve(piece=piece, report=JSON[:1500] if piece == 1 else JSON)
    answer = ask(double)
    assert isinstance(answer, RasAnswer)
    assert (answer.data, answer.form, answer.cut) == (double.report, "json", None)
    assert double.commands == [b"CLIENT PROTOCOL 2", b"TIMEOUT 1", b"SET FORMAT json", b"STATUS"]
    assert not double.half_closed


def test_older_server_is_asked_for_text(serve: Serve) -> None:
    """A server without JSON says so; the connection goes on with the longer text report."""
    double = serve(json=False, report=TEXT)
    answer = ask(double)
    assert isinstance(answer, RasAnswer)
    assert (answer.data, answer.form) == (TEXT, "text")
    assert double.commands[-1] == b"VERBOSE STATUS"


def test_text_on_request(serve: Serve) -> None:
    """Where the form is known to be text, JSON is not tried."""
    double = serve(report=TEXT)
    answer = ask_ras(f"127.0.0.1:{double.port}", form="text", limits=QUICK)
    assert isinstance(answer, RasAnswer)
    assert double.commands == [b"CLIENT PROTOCOL 2", b"TIMEOUT 1", b"VERBOSE STATUS"]


def test_stopped_process_is_left_for_the_next(serve: Serve) -> None:
    """Silence means that a stopped process was reached: another connection finds another one."""
    double = serve("silent", "silent", "answers")
    assert isinstance(ask(double), RasAnswer)
    assert double.connections == 3


def test_silence_for_ever_is_given_up(serve: Serve) -> None:
    """The number of connections is limited."""
    double = serve("silent")
    began = time.monotonic()
    failure = ask(double)
    assert isinstance(failure, RasFailure)
    assert failure.kind == "silent"
    assert double.connections == QUICK.tries
    assert time.monotonic() - began < 5


def test_death_under_the_question(serve: Serve) -> None:
    """An end without a byte right behind the question is told apart from all else."""
    failure = ask(serve("dies"))
    assert isinstance(failure, RasFailure)
    assert failure.kind == "died"


@pytest.mark.parametrize("behaviour", ["truncates", "resets"])
def test_part_of_a_report_is_kept(serve: Serve, behaviour: str) -> None:
    """What came before the peer broke off is kept."""
    answer = ask(serve(behaviour, report=TEXT, json=False))
    assert isinstance(answer, RasAnswer)
    assert answer.data == TEXT[: len(TEXT) // 2]
    if behaviour == "resets":
        assert answer.cut is not None and "connection lost" in answer.cut


def test_a_report_without_end_has_a_deadline(serve: Serve) -> None:
    """A report that does not end in time is handed on as far as it came."""
    limits = RasLimits(collect_seconds=-3, factor=0.06, hello_seconds=0.2, tries=1)
    began = time.monotonic()
    answer = ask(serve("stalls"), limits)
    assert isinstance(answer, RasAnswer)
    assert answer.cut == "no end of the reply in time"
    assert time.monotonic() - began < 5


def test_a_flood_is_cut(serve: Serve) -> None:
    """No more than the limit is kept of an endless report."""
    limits = RasLimits(collect_seconds=5, factor=0.0, hello_seconds=0.5, max_bytes=10_000)
    answer = ask(serve("floods"), limits)
    assert isinstance(answer, RasAnswer)
    assert len(answer.data) == 10_000
    assert answer.cut is not None


def test_another_service_is_not_asked(serve: Serve) -> None:
    """Something else at the port gets no command but the greeting."""
    double = serve("foreign")
    failure = ask(double)
    assert isinstance(failure, RasFailure)
    assert failure.kind == "foreign"
    assert double.commands == [b"CLIENT PROTOCOL 2"]


def test_silence_after_the_greeting(serve: Serve) -> None:
    """A process that is stopped in the middle costs seconds, not the watch."""
    failure = ask(serve("silent after greeting"))
    assert isinstance(failure, RasFailure)
    assert failure.kind in ("timeout", "silent")


def test_refusal_is_data() -> None:
    """Nobody listens: an answer, not an exception."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    failure = ask_ras(f"localhost:{port}", limits=QUICK)
    assert isinstance(failure, RasFailure)
    assert failure.kind == "refused"
    assert str(port) in failure.reason


def test_every_address_of_the_name_is_tried(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAS listens on the one address that its own resolver gave it, often IPv6 only."""
    try:
        double = serve(family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        dead = probe.getsockname()[1]

    def both(host: str, port: int, **kwargs: object) -> list[tuple[object, ...]]:
        assert host == "trainer"
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", dead)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", double.port, 0, 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    answer = ask_ras("trainer:28028", limits=QUICK)
    assert isinstance(answer, RasAnswer)
    assert answer.address.startswith("[::1]")


def test_unknown_name() -> None:
    """A name that does not resolve is an answer."""
    failure = ask_ras("no-such-host.invalid:28028", limits=QUICK)
    assert isinstance(failure, RasFailure)
    assert failure.kind == "unresolved"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("localhost:28028", ("localhost", 28028)),
        ("[fd00::1]:99", ("fd00::1", 99)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("fd00::1:99", None),
        ("localhost", None),
        ("localhost:0", None),
        ("localhost:70000", None),
        (":28028", None),
        ("", None),
    ],
)
def test_addresses(text: str, parsed: tuple[str, int] | None) -> None:
    """The forms that NCCL_RAS_ADDR takes."""
    assert parse_address(text) == parsed
    if parsed is None:
        failure = ask_ras(text)
        assert isinstance(failure, RasFailure)
        assert failure.kind == "address"


def test_settings_of_a_trainer() -> None:
    """The environment tells address, time factor and whether RAS is off; nonsense is ignored."""
    told = settings_of({"NCCL_RAS_ADDR": "[::1]:7", "NCCL_RAS_TIMEOUT_FACTOR": "3"})
    assert (told.address, told.factor, told.enabled) == ("[::1]:7", 3.0, True)
    assert not settings_of({"NCCL_RAS_ENABLE": "0"}).enabled
    assert settings_of({"NCCL_RAS_TIMEOUT_FACTOR": "nan"}).factor == 1.0
    assert settings_of({}).address == "localhost:28028"
