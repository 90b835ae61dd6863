"""What to do about a machine: the commands name the node, the GPU and the peer of this incident."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.test_links import job, told
from whyhang.engine.judge import judge
from whyhang.engine.machine_steps import keep_off
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident
from whyhang.schemas.node_facts import GpuFacts, MemoryFacts, NodeFacts, ShmFacts

PACK = load_ruleset()


def steps(incident: Incident) -> str:
    """The next steps of the built-in pack, one a line."""
    return "\n".join(judge(PACK, incident).next_steps)


def test_a_failing_link_is_tried_from_its_end() -> None:
    """The pair is named; nobody is drained where either end may be at fault."""
    facts = {"gpu31": told("10.0.0.1", ("10.0.0.2", 9)), "gpu32": told("10.0.0.2")}
    text = steps(job(facts))
    assert "Try the link from gpu31: `ping -c 3 gpu32`" in text
    assert "drain" not in text


def test_a_node_that_is_cut_off_can_be_kept_free() -> None:
    """The node is named to both schedulers."""
    facts = {
        "gpu31": told("10.0.0.1", ("10.0.0.3", 9)),
        "gpu32": told("10.0.0.2", ("10.0.0.3", 9)),
        "gpu33": told("10.0.0.3"),
    }
    text = steps(job(facts))
    assert "nodename=gpu33 state=drain" in text and "kubectl cordon gpu33" in text
    assert "gpu31" not in text


def test_a_failed_gpu_is_asked_by_its_number() -> None:
    """The number is the machine's own; what runs out on that node is said as well."""
    facts = {
        "gpu31": NodeFacts(gpus=(GpuFacts(index=3, utilization_percent=100.0),)),
        "gpu32": NodeFacts(
            gpus=(GpuFacts(index=5, fault="GPU is lost"),),
            shm=ShmFacts(total_bytes=100, free_bytes=1),
            memory=MemoryFacts(total_bytes=100, available_bytes=50),
        ),
    }
    made = job(facts)
    samples = tuple(
        replace(
            sample,
            processes=tuple(
                replace(process, gpu_index=3 + 2 * (process.rank or 0))
                for process in sample.processes
            ),
        )
        for sample in made.samples
    )
    text = steps(replace(made, samples=samples))
    assert "on gpu32: `nvidia-smi -q -i 5`" in text
    assert "Shared memory is full on gpu32" in text
    assert "Memory runs out" not in text


def test_a_name_from_outside_is_quoted() -> None:
    """What is pasted into a shell must stay one word."""
    assert "kubectl cordon 'a; rm -rf b'" in keep_off("a; rm -rf b")
