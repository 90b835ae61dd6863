"""The merged stacks as a tree of shared outer frames, which labels and pictures are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stacktree import MergedStack, StackTree
from whyhang.schemas.words import PROCESS_KINDS, ProcessKind


@dataclass(slots=True, eq=False)
class Node:
    """A frame in its context; ``frame`` is None for the root of a kind and of a thread.

    ``ranks`` is the union of, ``count`` the sum over, all stacks that pass through here; ``ends``
    are the stacks whose innermost frame it is.
    """

    kind: ProcessKind
    thread: str | None = None
    frame: Frame | None = None
    ranks: RankSet = NOBODY
    count: int = 0
    ends: list[MergedStack] = field(default_factory=list)
    children: dict[object, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A merged stack and its nodes: the kind, the thread, then the frames, outermost first."""

    stack: MergedStack
    nodes: tuple[Node, ...]

    @property
    def frames(self) -> tuple[Node, ...]:
        """The nodes that stand for frames."""
        return self.nodes[2:]


def paths(stacks: Collection[MergedStack]) -> tuple[Path, ...]:
    """The prefix tree of the stacks, as one path for each of them, in their order."""
    roots: dict[object, Node] = {}
    made = []
    for stack in stacks:
        root = roots.setdefault(stack.kind, Node(kind=stack.kind))
        thread = root.children.setdefault(stack.thread, Node(kind=stack.kind, thread=stack.thread))
        nodes = [root, thread]
        for frame in stack.frames:
            parent = nodes[-1]
            node = parent.children.get(frame_key(frame))
            if node is None:
                node = Node(kind=stack.kind, thread=stack.thread, frame=frame)
                parent.children[frame_key(frame)] = node
            nodes.append(node)
        for node in nodes:
            node.ranks = node.ranks | stack.ranks
            node.count += stack.count
        nodes[-1].ends.append(stack)
        made.append(Path(stack=stack, nodes=tuple(nodes)))
    return tuple(made)


def frame_key(frame: Frame) -> tuple[str, str, int, bool]:
    """What makes two frames below the same outer frames the same box: function, file and line."""
    return frame.name, frame.filename or frame.place, frame.line, frame.is_native


def select(
    tree: StackTree,
    *,
    kind: ProcessKind | None = None,
    ranks: RankSet | None = None,
    thread: str | None = None,
) -> StackTree:
    """The part of a tree that belongs to one kind, to some ranks, to one thread name.

    With ``ranks`` the sets and the counts are cut to those ranks, and so is what was read; stacks
    of processes without a rank then fall out.
    """
    return StackTree(
        sample=tree.sample,
        taken_at=tree.taken_at,
        world_size=tree.world_size,
        read=tuple(
            (each, members if ranks is None else members & ranks)
            for each, members in tree.read
            if kind in (None, each)
        ),
        unread=tree.unread if ranks is None else tree.unread & ranks,
        stacks=tuple(_cut(tree, kind, ranks, thread)),
    )


def _cut(
    tree: StackTree, kind: ProcessKind | None, ranks: RankSet | None, thread: str | None
) -> Iterator[MergedStack]:
    for stack in tree.stacks:
        if kind not in (None, stack.kind) or (thread is not None and stack.thread != thread):
            continue
        if ranks is None:
            yield stack
        elif stack.ranks & ranks:
            sources = tuple(source for source in stack.sources if source[1] in ranks)
            kept = stack.ranks & ranks
            yield MergedStack(
                kind=stack.kind,
                thread=stack.thread,
                frames=stack.frames,
                count=sum(count for _, _, count in sources) or len(kept),
                ranks=kept,
                sources=sources,
            )


def kinds_of(tree: StackTree) -> tuple[ProcessKind, ...]:
    """The kinds that have a stack, trainers first."""
    present = {stack.kind for stack in tree.stacks}
    return tuple(kind for kind in PROCESS_KINDS if kind in present)
