"""Merging the stacks of a sample."""

from __future__ import annotations

from collections.abc import Iterable

from whyhang.engine.merge import build_tree
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import ProcessKind

MAIN = Frame("main", "/w/train.py", "train.py", 1)
MAIN_THREAD = Thread(name="MainThread", stack=Stack((MAIN,)))
STEP = Frame("step", "/w/train.py", "train.py", 9)
WAIT = Frame("wait", "/lib/libnccl.so", "libnccl.so", 0, "/lib/libnccl.so")
POLL = Frame("poll", "/lib/libc.so.6", "libc.so.6", 0, "/lib/libc.so.6")


def shows(*frames: Frame, thread: str | None = "MainThread") -> Thread:
    """A thread with these frames, outermost first."""
    return Thread(name=thread, stack=Stack(frames[::-1]))


def process(
    rank: int | None, *threads: Thread, kind: ProcessKind = "trainer", pid: int = 1
) -> Process:
    """A process of node ``n0``; without threads it could not be read."""
    return Process(
        pid=pid, node="n0", kind=kind, rank=rank, threads=threads or Missing("permission denied")
    )


def incident(
    *samples: Iterable[Process], nodes: tuple[Node, ...] = (), world: int | None = None
) -> Incident:
    """An incident of these samples."""
    return Incident(
        print_id=None,
        world_size=world,
        nodes=nodes,
        samples=tuple(
            Snapshot(index=number, at=f"at {number}", monotonic_seconds=0.0, processes=tuple(each))
            for number, each in enumerate(samples)
        ),
    )


def test_equal_stacks_are_one_with_all_their_ranks() -> None:
    """Ranks that stand at the same lines share a stack; equality counts, not identity."""
    tree = build_tree(incident([process(rank, shows(MAIN, STEP)) for rank in range(4)]))
    assert tree is not None
    (stack,) = tree.stacks
    assert stack.frames == (MAIN, STEP)
    assert stack.ranks == RankSet(range(4))
    assert stack.count == 4
    assert stack.sources == tuple((f"n0-rank{rank}", rank, 1) for rank in range(4))


def test_kinds_and_thread_names_stay_apart() -> None:
    """The same frames in another kind of process, or in another thread, are another stack."""
    tree = build_tree(
        incident(
            [
                process(0, shows(MAIN), shows(MAIN, thread=None)),
                process(0, shows(MAIN), kind="dataloader", pid=2),
            ]
        )
    )
    assert tree is not None
    assert [(s.kind, s.thread) for s in tree.stacks] == [
        ("trainer", "MainThread"),
        ("trainer", None),
        ("dataloader", "MainThread"),
    ]


def test_native_frames_hang_below_the_innermost_python_frame() -> None:
    """Those between Python frames are left out, so that dump modes share their Python frames."""
    tree = build_tree(
        incident([process(0, shows(MAIN, POLL, STEP, WAIT, POLL)), process(1, shows(MAIN, STEP))])
    )
    assert tree is not None
    assert {stack.frames: stack.ranks for stack in tree.stacks} == {
        (MAIN, STEP): RankSet((1,)),
        (MAIN, STEP, WAIT, POLL): RankSet((0,)),
    }


def test_a_stack_of_native_frames_alone_is_kept() -> None:
    """A thread without a Python frame stands in its native ones."""
    tree = build_tree(incident([process(0, shows(WAIT, POLL))]))
    assert tree is not None
    assert tree.stacks[0].frames == (WAIT, POLL)


def test_an_empty_stack_still_counts() -> None:
    """A thread whose stack came empty stands at an unknown place."""
    tree = build_tree(incident([process(0, shows())]))
    assert tree is not None
    assert [stack.count for stack in tree.stacks] == [1]
    assert tree.stacks[0].frames[0].name == ""


