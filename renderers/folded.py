"""Folded stacks: one line per distinct stack, as flame graph tools read them.

The first line starts with ``#`` and says of which sample the stacks are and who was not read.
Tools that know no comments want it dropped first: ``tail -n +2 stacks.folded``.
"""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.renderers.clean import count_of, one_line
from whyhang.renderers.labels import RANKSETS_FILE, RankLabels, fitting_runs
from whyhang.renderers.prefix import paths, select
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stacktree import StackTree
from whyhang.schemas.words import ProcessKind


def render_folded(
    tree: StackTree,
    *,
    kind: ProcessKind | None = None,
    ranks: RankSet | None = None,
    thread: str | None = None,
    full_labels: bool = False,
) -> Iterator[str]:
    """The header, then a line per distinct stack, without line ends.

    The root frame of a line is the process kind; the number at its end counts the (rank, thread)
    pairs. ``full_labels`` writes exact rank sets however large the file gets.
    """
    chosen = select(tree, kind=kind, ranks=ranks, thread=thread)
    made = paths(chosen.stacks)
    frames = (node for path in made for node in path.frames)
    max_runs = None if full_labels else fitting_runs(chosen, frames)
    labels = RankLabels(chosen.read, max_runs=max_runs)
    yield _header(chosen, bounded=max_runs is not None)
    for path in made:
        line = ";".join((path.stack.kind, *(labels.label(node) for node in path.frames)))
        yield f"{line} {path.stack.count}"


def _header(tree: StackTree, *, bounded: bool) -> str:
    parts = [f"# whyhang folded stacks, sample {tree.sample}"]
    if tree.taken_at:
        parts.append(f"taken at {one_line(tree.taken_at)}")
    parts += [f"{kind} {count_of(len(ranks), 'rank')} read" for kind, ranks in tree.read if ranks]
    parts.append(f"ranks not read: {tree.unread.format(32) or 'none'}")
    if bounded:
        parts.append(f"long rank lists end in /+N, exact ones are in {RANKSETS_FILE}")
    return "; ".join(parts)
