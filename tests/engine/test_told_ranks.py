"""Trainers without a rank of their own: named by RAS or the log, else shown by node and pid."""

from __future__ import annotations

from dataclasses import replace

from whyhang.engine.diagnose import diagnose
from whyhang.engine.told_ranks import with_told_ranks
from whyhang.renderers.markdown import render_markdown
from whyhang.renderers.terminal import render_terminal
from whyhang.rules.load import load_ruleset
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.ras import Communicator, JsonReply, RasMember
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import ProcessKind


def process(pid: int, kind: ProcessKind = "trainer", ppid: int = 1, **facts: int) -> Process:
    """A process that stands in user code."""
    stack = Stack((Frame("load", "/w/train.py", "train.py", 7),))
    threads = (Thread(name="MainThread", stack=stack),)
    return Process(pid=pid, node="a", kind=kind, ppid=ppid, threads=threads, **facts)  # type: ignore[arg-type]


def incident(*processes: Process) -> Incident:
    """Two samples of these processes."""
    samples = tuple(
        Snapshot(index=n, at="", monotonic_seconds=10.0 * n, processes=processes) for n in (0, 1)
    )
    return Incident(print_id=None, world_size=2, nodes=(Node(name="a"),), samples=samples)


PAIR = incident(process(10), process(11), process(12, "dataloader", ppid=11))


def ranks(told: Incident) -> dict[int, int | None]:
    """The rank of each process by pid, in the last sample."""
    assert told.last is not None
    return {p.pid: p.rank for p in told.last.processes}


def test_the_log_tells_by_pid() -> None:
    """Ray's prefix and torch's on one line, and Ray Train's list of workers; children follow."""
    lines = (
        "(RayTrainWorker pid=10) [rank1]:[E] Watchdog caught collective operation timeout",
        "(TorchTrainer pid=7) - (node_id=ab, ip=10.0.0.1, pid=11) world_rank=0, local_rank=0",
    )
    told = with_told_ranks(replace(PAIR, log_excerpt=lines))
    assert ranks(told) == {10: 1, 11: 0, 12: 0}
    assert str(told.nodes[0].ranks) == "0-1"


def test_ras_tells_by_pid() -> None:
    """In a communicator as large as the job a rank is the job's; in a smaller one it is not."""
    members = tuple(RasMember(rank=n, host="h", pid=11 - n) for n in (0, 1))
    whole = JsonReply(
        complete=True, communicators=(Communicator(hash="0", size=2, members=members),)
    )
    assert ranks(with_told_ranks(replace(PAIR, ras=(whole,)))) == {10: 1, 11: 0, 12: 0}
    assert with_told_ranks(replace(PAIR, ras=(whole,), world_size=4)).last == PAIR.last


def test_what_is_disputed_is_not_believed() -> None:
    """Two ranks of one pid, two pids of one rank, and a rank that another trainer has."""
    twice = ("(W pid=10) [rank1]: x", "(W pid=10) [rank0]: x", "(W pid=11) [rank0]: x")
    assert ranks(with_told_ranks(replace(PAIR, log_excerpt=twice)))[10] is None
    both = ("(W pid=10) [rank1]: x", "(W pid=11) [rank1]: x")
    assert ranks(with_told_ranks(replace(PAIR, log_excerpt=both))) == {10: None, 11: None, 12: None}
    known = replace(PAIR, nodes=(Node(name="b", ranks=RankSet([0, 1])),))
    assert ranks(with_told_ranks(replace(known, log_excerpt=twice[2:])))[11] is None


def test_trainers_without_a_rank_are_shown_and_counted() -> None:
    """Headline, table and what was not seen name them by node and pid; none is accused."""
    diagnosis = diagnose(PAIR, load_ruleset())
    assert diagnosis.verdict.headline.endswith("no rank is known of 2 trainers")
    assert not diagnosis.verdict.suspects.ranks
    page = render_markdown(diagnosis)
    assert "| a:10, a:11 | 2 | trainer | `load /w/train.py:7` |" in page
    assert "2 trainers have no known rank: a:10, a:11" in page
    assert "a:10, a:11" in "".join(render_terminal(diagnosis))
