"""Asks NCCL's RAS service over TCP, with deadlines and a size limit at every step.

One process answers for the whole job. Every trainer of a node listens at the same address and the
kernel spreads connections over them, so a silent server is a stopped process: the next connection,
from another port, reaches another one. Nothing here raises; what went wrong is a RasFailure.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DEFAULT_ADDRESS = "localhost:28028"
CONNECT_SECONDS = 1.0
HELLO_SECONDS = 1.0
RESOLVE_SECONDS = 3.0
LEG_SECONDS = 5.0  # RAS's own limits for one collection, multiplied by NCCL_RAS_TIMEOUT_FACTOR
SPARE_SECONDS = 3.0
MAX_TRIES = 8
MAX_BYTES = 64 << 20
MAX_ANSWER = 4096  # an answer line repeats a command of at most 1,024 bytes

Form = Literal["text", "json"]
FailureKind = Literal["refused", "silent", "foreign", "died", "unresolved", "timeout", "address"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RasAnswer:
    """The bytes of a report. ``cut`` says why they may not be all."""

    data: bytes
    form: Form
    address: str
    cut: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RasFailure:
    """No report. ``died``: the answering process went away under the question; never ask again."""

    kind: FailureKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RasLimits:
    """How long and how much; the defaults are those of a job with the default time factor.

    ``collect_seconds`` is the time that RAS itself may take to ask the other processes.
    """

    collect_seconds: int = 5
    factor: float = 1.0
    connect_seconds: float = CONNECT_SECONDS
    hello_seconds: float = HELLO_SECONDS
    tries: int = MAX_TRIES
    max_bytes: int = MAX_BYTES

    @property
    def reply_seconds(self) -> float:
        """How long a report may take after it was asked for."""
        factor = min(max(self.factor, 0.0), 60.0)
        return self.collect_seconds + LEG_SECONDS * factor + SPARE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class RasSettings:
    """What a trainer's environment says of RAS. NCCL also reads files, which stay unread here."""

    enabled: bool = True
    address: str = DEFAULT_ADDRESS
    factor: float = 1.0


def settings_of(environ: Mapping[str, str]) -> RasSettings:
    """``NCCL_RAS_ENABLE``, ``NCCL_RAS_ADDR`` and ``NCCL_RAS_TIMEOUT_FACTOR`` of a process."""
    try:
        factor = float(environ.get("NCCL_RAS_TIMEOUT_FACTOR", "1"))
    except ValueError:
        factor = 1.0
    return RasSettings(
        enabled=environ.get("NCCL_RAS_ENABLE", "1").strip() != "0",
        address=environ.get("NCCL_RAS_ADDR", "").strip() or DEFAULT_ADDRESS,
        factor=factor if 0.0 < factor < 1000.0 else 1.0,
    )


