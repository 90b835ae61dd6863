"""The flame graph: our own SVG, one file, a picture even where scripts are blocked.

Two habits of Chromium shape the file. It looks for the document's title among the children of the
root each time a ``<title>`` is inserted, which is quadratic in the boxes unless they all stand in
one group and the root's own title comes first; and an empty ``<text>`` costs as much as a full one.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from xml.sax.saxutils import escape

from whyhang.renderers.clean import count_of, one_line, shorten
from whyhang.renderers.flame_layout import (
    MAX_BOXES,
    MIN_WIDTH,
    Box,
    Selection,
    Weight,
    choose,
    layout,
)
from whyhang.renderers.labels import (
    FILE_BUDGET_BYTES,
    RANKSETS_FILE,
    RankLabels,
    code_path,
    fitting_runs,
    plain_name,
)
from whyhang.renderers.prefix import Node, Path, paths, select
from whyhang.renderers.words import moment
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stacktree import StackTree
from whyhang.schemas.words import ProcessKind

WIDTH = 1200
MARGIN = 10
ROW = 18
CHAR = 7.23  # of the 12 px monospaced face
_GAP = 10  # between the graphs of two kinds
_FEW = 0.125

_TEMPLATES = FilePath(__file__).parent / "templates"
_LEGEND = (
    ("suspect", "suspects of the verdict"),
    ("few", "few of the ranks (up to 1 in 8)"),
    ("some", "less than half"),
    ("most", "half or more"),
    ("all", "all that were read"),
    ("none", "no rank known"),
)
_WEIGHTS: dict[Weight, str] = {
    "distinct": "equal width for each distinct stack",
    "threads": "width by threads",
    "ranks": "width by ranks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """All that is written: the boxes with their top edges, and what the header says."""

    tree: StackTree
    boxes: tuple[tuple[Box, float], ...]
    selection: Selection
    stacks: int
    labels: RankLabels
    bounded: bool
    suspects: RankSet
    width: float
    top: float
    height: float
    title: str
    weight: Weight


def render_flamegraph(
    tree: StackTree,
    *,
    kind: ProcessKind | None = None,
    title: str = "Stacks of all ranks",
    weight: Weight = "distinct",
    suspects: RankSet = NOBODY,
    full_labels: bool = False,
    max_boxes: int = MAX_BOXES,
) -> str:
    """The SVG of one sample: below each process kind its threads, below these their frames.

    ``title`` is the headline. Boxes in which only ``suspects`` stand are marked as such.
    """
    chosen = select(tree, kind=kind)
    made = paths(chosen.stacks)
    selection = choose(chosen, made, suspects, max_boxes)
    roots = tuple({id(path.nodes[0]): path.nodes[0] for path in made}.values())
    width = max([WIDTH - 2.0 * MARGIN, *(MIN_WIDTH * _columns(made, root) for root in roots)])
    lines = _wrap(title)
    top = 102.0 + 24 * len(lines)
    boxes, bottom = _place(roots, selection, weight, suspects, width, top)
    max_runs = None if full_labels else fitting_runs(chosen, (box.node for box, _ in boxes))
    return "".join(
        _document(
            _Picture(
                tree=chosen,
                boxes=boxes,
                selection=selection,
                stacks=len(made),
                labels=RankLabels(chosen.read, max_runs=max_runs),
                bounded=max_runs is not None,
                suspects=suspects,
                width=width + 2 * MARGIN,
                top=top,
                height=bottom + MARGIN,
                title=one_line(title),
                weight=weight,
            ),
            lines,
        )
    )


def _columns(made: tuple[Path, ...], root: Node) -> int:
    return sum(1 for path in made if path.nodes[0] is root)


def _place(
    roots: tuple[Node, ...],
    selection: Selection,
    weight: Weight,
    suspects: RankSet,
    width: float,
    top: float,
) -> tuple[tuple[tuple[Box, float], ...], float]:
    """The graphs of the kinds below each other, each over the full width; and where they end."""
    placed = []
    for root in roots:
        boxes = tuple(layout(root, selection, weight=weight, width=width, suspects=suspects))
        placed += [(box, top + ROW * box.level) for box in boxes]
        top += ROW * (1 + max(box.level for box in boxes)) + _GAP
    return tuple(placed), top


def _document(picture: _Picture, lines: list[str]) -> Iterator[str]:
    width, height = _number(picture.width), _number(picture.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{xml(picture.title)}</title>\n'
        f'<desc id="desc">{xml(" ".join(_facts(picture)))}</desc>\n'
        f"<style>{_template('flamegraph.css')}</style>\n"
    )
    yield from _header(picture, lines)
    sets = _numbered_sets(picture)
    exact = ";".join(ranks.format() for ranks in sets)
    # Past the budget the filter by rank is given up; the picture and its labels stay whole.
    data = exact if len(exact) <= FILE_BUDGET_BYTES // 4 else ""
    yield f'<g id="frames" data-sets="{data}">\n'
    for box, y in picture.boxes:
        yield _box(picture, box, y, sets[box.ranks])
    yield f"</g>\n<script><![CDATA[{_template('flamegraph.js')}]]></script>\n</svg>\n"


def _header(picture: _Picture, lines: list[str]) -> Iterator[str]:
    y = 28
    for line in lines:
        yield f'<text class="h" x="{MARGIN}" y="{y}">{xml(line)}</text>\n'
        y += 24
    for fact in _facts(picture):
        yield f'<text class="d" x="{MARGIN}" y="{y}">{xml(fact)}</text>\n'
        y += 20
    yield from _legend(picture, y)
    hint = "Click or Enter zooms, arrows move, ctrl-F searches, Esc resets."
    yield (
        f'<text id="info" class="d" x="{MARGIN}" y="{y + 23}" data-y="{y + 5}" '
        f'data-right="{WIDTH - MARGIN}" '
        f'data-room="{int((picture.width - 2 * MARGIN) / 7.6)}">{hint}</text>\n'
    )


def _facts(picture: _Picture) -> tuple[str, str]:
    tree = picture.tree
    parts = [f"Sample {tree.sample}"]
    if tree.taken_at:
        parts.append(f"taken {moment(tree.taken_at)}")
    trainers = len(tree.read_of("trainer"))
    if trainers or tree.world_size:
        world = f" of {tree.world_size}" if tree.world_size else ""
        parts.append(f"{trainers}{world} ranks read")
    parts.append(count_of(picture.stacks, "distinct stack"))
    widened = ", suspects widened" if picture.suspects else ""
    parts.append(_WEIGHTS[picture.weight] + widened)
    second = [f"Ranks not read: {tree.unread.format(12) or 'none'}"]
    hidden = picture.selection.hidden_stacks
    if hidden:
        second.append(f"{count_of(hidden, 'stack')} collapsed into dashed boxes that count them")
    if picture.bounded:
        second.append(f"rank lists that end in /+N are shortened, {RANKSETS_FILE} has them in full")
    return " · ".join(parts), " · ".join(second)


def _legend(picture: _Picture, y: int) -> Iterator[str]:
    """The colours that occur, with their meaning."""
    present = {_colour(picture, box) for box, _ in picture.boxes if box.level}
    x = float(MARGIN)
    for name, meaning in _LEGEND:
        if name in present:
            yield (
                f'<g class="{name}"><rect x="{_number(x)}" y="{y - 11}" width="14" height="14"/>'
                f'</g><text x="{_number(x + 20)}" y="{y}">{meaning}</text>\n'
            )
            x += 38 + 7.0 * len(meaning)
    if any(box.node.frame and box.node.frame.is_native for box, _ in picture.boxes):
        yield f'<text x="{_number(x)}" y="{y}" font-style="italic">native frame</text>\n'


def _box(picture: _Picture, box: Box, y: float, number: int) -> str:
    x = box.x + MARGIN
    title, words = _words(picture, box)
    room = int((box.width - 8) / CHAR)
    shown = clip(words, room) if room >= 3 else ""
    text = f'<text x="{_number(x + 4)}" y="{_number(y + 13)}">{xml(shown)}</text>' if shown else ""
    return (
        f'<g class="{_classes(picture, box)}" data-d="{box.level}" data-s="{number}">'
        f"<title>{xml(title)}</title>"
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(box.width)}" height="{ROW}"/>'
        f"{text}</g>\n"
    )


def _words(picture: _Picture, box: Box) -> tuple[str, str]:
    """What a box says when pointed at, and what it shows."""
    node = box.node
    if box.hidden:
        ranks = picture.labels.of(node.kind, box.ranks).partition("|")[0]
        stacks = count_of(len(box.hidden), "stack")
        text = f"+{stacks} of {count_of(len(box.ranks), 'rank')}: {ranks}"
        return text, text
    if node.frame is None:
        name = node.kind if box.level == 0 else plain_name(node.thread)
        text = f"{name} · {count_of(len(node.ranks), 'rank')}" if node.ranks else name
        if box.level:
            ranks = picture.labels.of(node.kind, node.ranks).partition("|")[0]
            text = f"{text}: {ranks}" if ranks else text
        else:
            text = f"{text} · {count_of(node.count, 'thread')}"
        return text, text
    label = picture.labels.label(node)
    place = code_path(node.frame).rpartition("/")[2]
    ranks = label.rpartition("@")[2].partition("|")[0]
    shown = f"{plain_name(node.frame.name)} {place}"
    return label, f"{shown} [{ranks}]" if ranks else shown


def _classes(picture: _Picture, box: Box) -> str:
    if box.level == 0:
        return "root"
    names = [_colour(picture, box)]
    if box.hidden:
        names.append("more")
    elif box.node.frame is not None and box.node.frame.is_native:
        names.append("nat")
    return " ".join(names)


def _colour(picture: _Picture, box: Box) -> str:
    """The class of a box by the share of the ranks of its kind that stand in there."""
    ranks = box.ranks
    if not ranks:
        return "none"
    if not ranks - picture.suspects:
        return "suspect"
    read = len(picture.tree.read_of(box.node.kind))
    share = len(ranks) / read if read else 1.0
    if share >= 1.0:
        return "all"
    if share >= 0.5:
        return "most"
    return "few" if share <= _FEW or len(ranks) == 1 else "some"


def _numbered_sets(picture: _Picture) -> dict[RankSet, int]:
    """The distinct rank sets in the order in which the boxes show them."""
    distinct = dict.fromkeys(box.ranks for box, _ in picture.boxes)
    return {ranks: number for number, ranks in enumerate(distinct)}


def _wrap(title: str) -> list[str]:
    lines = textwrap.wrap(one_line(title), width=100) or ["Stacks of all ranks"]
    if len(lines) > 3:
        lines = [*lines[:2], shorten(" ".join(lines[2:]), 118)]
    return lines


def clip(text: str, columns: int) -> str:
    """The start of a text that fits into so many columns; wide characters take two."""
    used = 0
    for number, character in enumerate(text):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > columns:
            kept = text[: max(number - 1, 0)]
            return f"{kept}…" if kept else ""
    return text


def xml(text: str) -> str:
    """The text as XML content or attribute."""
    return escape(text, {'"': "&quot;"})


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _template(name: str) -> str:
    """A file to embed, without its indentation and blank lines."""
    text = (_TEMPLATES / name).read_text(encoding="utf-8")
    return re.sub(r"\n\s*", "\n", text).strip()
