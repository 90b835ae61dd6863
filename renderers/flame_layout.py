"""Where each box of the flame graph goes, and which stacks share one when there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from whyhang.renderers.prefix import Node, Path
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stacktree import MergedStack, StackTree

Weight = Literal["distinct", "threads", "ranks"]

# A browser shows 10,000 boxes within a second.
MAX_BOXES = 10_000
MIN_WIDTH = 2.0
# The columns of suspects are readable without a zoom: this wide, or a third of the picture.
SUSPECT_WIDTH = 190.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One box: ``x`` and ``width`` in pixels, ``row`` counted from the root of its kind.

    ``hidden`` holds the stacks that a collapsed box stands for; ``node`` is then the one below
    which they would hang. ``level`` tells kinds (0), threads (1) and frames apart.
    """

    node: Node
    level: int
    x: float
    width: float
    hidden: tuple[MergedStack, ...] = ()

    @property
    def ranks(self) -> RankSet:
        """Who is in there."""
        if not self.hidden:
            return self.node.ranks
        ranks = NOBODY
        for stack in self.hidden:
            ranks = ranks | stack.ranks
        return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The nodes that are drawn, and the stacks that collapse, by the drawn node they hang below."""

    drawn: frozenset[int]
    hidden: dict[int, tuple[MergedStack, ...]]

    @property
    def hidden_stacks(self) -> int:
        """How many stacks are not drawn by themselves."""
        return sum(map(len, self.hidden.values()))


def choose(
    tree: StackTree, paths: tuple[Path, ...], suspects: RankSet, max_boxes: int = MAX_BOXES
) -> Selection:
    """The stacks to draw within ``max_boxes`` boxes.

    First come the stacks of suspects, then the commonest stack of every thread name, then the
    rarest ones: what few ranks show is what the picture is for. Each stack that does not fit is
    counted in a box below its last drawn frame.
    """
    drawn: set[int] = {id(path.nodes[0]) for path in paths}
    undrawn = {id(node): len(node.children) for path in paths for node in path.nodes}
    spent = 2 * len(drawn)
    left = []
    for path in _by_importance(tree, paths, suspects):
        new = [node for node in path.nodes if id(node) not in drawn]
        cost = _cost(path, new, undrawn)
        if spent + cost > max_boxes:
            left.append(path)
            continue
        spent += cost
        for node in new:
            drawn.add(id(node))
        for parent, node in zip(path.nodes, path.nodes[1:], strict=False):
            if node in new:
                undrawn[id(parent)] -= 1
    hidden: dict[int, list[MergedStack]] = {}
    for path in left:
        last = next(node for node in reversed(path.nodes) if id(node) in drawn)
        hidden.setdefault(id(last), []).append(path.stack)
    return Selection(
        drawn=frozenset(drawn), hidden={key: tuple(stacks) for key, stacks in hidden.items()}
    )


def _cost(path: Path, new: list[Node], undrawn: dict[int, int]) -> int:
    """The boxes that a path adds: its new nodes, and a counting box for each that branches."""
    branching = sum(1 for node in new if undrawn[id(node)] > 1)
    return len(new) + branching


def _by_importance(tree: StackTree, paths: tuple[Path, ...], suspects: RankSet) -> list[Path]:
    commonest: dict[int, Path] = {}
    for path in paths:
        best = commonest.setdefault(id(path.nodes[1]), path)
        if path.stack.count > best.stack.count:
            commonest[id(path.nodes[1])] = path
    order = {kind: number for number, (kind, _) in enumerate(tree.read)}

    def importance(numbered: tuple[int, Path]) -> tuple[object, ...]:
        number, path = numbered
        stack = path.stack
        return (
            not (stack.ranks and not stack.ranks - suspects),
            commonest[id(path.nodes[1])] is not path,
            order.get(stack.kind, len(order)),
            len(stack.ranks) or stack.count,
            number,
        )

    return [path for _, path in sorted(enumerate(paths), key=importance)]


@dataclass(slots=True)
class _Slots:
    """The columns of one kind: one for each stack that ends somewhere, one for each counted box."""

    weights: list[float] = field(default_factory=list)
    suspect: list[bool] = field(default_factory=list)

    def add(self, weight: float, *, suspect: bool = False) -> None:
        self.weights.append(weight)
        self.suspect.append(suspect)

    def widths(self, width: float) -> list[float]:
        """The widths of all columns, those of suspects being readable."""
        number = sum(self.suspect)
        wide = max(MIN_WIDTH, min(SUSPECT_WIDTH, width / 3 / number)) if number else MIN_WIDTH
        # In a crowded picture the other columns keep what they are guaranteed.
        wide = min(wide, MIN_WIDTH + (width - MIN_WIDTH * len(self.weights)) / max(number, 1))
        return column_widths(
            self.weights, width, [wide if suspect else MIN_WIDTH for suspect in self.suspect]
        )


def layout(
    root: Node, selection: Selection, *, weight: Weight, width: float, suspects: RankSet
) -> Iterator[Box]:
    """The boxes of one kind, each before those within it, laid out over ``width`` pixels."""
    spans, slots = _arrange(root, selection, weight, suspects)
    edges = (0.0, *accumulate(slots.widths(width)))
    for node, level, first, last, hidden in spans:
        x = edges[first]
        yield Box(node=node, level=level, x=x, width=edges[last] - x, hidden=hidden)


_Span = tuple[Node, int, int, int, tuple[MergedStack, ...]]


def _arrange(
    root: Node, selection: Selection, weight: Weight, suspects: RankSet
) -> tuple[list[_Span], _Slots]:
    """Give each drawn node its columns. Iterative: a recursion under test may be 1,000 deep."""
    slots = _Slots()
    spans: list[_Span] = []
    todo: list[tuple[Node, int, int | None]] = [(root, 0, None)]
    while todo:
        node, level, index = todo.pop()
        if index is None:
            todo.append((node, level, len(spans)))
            spans.append((node, level, len(slots.weights), 0, ()))
            children = [child for child in node.children.values() if id(child) in selection.drawn]
            ordered = children if level == 0 else sorted(children, key=_sorter(suspects))
            todo.extend((child, level + 1, None) for child in reversed(ordered))
            continue
        hidden = selection.hidden.get(id(node), ())
        away = set(map(id, hidden))
        for stack in node.ends:
            if id(stack) not in away:
                slots.add(
                    weigh(stack, weight), suspect=bool(stack.ranks) and not stack.ranks - suspects
                )
        if hidden:
            first = len(slots.weights)
            slots.add(
                1.0 if weight == "distinct" else sum(weigh(stack, weight) for stack in hidden)
            )
            spans.append((node, level + 1, first, first + 1, hidden))
        _, _, first, _, _ = spans[index]
        spans[index] = (node, level, first, len(slots.weights), ())
    return spans, slots


def _sorter(suspects: RankSet) -> Callable[[Node], tuple[object, ...]]:
    """Suspects to the left, then the rarest first, so that the eye finds them in one place."""

    def key(node: Node) -> tuple[object, ...]:
        name = node.frame.name if node.frame else ""
        place = node.frame.place if node.frame else ""
        return not (node.ranks & suspects), len(node.ranks) or node.count, name, place

    return key


def weigh(stack: MergedStack, weight: Weight) -> float:
    """The share of the width that a stack asks for."""
    if weight == "distinct":
        return 1.0
    if weight == "threads":
        return float(stack.count)
    return float(len(stack.ranks) or stack.count)


def column_widths(weights: list[float], width: float, floors: list[float]) -> list[float]:
    """Widths in proportion to the weights, none below its floor; the widest ones pay for it."""
    floored: set[int] = set()
    while True:
        free = [number for number in range(len(weights)) if number not in floored]
        rest = width - sum(floors[number] for number in floored)
        total = sum(weights[number] for number in free)
        scale = rest / total if total else 0.0
        more = {number for number in free if weights[number] * scale < floors[number]}
        if not more:
            return [
                floors[number] if number in floored else weights[number] * scale
                for number in range(len(weights))
            ]
        floored |= more
