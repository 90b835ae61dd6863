"""``whyhang ras``: asks NCCL's RAS service, within the safety rules, or reads a saved reply."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.schemas.ras import RasReply, RasReport

MAX_FILE_BYTES = 64 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``ras``."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--file", type=Path, help="a saved reply; - reads stdin")
    source.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="ask there (default: NCCL_RAS_ADDR of the training on this host)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="ask although this NCCL release may crash on it, or its release is unknown",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    """Print what RAS says."""
    from whyhang.collectors.ras_client import parse_address
    from whyhang.engine.ras_query import RasRefusal, ask_by_hand

    if options.file is not None:
        return _show(_parse(_read(options.file)), options.format)
    if options.address is not None and parse_address(options.address) is None:
        raise UsageError(
            f"not an address: {options.address!r}", hint="write HOST:PORT, such as localhost:28028"
        )
    answer = ask_by_hand(options.address, force=options.force)
    if isinstance(answer, RasRefusal):
        return _explain(answer, options.format)
    if answer.note:
        print(f"whyhang: {answer.note}", file=sys.stderr)
    return _show(_parse(answer.data), options.format)


def _read(path: Path) -> bytes:
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(MAX_FILE_BYTES)
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _parse(data: bytes) -> RasReply:
    from whyhang.collectors.ras_replies import parse_reply

    return parse_reply(data)


def _explain(refusal: Any, form: str) -> int:
    """No reply: nothing follows from that about the job."""
    if form == "json":
        print(json.dumps({"format": "none", "complete": False, "problem": refusal.reason}))
    else:
        print(f"No RAS reply: {refusal.reason}")
        if refusal.meaning:
            print(f"  {refusal.meaning}")
        print("  This says nothing about the job: it may hang or run.")
    return 0


def _show(reply: RasReply, form: str) -> int:
    from whyhang.engine.ras_reading import read_report
    from whyhang.schemas.ras import report_of
    from whyhang.schemas.ras_codec import reply_document

    if form == "json":
        document = reply_document(reply)
        report = report_of(reply)
        if report is not None:
            inner = document.get("result", document)
            inner["suspects"] = [_suspect(suspect) for suspect in read_report(report).suspects]
        print(json.dumps(document, indent=1, ensure_ascii=False))
        return 0
    for line in _lines(reply):
        print(line)
    return 0


def _suspect(suspect: Any) -> dict[str, object]:
    document: dict[str, object] = {
        "reason": suspect.reason,
        "comm": suspect.comm,
        "rank": suspect.rank,
        "pid": suspect.pid,
        "host": suspect.host,
    }
    if suspect.behind_by is not None:
        document["behind_by"] = suspect.behind_by
    return document


def _lines(reply: RasReply) -> Iterator[str]:
    from whyhang.schemas.ras import ClientMessages, MonitorEvents, RasDialogue

    if isinstance(reply, ClientMessages):
        yield f"No RAS reply: {reply.problem or 'unknown'}"
        for attempt in reply.attempts:
            yield f"  {attempt.addr} port {attempt.port}: {attempt.error}"
    elif isinstance(reply, MonitorEvents):
        for event in reply.events:
            who = "" if event.pid is None else f" process {event.pid} on {event.host}"
            yield f"{event.timestamp} {event.event}{who} {event.details}".rstrip()
    elif isinstance(reply, RasDialogue):
        yield from _report_lines(reply.result)
    else:
        yield from _report_lines(reply)


def _report_lines(report: RasReport) -> Iterator[str]:
    from whyhang.engine.ras_reading import read_report, row_text
    from whyhang.schemas.ras import JsonReply

    version = report.version or "of unknown release"
    state = "complete" if report.complete else f"incomplete: {report.problem}"
    yield f"NCCL {version}, reply {state}"
    if isinstance(report, JsonReply):
        for comm in report.communicators:
            counts = comm.count_mismatch()
            yield (
                f"  {comm.hash}: {comm.size} ranks, {len(comm.missing)} missing, "
                + (f"counts differ in {', '.join(counts)}" if counts else "counts agree")
            )
    else:
        if report.job is not None:
            yield f"  job: {report.job.processes} processes on {report.job.nodes} nodes"
        for row in report.groups:
            if not row.ghost:
                yield f"  {row_text(row)}"
    reading = read_report(report)
    for suspect in reading.suspects:
        who = "" if suspect.rank is None else f"rank {suspect.rank} of communicator {suspect.comm} "
        place = "" if suspect.pid is None else f"(pid {suspect.pid} on {suspect.host})"
        by = "" if suspect.behind_by is None else f", behind by {suspect.behind_by}"
        yield f"  suspect: {suspect.reason}: {who}{place}{by}".rstrip()
    if reading.mismatch and not reading.suspects:
        yield "  counts differ, but no side is the smaller one or NCCL names nobody"
    if reading.suspects or reading.mismatch:
        yield "  Ask again in 15 s: counts that move belong to a job that lives."
