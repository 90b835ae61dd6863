"""Tells the kinds of RAS output apart and reads each: reports, events, sessions, client errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from whyhang.collectors.ras_json import parse_json
from whyhang.collectors.ras_text import MAX_UNPARSED, parse_text
from whyhang.schemas.ras import (
    ClientMessages,
    ConnectAttempt,
    MonitorEvent,
    MonitorEvents,
    RasDialogue,
    RasReply,
    RasReport,
)

MAX_EVENTS = 100_000
_EVENT = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] ([A-Z][A-Z_]*): ?(.*)\Z")
_EVENT_PROCESS = re.compile(
    r"Process (\d{1,15}) on node ?(\S*) managing GPUs? ([\d,]+)(?: \(NVML ([\d,]+)\))? ?(.*)\Z"
)
_ATTEMPT = re.compile(r"Connecting to (\S+):(\d{1,5}): (.+)\Z")
_PROBLEM = re.compile(
    r"Failed to connect to the NCCL RAS service!|Connection timed out; retrying\.\.\."
    r"|Connection timed out|NCCL unexpectedly closed the connection"
    r"|Unexpected response from NCCL: .*|Resolving \S+: .*"
)
_SPOKEN = re.compile(r"([CS]): ?(.*)\Z")
_END = "<EOF>"


def parse_reply(data: bytes) -> RasReply:
    """Read whatever RAS or its client printed. Never raises; a foreign text is unparsed lines."""
    text = data.decode("utf-8", "replace").replace("\0", "�").removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "").strip()
    if first.startswith("{"):
        return _json(text)
    if _EVENT.match(first):
        return _events(text)
    if _ATTEMPT.match(first) or _PROBLEM.fullmatch(first):
        return _client(text)
    if _SPOKEN.match(first):
        return _dialogue(text)
    return parse_text(text)


def parse_report(data: bytes) -> RasReport:
    """Read the answer to ``STATUS``."""
    text = data.decode("utf-8", "replace").replace("\0", "�")
    return parse_json(text) if text.lstrip().startswith("{") else parse_text(text)


def _json(text: str) -> RasReply:
    decoder = json.JSONDecoder()
    try:
        found, _ = decoder.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return parse_json(text)
    if isinstance(found, dict) and "event" in found and "communicators" not in found:
        return MonitorEvents(form="json", events=tuple(_json_events(text, decoder)))
    return parse_json(text)


def _json_events(text: str, decoder: json.JSONDecoder) -> Iterator[MonitorEvent]:
    """Objects stand one behind the other, without anything between them."""
    place = 0
    for _ in range(MAX_EVENTS):
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            yield _json_event(found)


def _json_event(found: dict[str, Any]) -> MonitorEvent:
    def integers(*names: str) -> tuple[int, ...]:
        for name in names:
            value = found.get(name)
            if isinstance(value, list):
                return tuple(v for v in value if isinstance(v, int) and not isinstance(v, bool))
        return ()

    pid, host = found.get("pid"), found.get("host", found.get("node"))
    gpus = integers("gpus", "cuda_devs")
    return MonitorEvent(
        timestamp=str(found.get("timestamp", "")),
        event=str(found.get("event", "")),
        pid=pid if isinstance(pid, int) and not isinstance(pid, bool) else None,
        host=host if isinstance(host, str) else None,
        gpus=gpus,
        nvml=integers("nvml", "nvml_devs") or gpus,
        details=str(found.get("details", "")),
    )


def _events(text: str) -> MonitorEvents:
    events: list[MonitorEvent] = []
    unparsed: list[str] = []
    for line in text.splitlines():
        match = _EVENT.match(line)
        if match is not None and len(events) < MAX_EVENTS:
            events.append(_event(match))
        elif line.strip() and len(unparsed) < MAX_UNPARSED:
            unparsed.append(line[:500])
    return MonitorEvents(events=tuple(events), unparsed=tuple(unparsed))


def _event(match: re.Match[str]) -> MonitorEvent:
    timestamp, event, rest = match.groups()
    process = _EVENT_PROCESS.match(rest)
    if process is None:
        return MonitorEvent(timestamp=timestamp, event=event, details=rest.strip())
    gpus = _integers(process[3])
    return MonitorEvent(
        timestamp=timestamp,
        event=event,
        pid=int(process[1]),
        host=process[2],
        gpus=gpus,
        nvml=gpus if process[4] is None else _integers(process[4]),
        details=process[5].strip(),
    )


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part and len(part) < 16)


def _client(text: str) -> ClientMessages:
    """What NCCL's client wrote; addresses of version 6 stand without brackets or with them."""
    attempts: list[ConnectAttempt] = []
    problem: str | None = None
    for line in text.splitlines()[:10_000]:
        line = line.strip()
        match = _ATTEMPT.match(line)
        if match is not None:
            attempts.append(ConnectAttempt(match[1].strip("[]"), int(match[2]), match[3]))
        elif problem is None and _PROBLEM.fullmatch(line):
            problem = line
    return ClientMessages(attempts=tuple(attempts), problem=problem)


def _dialogue(text: str) -> RasDialogue:
    """Lines behind ``C:`` went to the server, lines behind ``S:`` came from it."""
    exchanges: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _SPOKEN.match(line)
        if match is None:
            continue
        if match[1] == "C":
            exchanges.append((match[2], []))
        elif exchanges:
            exchanges[-1][1].append(match[2])
    report: list[str] = []
    short: list[tuple[str, str]] = []
    for command, answer in exchanges[:10_000]:
        if command.strip().lower().endswith("status"):
            report = answer
        short.append((command, answer[0] if answer else ""))
    ended = bool(report) and report[-1] == _END
    body = "\n".join(report[:-1] if ended else report)
    return RasDialogue(
        exchanges=tuple(short),
        result=parse_report((body + "\n" if ended and body else body).encode()),
    )
