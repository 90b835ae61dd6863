"""Classes: whoever is in one class has the same facts, so that one member may speak for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine import classes
from whyhang.engine.classes import Partition
from whyhang.engine.columns import Column
from whyhang.engine.evaluate import Evaluator
from whyhang.engine.facets import facets_of
from whyhang.engine.facts import Facts
from whyhang.engine.incidents import read_evidence
from whyhang.engine.positions import Positions
from whyhang.engine.reads import Reads
from whyhang.engine.world import ScopeName, World
from whyhang.rules.fields import FIELDS
from whyhang.rules.load import load_ruleset
from whyhang.rules.parse import parse_expr, parse_group
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Thread
from whyhang.schemas.topology import Topology

Build = Callable[[Mapping[str, Any]], Incident]
Write = Callable[[Mapping[str, Any]], Path]
PACK = load_ruleset()
MIXED = {
    "ranks": 12,
    "trainers": {
        "*": "backward",
        1: {"unread": "no rights"},
        2: {"stack": "data", "io": 500, "cpu": 0.5},
        3: {"stack": "user_sleep", "state": "T"},
        "4-5": {"stack": "user_sleep", "then": "backward", "state": "S", "wchan": "futex_wait"},
        6: {"stack": "backward", "state": "D", "wchan": "nfs_wait"},
        7: {"stack": "backward", "gone_after": 1},
        8: {"stack": "user_lock", "mode": "native"},
        9: {"stack": "user_lock_plain", "mode": "nonblocking", "io": 7},
    },
    "workers": {"*": "worker_idle", 2: {"stack": "worker_blocked", "state": "D"}},
    "compile_workers": {"0-5": "compile_worker_idle", 3: {"stack": "worker_idle", "cpu": 0.9}},
    "log": {"per_rank_step": {0: 5, 1: 4}},
    "events": [{"kind": "rank_failed", "ranks": [7], "code": -9}],
}
SUBJECTS: tuple[ScopeName, ...] = ("rank", "node", "process", "child", "thread")
NESTED = [
    ("rank", "any child is asleep"),
    ("rank", "most children are (top in idle)"),
    ("rank", "count(children) >= 2"),
    ("rank", "all children agree on top.function"),
    ("rank", "any thread is (stack has dataloader)"),
    ("rank", "any child is (cpu.rate > 50%)"),
    ("rank", "no child is (top in idle for 10s)"),
    ("rank", "exactly 1 process is waiting"),
    ("process", "no thread is (stack unchanged for 10s)"),
    ("process", "any child is asleep"),
    ("child", "any thread is (top in idle)"),
    ("node", "at least 50% of ranks are waiting"),
    ("node", "share(odd) > 50%"),
    ("node", "any rank is (any child is asleep)"),
    ("node", "most threads are (stack has dataloader)"),
    ("node", "at least 3 ranks agree on top"),
]


def incident(build: Build) -> Incident:
    """A mixed job on three nodes, one of which does not answer."""
    built = build(MIXED)
    nodes = (
        Node(name="node0", ranks=RankSet(range(6)), unread=RankSet([1]), status="partial"),
        Node(name="node1", ranks=RankSet(range(6, 12))),
        Node(name="node2", ranks=RankSet([12, 13]), status="missing", reason="no answer"),
    )
    samples = tuple(
        replace(
            sample,
            processes=tuple(
                replace(process, node="node0" if (process.rank or 0) < 6 else "node1")
                for process in sample.processes
            ),
        )
        for sample in built.samples
    )
    return replace(built, nodes=nodes, samples=samples)


def facts(incident: Incident) -> Facts:
    """The facts under the lists of the built-in pack, in a pipeline of two stages."""
    return Facts(World(incident, Topology(world_size=14, pipeline=2)), Positions(PACK.lists))


@pytest.mark.parametrize("scope", SUBJECTS)
@pytest.mark.parametrize("sample", [0, 1])
def test_a_class_shares_its_facts(scope: ScopeName, sample: int, build_incident: Build) -> None:
    """Every field is the same for all members of a class by the facets that it reads."""
    found = facts(incident(build_incident))
    subjects = found.world.table(scope).subjects
    for name, field in FIELDS.items():
        if scope not in field.scopes:
            continue
        partition = found.classes.of(scope, facets_of(name), sample)
        for number in range(len(partition)):
            members = RankSet.from_bits(partition.bitmap(number))
            values = [found.get(name, subjects[bit], sample) for bit in members]
            assert all(value == values[0] for value in values), name


@pytest.mark.parametrize(("scope", "text"), NESTED)
@pytest.mark.parametrize("many", [0, 256])
@pytest.mark.parametrize("sample", [0, 1])
def test_classes_answer_as_everybody_does(
    scope: ScopeName,
    text: str,
    many: int,
    sample: int,
    build_incident: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clause has the same answers by class as subject by subject, however fine the classes."""
    made = incident(build_incident)
    expr = parse_expr(text)
    with monkeypatch.context() as patch:
        # Nobody shares a class: each subject is asked by itself.
        patch.setattr(Reads, "of", lambda self, part: frozenset({"self"}))
        patch.setattr("whyhang.engine.evaluate.facets_of", lambda name: ("self",))
        each = Evaluator(PACK, facts(made)).truth(expr, scope, sample)
    monkeypatch.setattr(classes, "MANY", many)
    by_class = Evaluator(PACK, facts(made)).truth(expr, scope, sample)
    assert (by_class.members, by_class.yes, by_class.no) == (each.members, each.yes, each.no)
    assert each.yes | each.no | each.unknown == each.members


