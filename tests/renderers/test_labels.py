"""Frame labels and rank sets."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.renderers.label import Label, split_label
from whyhang.renderers.labels import (
    BOUNDED_RUNS,
    RankLabels,
    code_path,
    fitting_runs,
    plain_name,
    ranksets_json,
)
from whyhang.renderers.prefix import Node, paths
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stacktree import MergedStack, StackTree
from whyhang.schemas.words import ProcessKind

TEXT = st.text(max_size=60)
RANKS = st.frozensets(st.integers(0, 90), max_size=30).map(RankSet)


def labels(read: RankSet, max_runs: int | None = None) -> RankLabels:
    """A writer for trainers of whom ``read`` were read."""
    return RankLabels([("trainer", read)], max_runs=max_runs)


def test_a_label_has_the_documented_form() -> None:
    """Thread, function, path with line, ranks in there and ranks not in there."""
    frame = Frame("read_shard", "/workspace/data.py", "data.py", 88)
    node = Node(kind="trainer", thread="MainThread", frame=frame, ranks=RankSet.parse("0-5/7"))
    written = labels(RankSet(range(9))).label(node)
    assert written == "MainThread@read_shard@data.py:88@0-5/7|6/8"


def test_not_in_there_counts_only_ranks_that_were_read() -> None:
    """A rank whose process of that kind was not read is neither in there nor not."""
    writer = RankLabels([("trainer", RankSet(range(8))), ("dataloader", RankSet((0, 1)))])
    assert writer.of("dataloader", RankSet((1,))) == "1|0"
    assert writer.of("checkpoint", RankSet()) == "|"


@given(TEXT, TEXT, TEXT, st.integers(0, 10**6), RANKS, RANKS)
def test_a_label_splits_into_what_it_was_made_of(
    thread: str, function: str, path: str, line: int, ranks: RankSet, others: RankSet
) -> None:
    """Whatever stands in names and paths, both ends of a label stay readable."""
    frame = Frame(function, path, None, line)
    node = Node(kind="trainer", thread=thread, frame=frame, ranks=ranks)
    label = labels(ranks | others).label(node)
    parts = split_label(label)
    assert parts == Label(
        thread=plain_name(thread),
        function=plain_name(function),
        path=code_path(frame),
        ranks_in=ranks.format(),
        ranks_not_in=(others - ranks).format(),
    )
    assert str(parts) == label
    assert ";" not in label and len(label.splitlines()) == 1
    assert RankSet.parse(parts.ranks_in) == ranks
    label.encode()


def test_an_at_sign_inside_a_path_stays() -> None:
    """Paths such as ``/gpfs/@scratch/x.py`` are not changed."""
    parts = split_label("MainThread@run@/gpfs/@scratch/a@b.py:3@0|1-2")
    assert parts.path == "/gpfs/@scratch/a@b.py:3"
    assert (parts.thread, parts.function, parts.ranks_not_in) == ("MainThread", "run", "1-2")


@pytest.mark.parametrize("text", ["", "trainer", "a@b@c", "a@b@c@d", "a@b@c@0-3", "a@b@c:1@x|"])
def test_what_is_no_label_is_refused(text: str) -> None:
    """A label without all of its fields raises ValueError."""
    with pytest.raises(ValueError, match="not a frame label"):
        split_label(text)


def test_missing_names_read_unknown() -> None:
    """A thread or function without a name is called unknown, and so is a missing file."""
    assert plain_name(None) == plain_name("") == plain_name("\n") == "unknown"
    assert code_path(Frame("f")) == "unknown"


def test_the_place_of_a_native_frame_is_its_library() -> None:
    """Without debug information the library's name, with it the source line."""
    assert code_path(Frame("read", "/lib/x/libc.so.6", None, 0, "/lib/x/libc.so.6")) == "libc.so.6"
    assert code_path(Frame("poll", "selectmodule.c", "selectmodule.c", 9, "libpython")) == (
        "selectmodule.c:9"
    )


def scattered(stacks: int, world: int) -> StackTree:
    """Stacks whose rank sets are every other rank, shifted."""
    kind: ProcessKind = "trainer"
    merged = []
    for number in range(stacks):
        ranks = RankSet(range(number % 2, world, 2 + number % 7))
        frames = (Frame("main", "a.py", "a.py", 1), Frame(f"f{number}", "a.py", "a.py", number))
        merged.append(
            MergedStack(kind=kind, thread="MainThread", frames=frames, count=1, ranks=ranks)
        )
    return StackTree(
        sample=0,
        taken_at=None,
        world_size=world,
        read=((kind, RankSet(range(world))),),
        unread=RankSet(),
        stacks=tuple(merged),
    )


def test_sets_are_exact_until_the_file_gets_large() -> None:
    """Below the budget no set is cut; above it both sides show a few runs and how many more."""
    tree = scattered(40, 400)
    nodes = [node for path in paths(tree.stacks) for node in path.frames]
    assert fitting_runs(tree, nodes) is None
    assert fitting_runs(tree, nodes, budget_bytes=10_000) == BOUNDED_RUNS
    text = labels(RankSet(range(400)), BOUNDED_RUNS).of("trainer", RankSet(range(0, 400, 2)))
    left, _, right = text.partition("|")
    assert left == "0/2/4/6/8/10/12/14/+192"
    assert right == "1/3/5/7/9/11/13/15/+192"


def test_ranksets_hold_every_distinct_set_once(local: Diagnosis) -> None:
    """Each set that a label may show stands there in full, with what was read of its kind."""
    assert local.tree is not None
    document = json.loads(ranksets_json(local.tree))
    assert document["format"] == "whyhang.ranksets/1"
    assert document["read"] == {"trainer": "0-7", "dataloader": "0-7", "launcher": ""}
    sets = [(each["kind"], each["ranks"], each["not_in"]) for each in document["sets"]]
    assert ("trainer", "3", "0-2/4-7") in sets
    assert len(sets) == len(set(sets))
    for path in paths(local.tree.stacks):
        for node in path.nodes:
            assert node.ranks.format() in {ranks for kind, ranks, _ in sets if kind == node.kind}
