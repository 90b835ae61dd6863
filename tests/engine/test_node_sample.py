"""Node facts beside a sample."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from whyhang.engine.collection import Collection
from whyhang.engine.node_sample import NodeSample, kernel_events
from whyhang.engine.store import IncidentWriter
from whyhang.schemas.config import CollectConfig, JobConfig
from whyhang.schemas.incident import Source
from whyhang.schemas.node_facts import KernelLine, NodeFacts
from whyhang.schemas.node_facts_codec import decode_node_facts
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress

AT = "2026-05-01T10:00:00+00:00"
SICK = 'import time; print(\'{"memory": {"total_bytes": 7}}\', flush=True); time.sleep(60)'


def python(script: str) -> list[str]:
    """A command that runs a script."""
    return [sys.executable, "-I", "-c", script]


@pytest.mark.integration
def test_a_sick_driver_costs_only_what_it_holds() -> None:
    """What came before the limit is kept, and the rest says why it is unread."""
    sample = NodeSample(node="a", at=AT, limit_seconds=3.0, command=python(SICK))
    assert sample._thread.is_alive()  # it was not waited for
    facts = sample.facts()
    assert not sample._thread.is_alive()
    assert facts.memory is not None and facts.memory.total_bytes == 7
    assert facts.unread == {"facts": "no answer in time"}
    assert (facts.node, facts.at) == ("a", AT)


@pytest.mark.integration
def test_a_child_that_fails_says_why() -> None:
    """The last line of its error is the reason."""
    facts = NodeSample(node="a", at=AT, command=python("raise ValueError('odd')")).facts()
    assert facts.unread == {"facts": "ValueError: odd"}


@pytest.mark.integration
def test_the_facts_stand_beside_the_sample(tmp_path: Path) -> None:
    """A collection writes `<node>.facts.json`, also where no process of the job is left."""
    collection = Collection(config=CollectConfig(gpu="never", native="never"), root=2**22 + 1)
    writer = IncidentWriter(tmp_path / "store", collection.print_id, spool=tmp_path / "spool")
    collection.take(deep=False, writer=writer)
    incident = collection.incident(
        trigger="manual", progress=Progress(), log=Source(ok=True), job=JobConfig()
    )
    (path,) = writer.directory.glob("samples/0/*.facts.json")
    facts = decode_node_facts(path.read_bytes())
    assert facts.node == collection.node and facts.memory is not None
    assert facts.gpus is None
    assert json.loads(path.read_bytes())["at"] == incident.samples[0].at
    assert incident.samples[0].facts == {collection.node: facts}
    assert incident.sources["node"].ok


def test_kernel_lines_become_events_of_the_node() -> None:
    """An Xid names the node on which the kernel told of it, and the GPU's address."""
    facts = NodeFacts(
        node="gpu31",
        kernel=(KernelLine(line="NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen", at=AT),),
    )
    (event,) = kernel_events(facts)
    assert (event.kind, event.node, event.device) == ("xid", "gpu31", "0000:44:00")
    assert (event.at, event.source) == (AT, "kernel")
    assert kernel_events(NodeFacts(node="gpu31")) == ()


GPUS = (
    'import json; print(json.dumps({"gpus": ['
    '{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b"}]}))'
)


@pytest.mark.integration
def test_processes_get_their_gpus() -> None:
    """The facts complete what the environment named, and who waits for them sees both."""
    trainer = Process(pid=2**22 + 1, node="a", kind="trainer", rank=5, local_rank=1, gpu_index=1)
    seen: list[tuple[Process, ...]] = []
    sample = NodeSample(
        node="a",
        at=AT,
        processes=(trainer,),
        command=python(GPUS),
        done=lambda facts, processes: seen.append(processes),
    )
    facts = sample.facts()
    assert facts.gpus is not None and [gpu.local_rank for gpu in facts.gpus] == [None, 1]
    assert [process.gpu_uuid for process in sample.processes()] == ["GPU-b"]
    assert seen == [sample.processes()]
