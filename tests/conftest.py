"""Builds incidents from compact descriptions, as the YAML cases give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from whyhang.engine.store import IncidentWriter
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Dump, IoCounters, OsThread, Process
from whyhang.schemas.progress import LogEvent, Progress
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import ProcessKind

# How long an example takes tells of the machine, not of the code: a busy one fails no test.
settings.register_profile("whyhang", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whyhang")

BuildIncident = Callable[[Mapping[str, Any]], Incident]
WriteIncident = Callable[[Mapping[str, Any]], Path]
SITE = "/opt/venv/lib/python3.12/site-packages/"
LIB = "/usr/lib/python3.12/"
USER = "/home/ada/project/"
SECONDS_BETWEEN_SAMPLES = 15.0


def frame(text: str) -> Frame:
    """``torch/_tensor.py:623 Tensor.backward``: a leading ``@`` is user code, ``!`` native."""
    place, _, name = text.partition(" ")
    path, _, line = place.partition(":")
    if path.startswith("!"):
        return Frame(name, path[1:], path[1:], 0, path[1:])
    if path.startswith("@"):
        return Frame(name, USER + path[1:], path[1:], int(line or 0))
    root = SITE if "/" in path and not path.startswith("multiprocessing/") else LIB
    return Frame(name, root + path, path, int(line or 0))


MAIN = ["@train.py:40 train", "@train.py:60 main", "@train.py:70 <module>"]
WAIT_FOR_DATA = [
    "selectors.py:415 _PollLikeSelector.select",
    "multiprocessing/connection.py:440 Connection._poll",
    "multiprocessing/queues.py:113 Queue.get",
    "torch/utils/data/dataloader.py:1291 _MultiProcessingDataLoaderIter._try_get_data",
    "torch/utils/data/dataloader.py:725 _BaseDataLoaderIter.__next__",
]
WORKER = ["torch/utils/data/_utils/fetch.py:54 _MapDatasetFetcher.fetch"]
LOOP = ["torch/utils/data/_utils/worker.py:374 _worker_loop", "multiprocessing/process.py:108 run"]
STACKS: dict[str, list[str]] = {
    "backward": [
        "torch/autograd/graph.py:979 _engine_run_backward",
        "torch/autograd/__init__.py:395 backward",
        "torch/_tensor.py:623 Tensor.backward",
        *MAIN,
    ],
    "all_reduce": [
        "torch/distributed/distributed_c10d.py:3252 all_reduce",
        "torch/distributed/c10d_logger.py:83 _exception_logger.<locals>.wrapper",
        *MAIN,
    ],
    "barrier_elsewhere": [
        "torch/distributed/distributed_c10d.py:5356 barrier",
        "@extra.py:9 extra_barrier",
        *MAIN,
    ],
    "recv": ["torch/distributed/distributed_c10d.py:1002 recv", *MAIN],
    "rendezvous": ["torch/distributed/rendezvous.py:191 _create_c10d_store", *MAIN],
    "data": [*WAIT_FOR_DATA, *MAIN],
    "user_sleep": ["@callbacks.py:12 Callback.on_step", *MAIN],
    "user_lock": [
        "!libpython3.12.so PyThread_acquire_lock_timed",
        "!libpython3.12.so lock_PyThread_acquire_lock",
        "@metrics.py:31 flush",
        *MAIN,
    ],
    "user_lock_plain": ["@metrics.py:31 flush", *MAIN],
    "compiling": ["torch/_inductor/graph.py:1200 GraphLowering.codegen", *MAIN],
    "saving": ["torch/serialization.py:1312 _save", "@train.py:90 save_checkpoint", *MAIN],
    "worker_idle": ["multiprocessing/queues.py:113 Queue.get", *LOOP],
    "worker_blocked": [
        "threading.py:327 Condition.wait",
        "@data.py:58 Shards.read_shard",
        *WORKER,
        *LOOP,
    ],
    "compile_worker_idle": ["torch/_inductor/compile_worker/subproc_pool.py:61 _recv_msg"],
}  # fmt: skip


def stack(name: str) -> Stack:
    """The stack of that name, or one frame given in full."""
    return Stack(tuple(frame(text) for text in STACKS.get(name, [name])))


def process(entry: Any, *, rank: int, sample: int, kind: ProcessKind, pid: int) -> Process | None:
    """One process line; ``entry`` is a stack's name or a mapping with more facts."""
    facts: dict[str, Any] = {"stack": entry} if isinstance(entry, str) else dict(entry)
    if facts.get("gone_after") is not None and sample >= facts["gone_after"]:
        return None
    shown = facts.get("then", facts.get("stack")) if sample else facts.get("stack")
    unread = facts.get("unread")
    threads: tuple[Thread, ...] | Missing = Missing(str(unread))
    if shown is not None:
        threads = (Thread(name="MainThread", stack=stack(str(shown)), tid=pid),)
    state = facts.get("state")
    moved = int(facts.get("io", 0) * SECONDS_BETWEEN_SAMPLES) * sample
    written = int(facts.get("writes", 0) * SECONDS_BETWEEN_SAMPLES) * sample
    return Process(
        pid=pid,
        node="node0",
        kind=kind,
        rank=rank,
        state=state,
        wchan=facts.get("wchan"),
        os_threads=None if state is None else (OsThread(tid=pid, state=state),),
        cpu_seconds=100 + float(facts.get("cpu", 0)) * SECONDS_BETWEEN_SAMPLES * sample,
        io=IoCounters(rchar=10**6 + moved, wchar=10**6 + written, write_bytes=written),
        dump=Dump(ok=shown is not None, mode=facts.get("mode", "native"), error=unread),
        threads=threads,
    )


