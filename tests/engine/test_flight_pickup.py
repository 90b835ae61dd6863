"""Copying flight recorder dumps: those that exist, and those that the job lets itself be asked."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from whyhang.collectors import flight_recorder_files
from whyhang.engine import flight_pickup
from whyhang.engine.collection import Collection
from whyhang.engine.flight_pickup import FlightPickup
from whyhang.engine.incidents import read_evidence
from whyhang.engine.store import IncidentWriter
from whyhang.schemas.config import CollectConfig, JobConfig
from whyhang.schemas.incident import Source
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress

pytestmark = pytest.mark.integration
Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts something with an environment that stands for a trainer, and ends it."""
    children = []

    def begin(**environ: str) -> Process:
        child = subprocess.Popen(
            ["sleep", "600"],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **environ},
        )
        children.append(child)
        return Process(pid=child.pid, node="n", kind="trainer", rank=len(children) - 1)

    yield begin
    for child in children:
        child.kill()
        child.wait()


def pick(pickup: FlightPickup, since: float | None, *, may_ask: bool = False) -> dict[int, bytes]:
    """What a pick-up wrote."""
    written: dict[int, bytes] = {}
    pickup.pick_up(written.__setitem__, since=since, may_ask=may_ask)
    return written


def test_fresh_dumps_are_taken_once(start: Start, tmp_path: Path) -> None:
    """What is newer than the hang's begin is copied, older files are another attempt's."""
    prefix = str(tmp_path / "trace_")
    pickup = FlightPickup()
    pickup.know([start(TORCH_NCCL_DEBUG_INFO_TEMP_FILE=prefix) for _ in range(2)])
    for rank in range(2):
        Path(f"{prefix}{rank}").write_bytes(b"dump %d" % rank)
    since = time.time() - 60
    os.utime(f"{prefix}1", (since - 100, since - 100))
    assert pick(pickup, since) == {0: b"dump 0"}
    source = pickup.source
    assert source is not None
    assert source.ok
    assert "older" in (source.reason or "")
    assert pick(pickup, since) == {}
    assert pick(pickup.fresh(), since) == {0: b"dump 0"}


def test_a_rank_that_died_leaves_its_dump(start: Start, tmp_path: Path) -> None:
    """The place is remembered: the dump of a collective's timeout precedes the end."""
    prefix = str(tmp_path / "trace_")
    process = start(TORCH_FR_DUMP_TEMP_FILE=prefix)
    pickup = FlightPickup()
    pickup.know([process])
    os.kill(process.pid, 9)
    os.waitpid(process.pid, 0)
    Path(f"{prefix}0").write_bytes(b"last words")
    assert pick(pickup, time.time() - 60) == {0: b"last words"}


def test_without_a_recorder_nothing_is_said(start: Start) -> None:
    """A job that records nothing lacks nothing."""
    pickup = FlightPickup()
    pickup.know([start()])
    assert pick(pickup, time.time(), may_ask=True) == {}
    assert pickup.source is None


@pytest.mark.parametrize("may_ask", [True, False])
def test_the_pipe_is_used_where_the_job_opened_it(
    start: Start, tmp_path: Path, may_ask: bool
) -> None:
    """A dump is asked for once, through the job's own pipe, and waited for."""
    prefix, pipe = str(tmp_path / "trace_"), str(tmp_path / "pipe_")
    os.mkfifo(f"{pipe}0.pipe")
    process = start(TORCH_NCCL_DEBUG_INFO_TEMP_FILE=prefix, TORCH_NCCL_DEBUG_INFO_PIPE_FILE=pipe)
    reader = os.open(f"{pipe}0.pipe", os.O_RDONLY | os.O_NONBLOCK)
    asked: list[bytes] = []

    def answer() -> None:
        deadline = time.monotonic() + 5
        while not asked and time.monotonic() < deadline:
            try:
                data = os.read(reader, 16)
            except BlockingIOError:
                data = b""
            if data:
                asked.append(data)
                Path(f"{prefix}0").write_bytes(b"on request")
            time.sleep(0.05)
            if not may_ask:
                return

    thread = threading.Thread(target=answer)
    thread.start()
    pickup = FlightPickup()
    pickup.know([process])
    written = pick(pickup, time.time() - 1, may_ask=may_ask)
    thread.join()
    os.close(reader)
    assert written == ({0: b"on request"} if may_ask else {})
    assert len(asked) == (1 if may_ask else 0)


def test_a_dump_that_is_being_written_is_waited_for(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no end yet and grows is looked at again; what has none and rests is torn."""
    looks: list[int] = []

    def look(pid: int, rank: int, environ: object, *, not_before: float) -> bytes:
        looks.append(rank)
        return b"{torn" if rank else b'{"entries": []}'[: 5 * len(looks)]

    monkeypatch.setattr(flight_recorder_files, "read_dump_of", look)
    monkeypatch.setattr(flight_pickup, "_POLL_SECONDS", 0.01)
    pickup = FlightPickup()
    prefix = str(tmp_path / "trace_")
    pickup.know([start(TORCH_FR_DUMP_TEMP_FILE=prefix) for _ in range(2)])
    assert pick(pickup, None) == {0: b'{"entries": []}', 1: b"{torn"}
    assert looks.count(1) == 2


def test_dumps_are_bounded(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be too much for the spool stays where it is, and that is said."""
    monkeypatch.setattr(flight_pickup, "LIMIT_BYTES", 10)
    prefix = str(tmp_path / "trace_")
    pickup = FlightPickup()
    pickup.know([start(TORCH_FR_DUMP_TEMP_FILE=prefix) for _ in range(2)])
    for rank in range(2):
        Path(f"{prefix}{rank}").write_bytes(b"12345678")
    assert set(pick(pickup, None)) == {0}
    source = pickup.source
    assert source is not None
    assert "rank 1: more than" in (source.reason or "")


def test_an_incident_holds_what_was_taken(start: Start, tmp_path: Path) -> None:
    """A collection parses what it copied, and the incident reads back the same; a torn file is
    copied as well, and costs only itself."""
    prefix = str(tmp_path / "trace_")
    processes = [start(TORCH_FR_DUMP_TEMP_FILE=prefix) for _ in range(2)]
    pickup = FlightPickup()
    pickup.know(processes)
    Path(f"{prefix}0").write_text(json.dumps({"version": "2.9", "entries": []}))
    Path(f"{prefix}1").write_bytes(b"{torn")
    collection = Collection(config=CollectConfig(), flight=pickup)
    writer = IncidentWriter(tmp_path / "store", collection.print_id, spool=tmp_path / "spool")
    collection.pick_up_dumps(writer, stalled_seconds=60.0, may_ask=False)
    incident = collection.incident(
        trigger="manual", progress=Progress(), log=Source(ok=True), job=JobConfig()
    )
    assert [dump.rank for dump in incident.flight] == [0]
    assert incident.sources["flight_recorder"].ok
    writer.write_index(incident)
    place = writer.publish()
    assert (place / "fr" / "1").read_bytes() == b"{torn"
    assert read_evidence(place).flight == incident.flight
