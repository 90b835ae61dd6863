"""The lines of ``progress.jsonl`` and ``events.jsonl`` to types and back. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from whyhang.schemas.errors import FormatError
from whyhang.schemas.lenient import decode_leniently
from whyhang.schemas.progress import LogEvent, ProgressEvent
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.wire import reader


class _LogEvent(Struct):
    kind: str
    line: str | None = None
    source: str | None = None
    node: str | None = None
    rank: int | None = None
    ranks: str | None = None
    device: str | None = None
    exit_code: int | None = None
    at: str | None = None


_LOG_EVENTS = msgspec.json.Decoder(_LogEvent, strict=False)
_PROGRESS_EVENTS = msgspec.json.Decoder(ProgressEvent, strict=False)


def decode_progress_event(line: bytes) -> ProgressEvent:
    """One line of ``progress.jsonl``. Raises FormatError."""
    return reader(_PROGRESS_EVENTS, "a progress event")(line)


def encode_progress_event(event: ProgressEvent) -> bytes:
    """One line of ``progress.jsonl``, without the line break."""
    return msgspec.json.encode(event)


def decode_log_event(line: bytes) -> LogEvent:
    """One line of ``events.jsonl``. Raises FormatError."""
    wire, _ = decode_leniently(line, reader(_LOG_EVENTS, "a log event"))
    try:
        ranks = RankSet.parse(wire.ranks or ("" if wire.rank is None else str(wire.rank)))
    except ValueError as error:
        raise FormatError(f"not a log event: {error}") from error
    return LogEvent(
        kind=wire.kind,
        line=wire.line or "",
        source="kernel" if wire.source == "kernel" else "log",
        ranks=ranks,
        node=wire.node,
        device=wire.device,
        exit_code=wire.exit_code,
        at=wire.at,
    )


def encode_log_event(event: LogEvent) -> bytes:
    """One line of ``events.jsonl``, without the line break."""
    ranks = list(event.ranks)
    wire = {
        "at": event.at,
        "kind": event.kind,
        "source": event.source,
        "node": event.node,
        "rank": ranks[0] if len(ranks) == 1 else None,
        "ranks": str(event.ranks) if len(ranks) > 1 else None,
        "device": event.device,
        "exit_code": event.exit_code,
        "line": event.line,
    }
    return msgspec.json.encode({key: value for key, value in wire.items() if value is not None})
