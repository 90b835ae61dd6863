"""The incidents of a store: written piece by piece as evidence comes in, listed, pruned.

Evidence goes to a local spool first. The store may lie on the very file system that hangs: then
the copy to it fails or waits, and the evidence is safe where it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from whyhang.engine.spool import Spool
from whyhang.schemas.event_codec import encode_log_event, encode_progress_event
from whyhang.schemas.incident import Incident
from whyhang.schemas.incident_codec import encode_index
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.node_facts_codec import encode_node_facts
from whyhang.schemas.process import Process
from whyhang.schemas.process_codec import encode_process

INDEX = "incident.json"
RAS_FOLDER = "nccl_ras"
FLIGHT_FOLDER = "fr"
PRINT_ID_DIGITS = 19
_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^\w.+@-]|^\.", re.ASCII)


def file_name(node: str) -> str:
    """A node's name as that of a file, which never leads out of its directory.

    Names that had to be changed end in a digest of the whole: no two nodes share a file.
    """
    safe = _UNSAFE.sub("_", node)[:_LONGEST_NAME]
    if safe == node and safe:
        return safe
    digest = hashlib.sha256(node.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{safe}-{digest}"


class IncidentWriter:
    """Writes one incident into the spool and publishes it to the store.

    Methods raise OSError where the spool itself cannot be written, not even in memory.
    """

    def __init__(self, store: Path, print_id: str, *, spool: Path | None = None) -> None:
        self.final = store / print_id
        self._spool = Spool(print_id, spool)
        self._is_published = False

    @property
    def directory(self) -> Path:
        """Where it stands until it is published."""
        return self._spool.directory

    def write_sample(self, index: int, processes: Iterable[Process]) -> None:
        """Write ``samples/<index>/<node>.jsonl``, one line per process."""
        by_node = sorted(processes, key=lambda process: process.node)
        for node, members in groupby(by_node, key=lambda process: process.node):
            name = f"samples/{index}/{file_name(node)}.jsonl"
            self._write_lines(name, map(encode_process, members))

    def write_facts(self, index: int, facts: NodeFacts) -> None:
        """Write ``samples/<index>/<node>.facts.json`` beside a sample that was written."""
        name = f"samples/{index}/{file_name(facts.node)}.facts.json"
        self._spool.write(name, encode_node_facts(facts))

    def write_index(self, incident: Incident) -> None:
        """Write ``incident.json`` and the line files that belong to it."""
        self._spool.write(INDEX, encode_index(incident))
        if incident.history:
            self._write_lines("progress.jsonl", map(encode_progress_event, incident.history))
        if incident.events:
            self._write_lines("events.jsonl", map(encode_log_event, incident.events))

    def write_log(self, name: str, lines: Iterable[str]) -> None:
        """Write ``logs/<name>.txt``, an excerpt around the stall."""
        self.write_report(f"logs/{name}.txt", "".join(line + "\n" for line in lines))

    def write_report(self, name: str, text: str) -> None:
        """Write a rendered file such as ``diagnosis.md``."""
        self._spool.write(name, text.encode("utf-8", "replace"))

    def write_ras(self, number: int, data: bytes, form: str) -> None:
        """Write ``nccl_ras/<number>.json`` or ``.txt``, a raw reply."""
        self._spool.write(f"{RAS_FOLDER}/{number}.{'json' if form == 'json' else 'txt'}", data)

    def write_flight(self, rank: int, data: bytes) -> None:
        """Write ``fr/<rank>``, a raw flight recorder dump."""
        self._spool.write(f"{FLIGHT_FOLDER}/{rank}", data)

    def publish(self, *, keep: bool = False) -> Path:
        """Move the incident into the store; the spool's path where that fails.

        With ``keep`` the spool stays, for what is still to come: publish again, then
        :meth:`release`. The first time it is copied under a name of its own and renamed, so that
        readers never see half of it; later, file by file, so that it never vanishes meanwhile.
        """
        try:
            if self._is_published and self.final.is_dir():
                self._update()
            else:
                self._publish_first()
        except OSError:
            return self.directory
        self._is_published = True
        if not keep:
            self.release()
        return self.final

    def release(self) -> None:
        """Drop the spool of an incident that stands in the store; else it is all there is."""
        if self._is_published:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _publish_first(self) -> None:
        staging = self.final.with_name(f".{self.final.name}.{os.getpid()}")
        try:
            self.final.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self.directory, staging, dirs_exist_ok=True)
            if self.final.exists():
                shutil.rmtree(self.final)
            staging.rename(self.final)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    def _update(self) -> None:
        """Copy what is new; the index last, so that it names no sample that is not there yet."""
        files = [path for path in self.directory.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.name == INDEX, path)):
            target = self.final / path.relative_to(self.directory)
            if _is_copy(path, target):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(target.name + ".part")
            shutil.copy2(path, partial)
            partial.replace(target)

    def discard(self) -> None:
        """Forget the incident: the stall healed by itself."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write_lines(self, name: str, lines: Iterable[bytes]) -> None:
        self._spool.write(name, b"".join(line + b"\n" for line in lines))


def _is_copy(path: Path, target: Path) -> bool:
    try:
        ours, theirs = path.stat(), target.stat()
    except OSError:
        return False
    return (ours.st_size, ours.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)


def incident_directories(store: Path) -> Iterator[Path]:
    """The incidents of a store, oldest first."""
    if store.is_dir():
        for path in sorted(store.iterdir()):
            if len(path.name) == PRINT_ID_DIGITS and path.name.isdigit() and path.is_dir():
                yield path


def prune(store: Path, *, now_ns: int, keep_seconds: float, max_bytes: int) -> tuple[Path, ...]:
    """Delete incidents past their time, then the oldest until the store fits; the deleted ones.

    The newest incident always stays. An incident's time is its print ID.
    """
    directories = list(incident_directories(store))
    sizes = {path: _size(path) for path in directories}
    total = sum(sizes.values())
    deleted = []
    for path in directories[:-1]:
        expired = now_ns - int(path.name) > keep_seconds * 1e9
        if not expired and total <= max_bytes:
            continue
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
        deleted.append(path)
    return tuple(deleted)


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:
            continue
    return total
