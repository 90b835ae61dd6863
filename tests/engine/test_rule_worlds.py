"""The worlds of rule tests: what a test states becomes an incident as a collection makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.engine.facts import Facts
from whyhang.engine.positions import Positions, is_user_code
from whyhang.engine.rule_frames import build_stack, native_frame, python_frame
from whyhang.engine.rule_worlds import build_incident
from whyhang.engine.world import Subject, World
from whyhang.rules.load import load_ruleset
from whyhang.rules.sources import Source
from whyhang.rules.test_file import parse_test_file
from whyhang.schemas.config import DetectConfig
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing


def incident_of(body: str, at: float | None = None) -> Incident:
    """The incident of a test with this body."""
    text = f"rules: a\ntests:\n  - name: one\n{body}    expect: [{{verdict: no_hang}}]\n"
    test = parse_test_file(Source(name="t.yaml", text=text)).tests[0]
    return build_incident(test.world, at=at, detect=DetectConfig())


class Reader:
    """Reads facts of ranks as rules do."""

    def __init__(self, body: str, at: float | None = None) -> None:
        self.incident = incident_of(body, at)
        self.facts = Facts(World(self.incident), Positions(load_ruleset().lists))

    def __call__(self, field: str, rank: int | None = None) -> object:
        """The value at the last sample; None where it is unknown."""
        world = self.facts.world
        subject = Subject() if rank is None else world.ranks.subjects[rank]
        found = self.facts.get(field, subject, world.sample_count - 1)
        return None if isinstance(found, Missing) else found

    def why(self, field: str, rank: int) -> str:
        """Why a value is unknown."""
        world = self.facts.world
        found = self.facts.get(field, world.ranks.subjects[rank], world.sample_count - 1)
        assert isinstance(found, Missing)
        return found.reason


def test_a_checkpoint_is_known_where_it_is_told() -> None:
    """Its age and its step, each unknown by default."""
    told = Reader("    checkpoint: {age: 3h, step: 1200}\n")
    assert (told("checkpoint.age"), told("checkpoint.step")) == (10_800.0, 1200)
    assert Reader("    checkpoint: {age: 3h}\n")("checkpoint.step") is None
    assert Reader("    log: stalled\n")("checkpoint.age") is None


@pytest.mark.parametrize(
    ("text", "id_", "line", "user"),
    [
        ("train.main", "train.main", 1, True),
        ("train.main:40", "train.main", 40, True),
        ("train.<module>", "train.<module>", 1, True),
        ("data.py:58 Shards.read_shard", "data.read_shard", 58, True),
        ("torch.cuda.synchronize", "torch.cuda.synchronize", 1, False),
        ("torch/_tensor.py:623 Tensor.backward", "torch._tensor.backward", 623, False),
        ("threading.wait", "threading.wait", 1, False),
        ("multiprocessing/queues.py:113 Queue.get", "multiprocessing.queues.get", 113, False),
        ("site-packages/safetensors/torch.py save_file", "safetensors.torch.save_file", 1, False),
        ("/srv/app/x.py:3 f", "x.f", 3, True),
    ],
)
def test_frames(text: str, id_: str, line: int, user: bool) -> None:
    """Frames get the names that patterns match, and are of the training code or of a library."""
    frame = python_frame(text)
    assert (frame.id, frame.line, is_user_code(frame)) == (id_, line, user)


def test_stacks_are_innermost_first() -> None:
    """Written from outside inwards, as people tell it; kept as py-spy reports it."""
    stack = build_stack(["m.main", "m.f"], ["libc.so.6 poll", "nanosleep"])
    assert [frame.function for frame in stack.frames] == ["nanosleep", "poll", "f", "main"]
    assert native_frame("libc.so.6 poll").module == "libc.so.6"
    assert build_stack(["m.f"], [], 1).python != build_stack(["m.f"], []).python


def test_what_is_not_said_is_unknown() -> None:
    """No fact is invented: neither counters nor a state, nor native frames."""
    read = Reader("    world: 2\n    ranks: {0: m.f}\n")
    for field in ("io.read_rate", "cpu.rate", "proc.state", "proc.wchan", "native", "exit_code"):
        assert read(field, 0) is None, field
    assert read("status", 0) == "running"
    assert read("status", 1) is None
    assert read.why("stack", 1) == "it was not seen in this sample"
    assert str(read.incident.nodes[0].unread) == "1"


def test_facts_come_back_as_stated() -> None:
    """Each stated fact is what rules read."""
    read = Reader(
        "    world: 2\n"
        "    ranks:\n"
        "      0:\n"
        "        stack: m.f\n"
        "        native: []\n"
        "        state: D\n"
        "        wchan: nfs_wait\n"
        "        kernel: [vfs_read, nfs_wait]\n"
        "        d_threads: 2\n"
        "        threads: 5\n"
        "        traced: true\n"
        "        exit_code: -9\n"
        "        io: {read_rate: 300, write_rate: 40}\n"
        "        disk: 7\n"
        "        cpu: 150%\n"
        "        run_queue: 10%\n"
        "        cpus: 2\n"
        "        step_lag: 3\n"
        "      1: {stack: m.f, step_lag: 0}\n"
    )
    wanted: dict[str, object] = {
        "native": (),
        "proc.state": "D",
        "proc.wchan": "nfs_wait",
        "proc.d_threads": 2,
        "proc.threads": 5,
        "proc.traced": True,
        "exit_code": -9,
        "io.read_rate": 300.0,
        "io.write_rate": 40.0,
        "disk.read_rate": 7.0,
        "disk.write_rate": 7.0,
        "cpu.rate": pytest.approx(1.5),
        "proc.run_queue": pytest.approx(0.1),
        "proc.cpus": 2,
        "step_lag": 3,
    }
    assert {field: read(field, 0) for field in wanted} == wanted
    kernel = read("proc.kernel", 0)
    assert isinstance(kernel, tuple)
    assert [frame.name for frame in kernel] == ["vfs_read", "nfs_wait"]


@pytest.mark.parametrize("status", ["running", "stopped", "zombie", "exited", "missing"])
def test_statuses(status: str) -> None:
    """A stated status is the status that rules read."""
    read = Reader(f'    world: 2\n    ranks: {{"*": m.f, 1: {{status: {status}}}}}\n')
    if status == "missing":
        # A silent node is silent of all its ranks.
        read = Reader("    world: {nodes: 2, ranks_per_node: 1}\n    ranks: {0: m.f, 1: missing}\n")
    assert read("status", 1) == status
    assert read("status", 0) == "running"


def test_a_rank_that_exits_beside_an_unread_one() -> None:
    """On a node that was read in part, an exited process still has its line."""
    read = Reader("    world: 3\n    ranks: {0: m.f, 1: exited, 2: unreadable}\n")
    assert read("status", 1) == "exited"
    assert read("unreadable", 2) is True


def test_unchanged_for() -> None:
    """A stack changed exactly as long ago as the test says."""
    body = "    samples: 4\n    interval: 10s\n"
    body += "    ranks: {0: {stack: m.f, unchanged_for: 20s}, 1: m.f}\n"
    incident = incident_of(body)
    stacks = []
    for sample in incident.samples:
        threads = sample.processes[0].threads
        assert isinstance(threads, tuple)
        stacks.append(threads[0].stack.python)
    assert stacks[0] != stacks[1] == stacks[2] == stacks[3]


def test_then() -> None:
    """The later stack is that of every sample but the first."""
    read = Reader("    world: 1\n    samples: 3\n    ranks: {0: {stack: m.f, then: m.g}}\n")
    assert read("top.function", 0) == "g"
    first = read.incident.samples[0].processes[0].threads
    assert isinstance(first, tuple)
    assert first[0].stack.frames[0].function == "f"


def test_a_timeline_is_judged_as_it_stood() -> None:
    """At a time, later samples are not there yet, and the stall is as long as it was."""
    body = "    world: 1\n    timeline: {log.stalled_for: 0s+60sx9}\n    ranks: {0: m.f}\n"
    early, late = Reader(body, at=90.0), Reader(body)
    assert (early.facts.world.sample_count, late.facts.world.sample_count) == (2, 10)
    assert (early("log.stalled_for"), late("log.stalled_for")) == (60.0, 540.0)
    assert (early("log.stalled"), late("log.stalled")) == (False, True)


def test_detection_says_when_a_stall_is_one() -> None:
    """Where a test gives a time alone, the thresholds of `detect` decide."""
    text = (
        "rules: a\ntests:\n  - name: one\n    timeline: {log.stalled_for: 5m}\n"
        "    expect: [{verdict: no_hang}]\n"
    )
    world = parse_test_file(Source(name="t.yaml", text=text)).tests[0].world
    states = [
        build_incident(world, detect=detect).progress.state
        for detect in (DetectConfig(), DetectConfig(stall=600.0), DetectConfig(floor=301.0))
    ]
    assert states == ["stalled", "advancing", "advancing"]


def test_changes() -> None:
    """From its time on, a change overrides what was said before; counters go on from there."""
    body = (
        "    world: 1\n    samples: 4\n    interval: 10s\n    ranks: {0: {stack: m.f, io: 100}}\n"
        "    changes: [{at: 20s, ranks: {0: {state: D, io: 0}}}]\n"
    )
    assert Reader(body, at=10.0)("io.read_rate", 0) == 100.0
    assert Reader(body, at=10.0)("proc.state", 0) is None
    assert Reader(body)("io.read_rate", 0) == 0.0
    assert Reader(body)("proc.state", 0) == "D"


def test_children_nodes_events_and_sources() -> None:
    """The rest of a world arrives too."""
    incident = incident_of(
        "    world: {nodes: 3, ranks_per_node: 2, size: 8}\n"
        "    nodes: {1: {status: missing, reason: no answer}, node2: not_collected}\n"
        "    ranks: {'*': {stack: m.f, children: [{kind: dataloader, stack: m.g, state: D}]}}\n"
        "    events: [{kind: rank_failed, ranks: 0-1, exit_code: 3, line: boom}]\n"
        "    sources: {nccl_ras: too old, stacks: ok}\n"
        "    trigger: manual\n"
    )
    assert [(n.status, n.reason) for n in incident.nodes] == [
        ("ok", None),
        ("missing", "no answer"),
        ("not_collected", None),
    ]
    lines = incident.samples[0].processes
    assert [(p.rank, p.kind, p.state) for p in lines[:2]] == [
        (0, "trainer", None),
        (0, "dataloader", "D"),
    ]
    assert len(lines) == 4
    assert len({process.key for process in lines}) == 4
    assert incident.world_size == 8
    assert (str(incident.events[0].ranks), incident.events[0].exit_code) == ("0-1", 3)
    assert incident.sources["nccl_ras"].reason == "too old"
    assert incident.sources["stacks"].ok
    assert incident.trigger == "manual"


def test_other_threads() -> None:
    """A thread that the rules name as the one that trains is found."""
    read = Reader(
        "    world: 1\n    ranks: {0: {stack: m.wait,"
        " python_threads: [{name: TrainingThread-1, stack: m.train}]}}\n"
    )
    assert read("top.function", 0) == "train"


def test_recorded_incidents(tmp_path: Path) -> None:
    """A path stands for the evidence that lies there."""
    (tmp_path / "rank3.json").write_text(
        '[{"pid": 1, "thread_id": 1, "thread_name": "MainThread", "active": true,'
        ' "frames": [{"name": "f", "filename": "a.py", "line": 1}]}]'
    )
    assert build_incident(tmp_path).samples[0].processes[0].rank == 3
