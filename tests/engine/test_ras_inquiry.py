"""The questions to NCCL RAS in one hang, against a double of the server and real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.test_ras_client import JSON, QUICK, Double
from whyhang.collectors.ras_version import LoadedNccl
from whyhang.engine import collection as collecting
from whyhang.engine import ras_inquiry, ras_query
from whyhang.engine.collection import Collection
from whyhang.engine.diagnose import diagnose
from whyhang.engine.incidents import read_evidence
from whyhang.engine.ras_inquiry import RasInquiry, alive_first
from whyhang.engine.store import IncidentWriter
from whyhang.rules.load import load_ruleset
from whyhang.schemas.config import CollectConfig, JobConfig
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.stack import Stack, Thread

SAFE = LoadedNccl(versions=((2, 30, 7),), method="library")
OLD = LoadedNccl(versions=((2, 21, 5),), method="library")

Start = Callable[[int], Process]


@pytest.fixture
def double() -> Iterator[Double]:
    """A server that answers."""
    server = Double(["answers"])
    yield server
    server.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process that has a rank and an address for RAS, and ends it."""
    children = []

    def begin(port: int) -> Process:
        environ = {
            **os.environ,
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "1",
            "NCCL_RAS_ADDR": f"127.0.0.1:{port}",
        }
        code = "import time\nprint('up', flush=True)\ntime.sleep(600)"
        child = subprocess.Popen(
            [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, cwd=tmp_path
        )
        children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return standing(child.pid)

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def standing(pid: int, function: str = "backward") -> Process:
    """A trainer whose stack was read."""
    stack = Stack((Frame(function, "/x/train.py", "train.py", 1),))
    thread = Thread(name="MainThread", tid=1, stack=stack)
    return Process(pid=pid, node="n", kind="trainer", rank=0, state="S", threads=(thread,))


def loaded(monkeypatch: pytest.MonkeyPatch, nccl: LoadedNccl | Missing) -> None:
    """Let all processes have this NCCL."""
    monkeypatch.setattr(ras_inquiry, "detect_nccl", lambda pid: nccl)
    monkeypatch.setattr(ras_query, "detect_nccl", lambda pid: nccl)


@pytest.mark.integration
def test_raw_replies_are_kept_and_two_are_enough(
    monkeypatch: pytest.MonkeyPatch, start: Start, double: Double
) -> None:
    """Both replies are written as they came; a third question is never asked."""
    loaded(monkeypatch, SAFE)
    written: list[tuple[int, bytes, str]] = []
    inquiry = RasInquiry(policy="auto", limits=QUICK, write=lambda *reply: written.append(reply))
    trainers = [start(double.port)]
    assert inquiry.prospects(trainers, stepped=True, leads=True)
    answers = [inquiry.ask(trainers, stepped=True, world_size=None) for _ in range(3)]
    assert double.commands.count(b"STATUS") == 2
    assert answers[2] is False
    assert written == [(0, JSON, "json"), (1, JSON, "json")]
    assert len(inquiry.reports) == 2
    assert not inquiry.prospects(trainers, stepped=True, leads=True)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("nccl", "function", "stepped", "leads", "reason"),
    [
        (Missing("no NCCL library is mapped"), "backward", True, True, "no NCCL library is mapped"),
        (OLD, "backward", True, True, "NCCL 2.21.5 has no RAS"),
        (SAFE, "backward", False, True, "before the first step"),
        (SAFE, "new_group", True, True, "a communicator is being created"),
        (SAFE, "backward", True, False, "the node of rank 0"),
    ],
)
def test_not_asked_says_why(
    monkeypatch: pytest.MonkeyPatch,
    start: Start,
    double: Double,
    nccl: LoadedNccl | Missing,
    function: str,
    stepped: bool,
    leads: bool,
    reason: str,
) -> None:
    """Outside the safety rules nothing is sent, and the source tells the true reason."""
    loaded(monkeypatch, nccl)
    inquiry = RasInquiry(policy="auto", limits=QUICK)
    trainers = [standing(start(double.port).pid, function)]
    if inquiry.prospects(trainers, stepped=stepped, leads=leads):
        inquiry.ask(trainers, stepped=stepped, world_size=1)
    assert not inquiry.source.ok
    assert reason in (inquiry.source.reason or "")
    assert double.connections == 0


@pytest.mark.integration
def test_a_refused_connection_says_what_it_means(
    monkeypatch: pytest.MonkeyPatch, start: Start, double: Double
) -> None:
    """Nobody listens: the source says so for this release."""
    loaded(monkeypatch, SAFE)
    inquiry = RasInquiry(policy="auto", limits=QUICK)
    port = double.port
    double.close()
    assert not inquiry.ask([start(port)], stepped=True, world_size=1)
    assert "2.30.7 has RAS, but nobody listens" in (inquiry.source.reason or "")


def test_those_that_may_answer_come_first() -> None:
    """A zombie is nobody to ask, a stopped process the last."""
    here = os.getpid()
    ranks = [replace(standing(here), rank=rank, state=state) for rank, state in enumerate("ZTS")]
    assert [process.rank for process in alive_first(ranks)] == [2, 1]


def test_a_refusal_never_changes_a_verdict(
    build_incident: Callable[[Mapping[str, Any]], Incident],
) -> None:
    """With and without the question, verdict, suspects and confidence are the same."""
    incident = build_incident({"trainers": {"*": "backward", 2: "user_sleep"}})
    rules = load_ruleset(None)
    verdicts = [
        diagnose(replace(incident, sources={**incident.sources, **more}), rules).verdict
        for more in ({}, {"nccl_ras": Source(ok=False, reason="refused")})
    ]
    first, second = (
        (v.verdict, v.category, v.confidence, v.suspects, v.rule, v.lowered) for v in verdicts
    )
    assert first == second
    assert verdicts[0].is_hang


@pytest.mark.integration
@pytest.mark.parametrize("stepped", [True, False])
def test_a_deep_sample_asks_before_and_after(
    monkeypatch: pytest.MonkeyPatch,
    start: Start,
    double: Double,
    tmp_path: Path,
    stepped: bool,
) -> None:
    """A collection asks around its deep sample only, and the incident reads back with replies."""
    loaded(monkeypatch, SAFE)
    monkeypatch.setattr(ras_inquiry, "APART_SECONDS", 0.0)
    # Its pids are not those of this process.
    monkeypatch.setattr(ras_inquiry, "is_our_job", lambda *_, **__: None)
    taken = start(double.port)
    collection = Collection(config=CollectConfig(native="never", gpu="never"), root=taken.pid)
    writer = IncidentWriter(tmp_path / "store", collection.print_id, spool=tmp_path / "spool")
    collection.take(deep=False, writer=writer, stepped=stepped)
    assert double.connections == 0
    collection.take(deep=True, writer=writer, stepped=stepped)
    assert double.commands.count(b"STATUS") == (2 if stepped else 0)
    incident = collection.incident(
        trigger="manual", progress=Progress(), log=Source(ok=True), job=JobConfig()
    )
    assert incident.sources["nccl_ras"].ok is stepped
    writer.write_index(incident)
    again = read_evidence(writer.publish())
    assert again.ras == incident.ras
    assert len(again.ras) == (2 if stepped else 0)
    assert collecting.RAS_STACKS_SECONDS > 0
