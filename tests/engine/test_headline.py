"""The headline claims no more than was seen, and the next steps lead to the right process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from whyhang.engine.diagnose import diagnose
from whyhang.engine.judge import judge
from whyhang.renderers.markdown import render_markdown
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.process import BlockedOn, Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import Verdict

Build = Callable[[Mapping[str, Any]], Incident]
UNREAD: Mapping[str, Any] = {"state": "S", "unread": "py-spy: permission denied"}


def verdict_of(incident: Incident) -> Verdict:
    """The verdict of the built-in pack."""
    return judge(load_ruleset(), incident)


@pytest.mark.parametrize(
    ("case", "end"),
    [
        ({"ranks": 2, "trainers": {"*": "backward", 1: "data"}}, "; the other rank waits"),
        ({"ranks": 8, "trainers": {"*": "backward", 2: "data"}}, "; the other 7 ranks wait"),
        (
            {"ranks": 16, "trainers": {"*": "backward", 2: "data", 5: UNREAD}},
            "; 14 of the other 15 wait, 1 was not read",
        ),
        (
            {"ranks": 8, "world_size": 16, "trainers": {"*": "backward", 2: "data"}},
            "; 7 of the other 15 wait, 8 were not read",
        ),
        (
            {"ranks": 4, "trainers": {"*": "user_sleep", 3: {"stack": "backward", "state": "T"}}},
            "is stopped: backward torch/autograd/__init__.py:395",
        ),
    ],
)
def test_only_those_wait_that_were_seen_waiting(
    case: Mapping[str, Any], end: str, build_incident: Build
) -> None:
    """Ranks that were not read, and such as do something else, are not said to wait."""
    verdict = verdict_of(build_incident(case))
    assert verdict.verdict == "local_hang"
    assert verdict.headline.endswith(end)


def test_several_places_are_counted(build_incident: Build) -> None:
    """The headline names one place of the suspects and how many others there are."""
    case = {"ranks": 16, "trainers": {"*": "backward", 2: "data", 3: "user_sleep"}}
    assert " and 1 other place;" in verdict_of(build_incident(case)).headline


def test_a_common_place_is_named(build_incident: Build) -> None:
    """Where all stand in one function the headline says which; one rank is not many."""
    case = {"ranks": 4, "trainers": {"*": "user_sleep"}}
    headline = verdict_of(build_incident(case)).headline
    assert headline.startswith("Global hang: every rank stands")
    assert headline.endswith("on_step /home/ada/project/callbacks.py:12")
    assert "the only rank" in verdict_of(build_incident({**case, "ranks": 1})).headline


def test_half_a_job_is_not_every_rank(build_incident: Build) -> None:
    """Where a node was never asked, its ranks are to be read first."""
    incident = build_incident({"ranks": 4, "world_size": 8, "trainers": {"*": "backward"}})
    other = Node(name="b", ranks=RankSet(range(4, 8)), status="not_collected", reason="not asked")
    verdict = verdict_of(replace(incident, nodes=(*incident.nodes, other)))
    assert (verdict.verdict, str(verdict.suspects.ranks)) == ("inconclusive", "")
    assert "read these first: ranks 4-7" in verdict.headline
    assert not any("collective" in step for step in verdict.next_steps)


def on_nodes(incident: Incident, node_of: Callable[[int], str]) -> Incident:
    """The incident with each rank on the node that ``node_of`` names."""

    def move(line: Process) -> Process:
        return replace(line, node=node_of(line.rank or 0))

    names = sorted({node_of(rank) for rank in incident.nodes[0].ranks})
    return replace(
        incident,
        nodes=tuple(
            Node(name=name, ranks=RankSet(r for r in incident.nodes[0].ranks if node_of(r) == name))
            for name in names
        ),
        samples=tuple(
            replace(sample, processes=tuple(map(move, sample.processes)))
            for sample in incident.samples
        ),
    )


def test_steps_are_for_the_machine_of_the_process(build_incident: Build) -> None:
    """The pid that is named runs on the node that is named: the blocked worker's, of rank 9."""
    case = {
        "ranks": 16,
        "trainers": {"*": "backward", 1: "data", 9: "data"},
        "workers": {"*": "worker_idle", 9: "worker_blocked"},
    }
    incident = on_nodes(build_incident(case), lambda rank: "a" if rank < 8 else "b")
    steps = " ".join(verdict_of(incident).next_steps)
    assert "on b: `ls -l /proc/5090/fd`" in steps
    assert "on a" not in steps


def test_what_a_suspect_waits_for_is_named(build_incident: Build) -> None:
    """The file that the kernel named stands beside the suspect and in the next steps."""
    case = {
        "trainers": {"*": "backward", 2: {"stack": "data", "state": "S"}},
        "workers": {"*": "worker_idle", 2: {"stack": "worker_blocked", "state": "D"}},
    }
    incident = build_incident(case)
    shard = BlockedOn(fd=7, call="read", path="/data/shard-3.bin")
    samples = tuple(
        replace(
            sample,
            processes=tuple(
                replace(p, blocked_on=shard) if p.pid == 5020 else p for p in sample.processes
            ),
        )
        for sample in incident.samples
    )
    diagnosis = diagnose(replace(incident, samples=samples), load_ruleset())
    assert "waits in read on /data/shard-3.bin" in " ".join(diagnosis.verdict.next_steps)
    assert "waits in read on /data/shard-3.bin" in render_markdown(diagnosis).split("Next")[0]


def test_a_sleeping_process_is_not_to_be_traced(build_incident: Build) -> None:
    """py-spy would wait for a process in D as long as that sleeps."""
    asleep = {"stack": "user_sleep", "state": "D", "wchan": "kernel_clone"}
    verdict = verdict_of(build_incident({"ranks": 4, "trainers": {"*": "backward", 0: asleep}}))
    steps = " ".join(verdict.next_steps)
    assert "/proc/1000/stack" in steps
    assert "py-spy" not in steps


@pytest.mark.parametrize(("tracer", "suspects"), [(77, "3"), (None, "3"), (0, "")])
def test_stopped_by_a_tracer(tracer: int | None, suspects: str, build_incident: Build) -> None:
    """A traced rank stands still; where nobody traces it by now it was only being read."""
    case = {"ranks": 8, "trainers": {"*": "backward", 3: {"stack": "backward", "state": "t"}}}
    incident = build_incident(case)
    samples = tuple(
        replace(s, processes=tuple(replace(p, tracer_pid=tracer) for p in s.processes))
        for s in incident.samples
    )
    assert str(verdict_of(replace(incident, samples=samples)).suspects.ranks) == suspects


def test_a_job_of_which_nothing_is_left_does_not_hang(build_incident: Build) -> None:
    """All ranks seen at first and none at last: the job ended in between."""
    incident = build_incident({"ranks": 4, "trainers": {"*": "backward"}})
    first, last = incident.samples
    ended = replace(incident, samples=(first, replace(last, processes=())))
    verdict = verdict_of(ended)
    assert (verdict.verdict, verdict.category) == ("no_hang", "exited_rank")
    elsewhere = verdict_of(replace(ended, world_size=8))
    assert elsewhere.verdict != "no_hang"