def parse_address(text: str) -> tuple[str, int] | None:
    """Host and port of ``host:port``, ``1.2.3.4:port`` or ``[v6]:port``; None if it is none."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5:
        return None
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    number = int(port)
    return (host, number) if host and 0 < number < 65536 else None


def ask_ras(
    address: str = DEFAULT_ADDRESS, *, form: Form = "json", limits: RasLimits | None = None
) -> RasAnswer | RasFailure:
    """Ask once for the state of all communicators.

    ``form`` json is tried and falls back to text where the server does not know it.
    """
    limits = limits or RasLimits()
    parsed = parse_address(address)
    if parsed is None:
        return RasFailure(kind="address", reason=f"not an address: {address!r}")
    found = _resolve(*parsed)
    if isinstance(found, RasFailure):
        return found
    failures: list[RasFailure] = []
    for place in found:
        session = _greet(place, limits)
        if isinstance(session, RasFailure):
            failures.append(session)
            continue
        try:
            return _ask(session, form, limits)
        finally:
            session.close()
    return _worst(failures, address)


def _worst(failures: list[RasFailure], address: str) -> RasFailure:
    """What tells most: a silent or foreign server says more than a port where nobody listens."""
    for kind in ("silent", "foreign", "timeout"):
        for failure in failures:
            if failure.kind == kind:
                return failure
    reasons = "; ".join(dict.fromkeys(failure.reason for failure in failures))
    return RasFailure(kind="refused", reason=reasons or f"{address}: no address")


_Place = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


def _resolve(host: str, port: int) -> list[_Place] | RasFailure:
    """Every address of the name: RAS listens on the first one that *its* resolver gave it."""
    result: list[list[_Place] | str] = []

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            result.append(str(error))
            return
        places = [
            (family, (str(at[0]), int(at[1])) if family == socket.AF_INET else at)
            for family, _, _, _, at in found
            if family in (socket.AF_INET, socket.AF_INET6)
        ]
        result.append(list(dict.fromkeys(places)))  # type: ignore[arg-type]

    # A resolver can hang for minutes on a dead name server; it is left behind.
    thread = threading.Thread(target=look_up, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        return RasFailure(kind="unresolved", reason=f"{host}: {error}")
    thread.join(RESOLVE_SECONDS)
    answer = result[0] if result else f"no answer in {RESOLVE_SECONDS:g} s"
    if isinstance(answer, str):
        return RasFailure(kind="unresolved", reason=f"resolving {host}: {answer}")
    return answer


class _Session:
    """A connection that is read by lines, then to its end."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.address = address
        self._connection = connection
        self._unread = b""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.close()

    def send(self, command: str) -> bool:
        """Send a command line; whether it could be sent."""
        try:
            self._connection.sendall(command.encode() + b"\n")
        except OSError:
            return False
        return True

    def line(self, seconds: float) -> str | None:
        """The next answer; None on silence, an end or an endless line."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            if len(self._unread) > MAX_ANSWER:
                return None
            data = self._receive(deadline)
            if not isinstance(data, bytes) or not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    def rest(self, seconds: float, max_bytes: int) -> tuple[bytes, str | None]:
        """Everything up to the end, and why it may not be all.

        Our side stays open: RAS spins on a connection that was closed half.
        """
        deadline = time.monotonic() + seconds
        parts, size = [self._unread], len(self._unread)
        self._unread = b""
        while size <= max_bytes:
            data = self._receive(deadline)
            if not isinstance(data, bytes):
                return b"".join(parts), data
            if not data:
                return b"".join(parts), None
            parts.append(data)
            size += len(data)
        return b"".join(parts)[:max_bytes], f"longer than {max_bytes} bytes"

    def _receive(self, deadline: float) -> bytes | str:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "no end of the reply in time"
        try:
            ready, _, _ = select.select([self._connection], [], [], remaining)
            if not ready:
                return "no end of the reply in time"
            return self._connection.recv(1 << 16)
        except (OSError, ValueError) as error:
            return f"connection lost: {error}"


def _greet(place: _Place, limits: RasLimits) -> _Session | RasFailure:
    """Connect until a process answers that speaks RAS."""
    family, at = place
    name = f"{at[0]}:{at[1]}" if family == socket.AF_INET else f"[{at[0]}]:{at[1]}"
    for _ in range(limits.tries):
        connection = socket.socket(family, socket.SOCK_STREAM)
        session = _Session(connection, name)
        connection.settimeout(limits.connect_seconds)
        try:
            connection.connect(at)
        except TimeoutError:
            session.close()
            return RasFailure(kind="timeout", reason=f"{name}: no connection in time")
        except OSError as error:
            session.close()
            return RasFailure(kind="refused", reason=f"{name}: {error.strerror or error}")
        answer = session.line(limits.hello_seconds) if session.send("CLIENT PROTOCOL 2") else None
        if answer is not None and answer.startswith("SERVER PROTOCOL "):
            return session
        session.close()
        if answer is not None:
            return RasFailure(kind="foreign", reason=f"{name}: something else than RAS answers")
    return RasFailure(
        kind="silent",
        reason=f"{name}: no answer on {limits.tries} connections (stopped or frozen processes)",
    )


def _ask(session: _Session, form: Form, limits: RasLimits) -> RasAnswer | RasFailure:
    patience = 3 * limits.hello_seconds
    lost = RasFailure(kind="timeout", reason=f"{session.address}: silent after the greeting")
    if not session.send(f"TIMEOUT {limits.collect_seconds}") or session.line(patience) is None:
        return lost
    if form == "json":
        answer = session.line(patience) if session.send("SET FORMAT json") else None
        if answer is None:
            return lost
        if answer != "OK":
            form = "text"  # NCCL before 2.28.7: it says so, and the connection stays usable
    # Only text has longer lists on request; JSON is always complete.
    if not session.send("STATUS" if form == "json" else "VERBOSE STATUS"):
        return lost
    data, cut = session.rest(limits.reply_seconds, limits.max_bytes)
    if not data and (cut is None or cut.startswith("connection lost")):
        return RasFailure(
            kind="died",
            reason=f"{session.address}: the answering process closed the connection without a word",
        )
    if not data:
        return RasFailure(kind="timeout", reason=f"{session.address}: {cut}")
    form = "json" if data.lstrip()[:1] == b"{" else "text"
    if cut is not None and form == "text":
        data = data.rstrip(b"\n")  # cut behind a whole line, the bytes alone would look complete
    return RasAnswer(data=data, form=form, address=session.address, cut=cut)
