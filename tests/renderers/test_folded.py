"""Folded stacks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.renderers.label import split_label
from whyhang.renderers.folded import render_folded
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stacktree import MergedStack, StackTree
from whyhang.schemas.words import PROCESS_KINDS

FRAMES = st.builds(
    Frame, st.sampled_from(["a", "b", "c;d", ""]), st.sampled_from(["x.py", "@.py"]), st.none(),
    st.integers(0, 2)
)  # fmt: skip
STACKS = st.builds(
    MergedStack,
    kind=st.sampled_from(PROCESS_KINDS),
    thread=st.sampled_from(["MainThread", None, "x@y;z"]),
    frames=st.lists(FRAMES, min_size=1, max_size=5).map(tuple),
    count=st.integers(1, 5),
    ranks=st.frozensets(st.integers(0, 20), min_size=1, max_size=6).map(RankSet),
)


def tree_of(stacks: list[MergedStack]) -> StackTree:
    """A tree in which exactly the ranks of the stacks were read."""
    read = {kind: RankSet() for kind in PROCESS_KINDS}
    for stack in stacks:
        read[stack.kind] = read[stack.kind] | stack.ranks
    return StackTree(
        sample=0,
        taken_at=None,
        world_size=None,
        read=tuple(read.items()),
        unread=RankSet(),
        stacks=tuple(stacks),
    )


@given(st.lists(STACKS, max_size=12))
def test_counts_sum_to_the_threads_and_every_rank_appears(stacks: list[MergedStack]) -> None:
    """Folding loses neither a thread nor a rank, and an outer frame holds all its inner ranks."""
    header, *lines = render_folded(tree_of(stacks))
    assert header.startswith("# ")
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(s.count for s in stacks)
    seen: dict[str, RankSet] = {}
    for line in lines:
        kind, *frames = line.rpartition(" ")[0].split(";")
        sets = [RankSet.parse(split_label(frame).ranks_in) for frame in frames]
        for outer, inner in pairwise(sets):
            assert not inner - outer
        seen[kind] = seen.get(kind, RankSet()) | sets[-1]
    for stack in stacks:
        assert not stack.ranks - seen[stack.kind]


def test_golden(diagnosis: Diagnosis, folded_file: object) -> None:
    """The folded stacks of the hand-built diagnoses."""
    assert diagnosis.tree is not None
    assert "\n".join(render_folded(diagnosis.tree)) + "\n" == folded_file


def test_the_header_says_which_sample_and_who_was_not_read(disk: Diagnosis) -> None:
    """Unread ranks are stated once, never as "not in there"."""
    assert disk.tree is not None
    header, *lines = render_folded(disk.tree)
    assert "sample 1" in header and "ranks not read: 56-63" in header
    assert not any("56" in line for line in lines)


def test_filters_give_a_graph_of_their_own(local: Diagnosis) -> None:
    """By kind, by rank and by thread, with counts and sets cut to what is left."""
    assert local.tree is not None
    _, *lines = render_folded(local.tree, kind="dataloader")
    assert lines and all(line.startswith("dataloader;") for line in lines)
    _, *lines = render_folded(
        local.tree, kind="trainer", ranks=RankSet((2, 3)), thread="MainThread"
    )
    assert [line.rpartition(" ")[2] for line in lines] == ["1", "1"]
    assert all("MainThread@<module>@train.py:345@2-3|;" in line for line in lines)
    assert list(render_folded(local.tree, thread="nobody"))[1:] == []


def test_bounded_labels_say_so_and_full_ones_override() -> None:
    """Past the size budget long sets end in /+N and the header names the file that has them."""
    frames = tuple(Frame(f"f{number}", "a.py", "a.py", number) for number in range(60))
    world = RankSet(range(40_000))
    stacks = [
        MergedStack(kind="trainer", thread=str(part), frames=frames, count=1,
                    ranks=RankSet(range(part, 40_000, 3)))
        for part in range(3)
    ]  # fmt: skip
    tree = StackTree(
        sample=0, taken_at=None, world_size=40_000, read=(("trainer", world),), unread=RankSet(),
        stacks=tuple(stacks),
    )  # fmt: skip
    header, *lines = render_folded(tree)
    assert "ranksets.json" in header
    assert sum(map(len, lines)) < 100_000
    assert "/+" in lines[0]
    exact = list(render_folded(tree, full_labels=True))
    assert "ranksets.json" not in exact[0] and "/+" not in exact[1]