def by_rank(entries: Mapping[Any, Any], ranks: int) -> dict[int, Any]:
    """``"*"`` for all, then single ranks or runs; later entries win."""
    found: dict[int, Any] = {}
    for key, entry in entries.items():
        for rank in range(ranks) if key == "*" else RankSet.parse(str(key)):
            found[rank] = entry
    return found


def build(case: Mapping[str, Any]) -> Incident:
    """The incident that a case describes."""
    ranks = int(case.get("ranks", 4))
    trainers = by_rank(case.get("trainers", {}), ranks)
    children: dict[ProcessKind, dict[int, Any]] = {
        "dataloader": by_rank(case.get("workers", {}), ranks),
        "compile_worker": by_rank(case.get("compile_workers", {}), ranks),
    }
    samples = []
    for sample in range(int(case.get("samples", 2))):
        lines: list[Process | None] = []
        for rank, entry in trainers.items():
            lines.append(process(entry, rank=rank, sample=sample, kind="trainer", pid=1000 + rank))
            for offset, (kind, entries) in enumerate(children.items()):
                if rank in entries:
                    pid = 5000 + 10 * rank + offset
                    lines.append(
                        process(entries[rank], rank=rank, sample=sample, kind=kind, pid=pid)
                    )
        samples.append(
            Snapshot(
                index=sample,
                at=f"2026-01-01T00:00:{sample * 15:02d}+00:00",
                monotonic_seconds=sample * SECONDS_BETWEEN_SAMPLES,
                processes=tuple(line for line in lines if line is not None),
            )
        )
    unread = RankSet(
        rank for rank, entry in trainers.items() if not isinstance(entry, str) and "unread" in entry
    )
    node = {"status": "partial" if unread else "ok", **case.get("node", {})}
    return Incident(
        print_id="1780890495107774003",
        trigger=case.get("trigger", "stall"),
        world_size=case.get("world_size", ranks),
        nodes=(Node(name="node0", ranks=RankSet(range(ranks)), unread=unread, **node),),
        samples=tuple(samples),
        progress=Progress(**{"state": "stalled", "stalled_seconds": 400.0, **case.get("log", {})}),
        events=tuple(
            LogEvent(kind=e["kind"], line="", ranks=RankSet(e["ranks"]), exit_code=e.get("code"))
            for e in case.get("events", ())
        ),
    )


@pytest.fixture
def build_incident() -> BuildIncident:
    """A function from a case's description to an incident."""
    return build


@pytest.fixture
def write_incident(tmp_path: Path) -> WriteIncident:
    """A function that writes the incident of a case and returns its directory."""

    def write(case: Mapping[str, Any]) -> Path:
        incident = build(case)
        assert incident.print_id
        writer = IncidentWriter(tmp_path / "store", incident.print_id, spool=tmp_path / "spool")
        for sample in incident.samples:
            writer.write_sample(sample.index, sample.processes)
        writer.write_index(incident)
        return writer.publish()

    return write
