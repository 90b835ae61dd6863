"""An incident's NCCL RAS replies and flight recorder dumps, read back from its directory."""

from __future__ import annotations

from pathlib import Path

from whyhang.collectors import flight_recorder
from whyhang.collectors.ras_replies import parse_reply
from whyhang.engine.store import FLIGHT_FOLDER, RAS_FOLDER
from whyhang.schemas.flight_recorder import FlightDump
from whyhang.schemas.ras import RasReport, report_of

MAX_REPLIES = 16
MAX_REPLY_BYTES = 64 << 20


def read_ras_replies(directory: Path, problems: list[str]) -> tuple[RasReport, ...]:
    """The reports of ``nccl_ras/<n>.txt`` and ``.json``, by number; others are problems."""
    reports: list[RasReport] = []
    for path in sorted(_files(directory / RAS_FOLDER), key=_number)[:MAX_REPLIES]:
        try:
            with path.open("rb") as file:
                reply = parse_reply(file.read(MAX_REPLY_BYTES))
        except OSError as error:
            problems.append(f"{RAS_FOLDER}/{path.name}: {error.strerror}")
            continue
        report = report_of(reply)
        if report is None:
            problems.append(f"{RAS_FOLDER}/{path.name}: not a report")
        else:
            reports.append(report)
    return tuple(reports)


def read_flight_dumps(directory: Path, problems: list[str]) -> tuple[FlightDump, ...]:
    """The dumps of ``fr/<rank>``; those that cannot be read are problems."""
    folder = directory / FLIGHT_FOLDER
    if not folder.is_dir():
        return ()
    try:
        dumps, unread = flight_recorder.read_dumps(folder)
    except OSError as error:
        problems.append(f"{FLIGHT_FOLDER}: {error.strerror}")
        return ()
    problems.extend(f"{FLIGHT_FOLDER}/{why}" for why in unread.values())
    return dumps


def _files(folder: Path) -> list[Path]:
    try:
        found = [p for p in folder.iterdir() if p.suffix in (".txt", ".json") and p.is_file()]
    except OSError:
        return []
    return found


def _number(path: Path) -> tuple[int, str]:
    digits = path.stem if path.stem.isascii() and path.stem.isdigit() else ""
    return (int(digits[:9]) if digits else 1 << 30), path.name
