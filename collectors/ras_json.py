"""Reads a RAS report in JSON form, also where NCCL printed it wrongly or the peer cut it.

NCCL 2.28.7 to 2.28.9 leave out a comma in the record of a missing rank. A document that was cut is
read up to the last complete value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from whyhang.schemas.ras import OPERATIONS, Communicator, JsonReply, MissingRank, RasMember

Object: TypeAlias = dict[str, Any]

_LOST_COMMA = re.compile(r'("nvml_dev"\s*:\s*-?\d+)(\s*)(?="status")')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|"')
_CLOSING = {"{": "}", "[": "]"}
MAX_DEPTH = 64


def parse_json(text: str) -> JsonReply:
    """Parse a report; ``complete`` is false where something is missing from it."""
    document, repaired, problem = read_document(text)
    if not isinstance(document, dict):
        return JsonReply(complete=False, problem=problem or "not a RAS report")
    ras = _object(document.get("ras"))
    if problem is None and not ("communicators" in document and "ras" in document):
        problem = "truncated: no summary of the collection"
    return JsonReply(
        complete=problem is None,
        repaired=repaired,
        problem=problem,
        version=_text(document.get("nccl_version")),
        cuda_runtime=_integer(document.get("cuda_runtime_version")),
        cuda_driver=_integer(document.get("cuda_driver_version")),
        collection_seconds=_number(ras.get("collection_time_sec")),
        timeouts=_integer(ras.get("timeouts_count")),
        communicators=tuple(_communicators(document.get("communicators"))),
    )


def read_document(text: str) -> tuple[object, bool, str | None]:
    """The document, whether it had to be repaired, and why it is not complete."""
    found = _loads(text)
    if found is not None:
        return found, False, None
    mended, commas = _LOST_COMMA.subn(r"\1,\2", text)
    if commas:
        found = _loads(mended)
        if found is not None:
            return found, True, None
    found = _loads(close_document(mended))
    return found, commas > 0, "truncated: the document does not end"


def close_document(text: str) -> str:
    """Cut a document behind its last complete object or list and close what is open there."""
    stack: list[str] = []
    end, open_there = 0, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _CLOSING:
            stack.append(_CLOSING[token])
            if len(stack) > MAX_DEPTH:
                return ""
        elif token in ("}", "]"):
            if not stack or stack.pop() != token:
                break
            end, open_there = match.end(), "".join(reversed(stack))
        elif token == '"':
            break
    return text[:end] + open_there


def _loads(text: str) -> object | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _communicators(found: object) -> Iterator[Communicator]:
    for entry in _objects(found):
        digits = _text(entry.get("hash")) or ""
        try:
            name = format(int(digits, 16), "016x")
        except ValueError:
            name = digits[:64]
        yield Communicator(
            hash=name,
            size=_integer(entry.get("size")) or 0,
            secondary_hash=_text(entry.get("secondary_hash")),
            members=tuple(_members(entry.get("ranks"))),
            missing=tuple(_missing(entry.get("missing_ranks"))),
        )


def _members(found: object) -> Iterator[RasMember]:
    for entry in _objects(found):
        rank = _integer(entry.get("rank"))
        if rank is None:
            continue
        status = _object(entry.get("status"))
        counts = _object(entry.get("collective_counts"))
        yield RasMember(
            rank=rank,
            host=_host(entry),
            pid=_pid(entry),
            gpu=_integer(entry.get("cuda_dev")),
            nvml=_integer(entry.get("nvml_dev")),
            status=_status(status),
            async_error=_integer(status.get("async_error")),
            counts=tuple(_integer(counts.get(name)) for name in OPERATIONS),
        )


def _status(status: Object) -> str:
    """The word that the text form uses; the highest of those that apply."""
    if status.get("abort_flag"):
        return "ABORT"
    if status.get("finalize_called") or status.get("destroy_flag"):
        return "FINALIZE"
    return "INIT" if status.get("init_state") else "RUNNING"


def _missing(found: object) -> Iterator[MissingRank]:
    for entry in _objects(found):
        rank = _integer(entry.get("rank"))
        if rank is None:
            continue
        status = _object(entry.get("status"))
        yield MissingRank(
            rank=rank,
            host=_host(entry),
            pid=_pid(entry),
            gpu=_integer(entry.get("cuda_dev")),
            unresponsive=_truth(status.get("unresponsive")),
            considered_dead=_truth(status.get("considered_dead")),
        )


def _host(entry: Object) -> str | None:
    host = _text(entry.get("host"))
    return None if host in (None, "", "unknown") else host


def _pid(entry: Object) -> int | None:
    pid = _integer(entry.get("pid"))
    return None if pid is None or pid < 0 else pid


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[Object]:
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
