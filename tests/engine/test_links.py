"""Which nodes no longer hear each other, from what each of them sent again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.collectors.test_tcp_facts import CLIENT, RIGHT, SERVER, link, run_in
from whyhang.collectors.tcp_facts import TcpReading, read_tcp
from whyhang.engine.judge import judge
from whyhang.engine.links import NOT_TOLD, UNKNOWN_PEER, Link, Links
from whyhang.rules.load import load_ruleset
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts, TcpFacts
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import NodeStatus

__all__ = ["link", "run_in"]

WAITING = Stack(
    (
        Frame(
            "all_reduce",
            "/opt/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py",
            "torch/distributed/distributed_c10d.py",
            3252,
        ),
        Frame("train", "/home/ada/train.py", "train.py", 40),
    )
)


def told(address: str, *sent: tuple[str, int], pid: int = 10) -> NodeFacts:
    """What a node tells that has one address and sent segments to peers again."""
    tcp = tuple(TcpFacts(pid=pid, peer=f"{to}:30000", retransmits=n) for to, n in sent)
    return NodeFacts(tcp=tcp, addresses=(address,))


def job(
    facts: Mapping[str, NodeFacts | Missing], status: Mapping[str, NodeStatus] | None = None
) -> Incident:
    """A job of one waiting rank a node, whose two samples tell the same."""
    names = sorted({*facts, *(status or {})})
    return Incident(
        print_id=None,
        world_size=len(names),
        nodes=tuple(
            Node(name=name, ranks=RankSet([rank]), status=(status or {}).get(name, "ok"))
            for rank, name in enumerate(names)
        ),
        samples=tuple(
            Snapshot(
                index=sample,
                at="",
                monotonic_seconds=15.0 * sample,
                processes=tuple(
                    Process(
                        pid=10,
                        node=name,
                        kind="trainer",
                        rank=rank,
                        state="S",
                        threads=(Thread(name="MainThread", stack=WAITING, tid=10),),
                    )
                    for rank, name in enumerate(names)
                    if name in facts
                ),
                facts=facts,
            )
            for sample in range(2)
        ),
        progress=Progress(state="stalled", stalled_seconds=900.0),
    )


def test_both_directions_are_one_link() -> None:
    """Two nodes are one pair, whoever of them sends; what is rare on a busy network is none."""
    links = Links(
        job(
            {
                "a": told("10.0.0.1", ("10.0.0.2", 4), ("10.0.0.3", 2)),
                "b": told("10.0.0.2", ("10.0.0.1", 5)),
                "c": told("10.0.0.3"),
            }
        )
    )
    assert links.failing(1) == (Link(ends=("a", "b"), retransmits=9),)
    assert (links.retransmits("a", 1), links.retransmits("c", 1)) == (4, 0)
    assert [links.cut_off(name, 1) for name in "abc"] == [False, False, False]


def test_the_node_of_all_failing_links_is_the_odd_one() -> None:
    """Two links with an end in common name that end; a third one elsewhere takes it back."""
    facts = {
        "a": told("10.0.0.1", ("10.0.0.3", 9)),
        "b": told("10.0.0.2", ("10.0.0.3", 9)),
        "c": told("10.0.0.3"),
        "d": told("10.0.0.4"),
    }
    links = Links(job(facts))
    assert [links.cut_off(name, 1) for name in "abcd"] == [False, False, True, False]
    ring = Links(job({**facts, "a": told("10.0.0.1", ("10.0.0.3", 9), ("10.0.0.4", 9))}))
    assert [ring.cut_off(name, 1) for name in "abcd"] == [False] * 4


def test_what_one_process_sent_is_its_own() -> None:
    """A rank answers for its processes only, with the most that it sent to one node."""
    facts = {"a": told("10.0.0.1", ("10.0.0.2", 4), pid=10), "b": told("10.0.0.2")}
    links = Links(job(facts))
    assert (links.retransmits("a", 0, [10]), links.retransmits("a", 0, [11])) == (4, 0)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, NOT_TOLD),
        ({"a": NodeFacts(unread={"tcp": "no rights"})}, Missing("no rights")),
        ({"a": Missing("torn")}, Missing("torn")),
        ({"a": told("10.0.0.1", ("10.9.9.9", 9))}, UNKNOWN_PEER),
        ({"a": told("10.0.0.1"), "b": told("10.0.0.2")}, 0),
    ],
)
def test_what_nobody_told_is_unknown(
    facts: Mapping[str, NodeFacts | Missing], expected: int | Missing
) -> None:
    """No answer and a peer that nobody knows are not the same as nothing sent again."""
    assert Links(job(facts)).retransmits("a", 1) == expected


def test_an_address_of_two_nodes_names_neither() -> None:
    """Bridges of containers have the same address on every host."""
    facts = {
        "a": replace(told("10.0.0.1", ("172.17.0.1", 9)), addresses=("10.0.0.1", "172.17.0.1")),
        "b": replace(told("10.0.0.2"), addresses=("10.0.0.2", "172.17.0.1")),
    }
    assert Links(job(facts)).failing(1) == ()


def test_the_only_silent_node_owns_the_address_that_nobody_else_has() -> None:
    """With two silent ones nobody knows whose it is; a node that was never asked is not silent."""
    facts = {
        "a": told("10.0.0.1", ("10.0.0.9", 9)),
        "b": told("10.0.0.2", ("10.0.0.9", 9)),
    }
    assert Links(job(facts, {"c": "missing"})).cut_off("c", 1) is True
    assert Links(job(facts, {"c": "missing", "d": "missing"})).cut_off("c", 1) is False
    assert Links(job(facts, {"c": "not_collected"})).cut_off("c", 1) is False


def test_an_address_is_remembered() -> None:
    """A node that fell silent is known by what it told before."""
    facts = {"a": told("10.0.0.1", ("10.0.0.2", 9)), "b": told("10.0.0.2")}
    made = job(facts)
    last = replace(made.samples[1], facts={"a": facts["a"]})
    links = Links(replace(made, samples=(made.samples[0], last)))
    assert [found.ends for found in links.failing(1)] == [("a", "b")]


@pytest.mark.integration
def test_a_real_cut_between_two_nodes_names_the_link(
    link: tuple[str, str],
    run_in: Callable[[str, str, str], subprocess.Popen[str]],
) -> None:
    """What the kernel counts at both ends of a dead cable leads to the pair, not to one of them."""
    left, right = link
    server, client = run_in(right, SERVER, RIGHT), run_in(left, CLIENT, RIGHT)
    subprocess.run(["ip", "-n", right, "link", "set", "cable", "down"], check=True)
    assert client.stdin is not None
    client.stdin.write("go\n")
    client.stdin.flush()
    deadline = time.monotonic() + 60
    facts: dict[str, NodeFacts] = {}
    while time.monotonic() < deadline:
        time.sleep(0.5)
        for name, pid in (("gpu31", client.pid), ("gpu32", server.pid)):
            found = read_tcp([pid])
            assert isinstance(found, TcpReading)
            facts[name] = NodeFacts(node=name, tcp=found.tcp, addresses=found.addresses)
        if any((entry.retransmits or 0) >= 3 for entry in facts["gpu31"].tcp or ()):
            break
    verdict = judge(load_ruleset(), job(facts))
    assert (verdict.rule, verdict.verdict) == ("pytorch/network-link", "global_hang")
    assert "between gpu31 and gpu32" in verdict.headline
    assert not verdict.suspects.ranks