def test_two_workers_of_a_rank_count_twice() -> None:
    """The count is of threads, the set of ranks; a source says how many threads it has there."""
    workers = [process(3, shows(MAIN), kind="dataloader", pid=pid) for pid in (5, 6)]
    tree = build_tree(incident(workers))
    assert tree is not None
    assert tree.stacks[0].count == 2
    assert tree.stacks[0].sources == (("n0-rank3", 3, 2),)


def test_who_was_read_is_known_per_kind() -> None:
    """A process without stacks was not read; a kind without ranks may well have been."""
    tree = build_tree(
        incident(
            [
                process(0, shows(MAIN)),
                process(1),
                process(1, shows(MAIN), kind="dataloader"),
                process(None, shows(MAIN), kind="launcher", pid=9),
            ]
        )
    )
    assert tree is not None
    assert dict(tree.read) == {
        "trainer": RankSet((0,)),
        "dataloader": RankSet((1,)),
        "launcher": RankSet(),
    }
    assert tree.stacks[-1].sources == (("n0-pid9", None, 1),)


def test_unread_are_the_asked_and_the_world_without_a_read_trainer() -> None:
    """A node that was never asked adds no ranks of its own, but its part of the world is unread."""
    nodes = (
        Node(name="n0", ranks=RankSet((0, 1))),
        Node(name="n1", ranks=RankSet((8, 9)), status="missing"),
        Node(name="n2", ranks=RankSet((20,)), status="not_collected"),
    )
    sample = [process(0, shows(MAIN)), process(1)]
    tree = build_tree(incident(sample, nodes=nodes))
    assert tree is not None
    assert tree.unread == RankSet((1, 8, 9))
    tree = build_tree(incident(sample, nodes=nodes, world=4))
    assert tree is not None
    assert tree.unread == RankSet((1, 2, 3, 8, 9))


def test_the_last_sample_that_has_stacks_is_taken() -> None:
    """A job that ended leaves an empty last sample; an explicit choice is kept to."""
    seen = incident([process(0, shows(MAIN))], [process(0, shows(STEP))], [process(0)])
    tree = build_tree(seen)
    assert tree is not None
    assert (tree.sample, tree.taken_at) == (1, "at 1")
    first = build_tree(seen, 0)
    assert first is not None
    assert first.stacks[0].frames == (MAIN,)
    assert build_tree(seen, 2) is None
    assert build_tree(seen, 7) is None
    assert build_tree(incident()) is None


def test_the_order_of_the_processes_does_not_matter() -> None:
    """The same sample read in another order gives the same tree."""
    processes = [process(rank, shows(MAIN, *((STEP,) if rank % 3 else ()))) for rank in range(9)]
    assert build_tree(incident(processes)) == build_tree(incident(processes[::-1]))


class _CountingFrame(Frame):
    """A frame that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        type(self).hashed += 1
        return hash(self.name)


def test_the_cost_follows_the_distinct_stacks() -> None:
    """Ranks that share an interned stack are not compared frame by frame."""
    costs = []
    for ranks in (10, 2000):
        _CountingFrame.hashed = 0
        thread = Thread(name="MainThread", stack=Stack((_CountingFrame("f"), _CountingFrame("g"))))
        build_tree(incident([process(rank, thread) for rank in range(ranks)]))
        costs.append(_CountingFrame.hashed)
    assert costs[0] == costs[1] > 0


def test_ended_ranks_are_not_unread() -> None:
    """A rank that has exited or is a zombie was not missed by us."""
    ok = Node(name="a", ranks=RankSet(range(4)), unread=RankSet([1]))
    processes = (
        Process(pid=1, node="a", kind="trainer", rank=0, threads=(MAIN_THREAD,)),
        Process(pid=2, node="a", kind="trainer", rank=1, threads=Missing("no rights")),
        Process(pid=3, node="a", kind="trainer", rank=2, state="Z", threads=Missing("zombie")),
    )
    sample = Snapshot(index=0, at="", monotonic_seconds=0.0, processes=processes)
    tree = build_tree(Incident(print_id=None, world_size=4, nodes=(ok,), samples=(sample,)))
    assert tree is not None
    assert str(tree.unread) == "1"