def test_equal_counters_are_one_class(build_incident: Build) -> None:
    """A clause about stacks is asked once for a thousand ranks whose counters all differ."""
    trainers: dict[object, object] = {
        "*": "backward",
        **{n: {"stack": "backward", "io": n} for n in range(50)},
    }
    found = facts(build_incident({"ranks": 50, "trainers": trainers}))
    assert len(found.classes.of("rank", ("counters",), 1)) == 50
    assert len(found.classes.of("rank", ("state",), 1)) == 1


@pytest.mark.parametrize("many", [0, 1, 256])
def test_partitions_refine(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two partitions together part whoever is apart in one of them, as bitmaps or as lists."""
    monkeypatch.setattr(classes, "MANY", many)
    halves = Partition.by_key((bit, bit >= 4) for bit in range(8))
    parity = Partition.by_key((bit, bit % 2) for bit in range(8))
    both = halves & parity
    found = sorted(tuple(RankSet.from_bits(both.bitmap(n))) for n in range(len(both)))
    assert found == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert both.union(range(4)) == 0xFF
    united = both.unite([[0, 1], [2, 3]])
    assert united.bitmap(0) == both.union([0, 1])
    assert united.index() == {
        bit: n for n in range(2) for bit in RankSet.from_bits(united.bitmap(n))
    }


def test_columns_keep_each_value_once() -> None:
    """Values of several classes are one entry, with all who have it."""
    column = Column(Partition.by_key((bit, bit) for bit in range(6)), lambda bit: bit % 2 == 0)
    assert [(value, bits) for value, bits in column.items()] == [
        (True, 0b010101),
        (False, 0b101010),
    ]
    assert column.known == 0b111111
    assert column.ask(bool, 0b000111).yes == 0b000101


def test_threads_are_followed_through_samples(build_incident: Build) -> None:
    """A thread whose stack changed between two samples is not taken for unchanged."""
    case = {"trainers": {"*": "backward", 2: {"stack": "user_sleep", "then": "backward"}}}
    evaluator = Evaluator(PACK, facts(build_incident(case)))
    answers = evaluator.truth(parse_expr("stack unchanged for 10s"), "thread")
    assert (answers.yes.bit_count(), answers.no.bit_count()) == (3, 1)


def test_ignored_threads_do_not_count(build_incident: Build) -> None:
    """Threads can be ignored by themselves, and go with an ignored process."""
    case = {"trainers": {"*": "backward"}, "compile_workers": {"*": "compile_worker_idle"}}
    made = build_incident(case)
    process = made.samples[-1].processes[0]
    assert isinstance(process.threads, tuple)
    extra = Thread(name="pin", stack=process.threads[0].stack, tid=99)
    changed = replace(process, threads=(*process.threads, extra))
    last = replace(made.samples[-1], processes=(changed, *made.samples[-1].processes[1:]))
    made = replace(made, samples=(*made.samples[:-1], last))
    assert Evaluator(PACK, facts(made)).members("thread").bit_count() == 5
    without = replace(
        PACK, ignore=(*PACK.ignore, parse_group('threads that are (thread.name == "pin")'))
    )
    assert Evaluator(without, facts(made)).members("thread").bit_count() == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("at least 11 ranks agree on top.function", "false"),
        ("at least 10 ranks agree on top.function", "unknown"),
        ("at least 6 ranks agree on top.function", "true"),
        ("any rank agree on top.function", "true"),
        ("no rank agree on node.name", "false"),
        ("at most 5 ranks agree on node.name", "false"),
        ("at most 6 ranks agree on node.name", "true"),
        ("exactly 6 ranks agree on node.name", "true"),
        ("exactly 5 ranks agree on node.name", "false"),
        ("all (ranks that are (status == \"stopped\")) agree on top.function", "unknown"),
    ],
)  # fmt: skip
def test_agreement(text: str, value: str, build_incident: Build) -> None:
    """Quantifiers of agreement speak of the largest class that shares a value."""
    evaluator = Evaluator(PACK, facts(incident(build_incident)))
    assert evaluator.truth(parse_expr(text)).one().value == value


def test_cost_follows_diversity(write_incident: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight times as many ranks in the same classes ask for no fact more often."""
    asked = 0
    get = Facts.get

    def count(self: Facts, *arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return get(self, *arguments)

    monkeypatch.setattr(Facts, "get", count)
    costs = []
    for ranks in (16, 128):
        case = {
            "ranks": ranks,
            "trainers": {"*": "backward", 2: "data"},
            "workers": {"*": "worker_idle", 2: "worker_blocked"},
        }
        # Stacks are shared by the reader.
        evaluator = Evaluator(PACK, facts(read_evidence(write_incident(case))))
        asked = 0
        for rule in PACK.rules:
            evaluator.truth(rule.when)
        costs.append(asked)
    assert costs[0] == costs[1] > 0
