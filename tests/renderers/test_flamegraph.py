"""The flame graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.renderers.label import split_label
from whyhang.renderers import flamegraph
from whyhang.renderers.flame_layout import MIN_WIDTH, column_widths
from whyhang.renderers.flamegraph import clip, render_flamegraph
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stacktree import MergedStack, StackTree

SVG = "{http://www.w3.org/2000/svg}"
TEMPLATES = Path(flamegraph.__file__).parent / "templates"


def draw(diagnosis: Diagnosis) -> ElementTree.Element:
    """The picture of a diagnosis, read back."""
    assert diagnosis.tree is not None
    suspects = diagnosis.verdict.suspects.ranks
    text = render_flamegraph(diagnosis.tree, title=diagnosis.verdict.headline, suspects=suspects)
    return ElementTree.fromstring(text.encode())


def boxes(root: ElementTree.Element) -> Iterator[tuple[str, str, float, float, float]]:
    """Title, class, left edge, top and width of every box."""
    frames = root.find(f"{SVG}g[@id='frames']")
    assert frames is not None
    for group in frames:
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, width = (float(rect.attrib[name]) for name in ("x", "y", "width"))
        yield group.findtext(f"{SVG}title", ""), group.attrib["class"], x, y, width


def one_each(number: int, *, kind: Literal["trainer"] = "trainer", depth: int = 3) -> StackTree:
    """A common stack of ``number`` ranks, and one of its own for each of as many others."""
    main = Frame("main", "a.py", "a.py", 1)
    stacks = [MergedStack(kind=kind, thread="MainThread", frames=(main,) * depth, count=number,
                          ranks=RankSet(range(number, 2 * number)))]  # fmt: skip
    for rank in range(number):
        own = tuple(Frame(f"f{rank}", "a.py", "a.py", line) for line in range(1, depth))
        stacks.append(MergedStack(kind=kind, thread="MainThread", frames=(main, *own), count=1,
                                  ranks=RankSet((rank,))))  # fmt: skip
    return StackTree(
        sample=0, taken_at=None, world_size=2 * number, unread=RankSet(), stacks=tuple(stacks),
        read=((kind, RankSet(range(2 * number))),),
    )  # fmt: skip


def test_golden(diagnosis: Diagnosis, svg_file: object) -> None:
    """The pictures of the hand-built diagnoses."""
    assert diagnosis.tree is not None
    suspects = diagnosis.verdict.suspects.ranks
    title = diagnosis.verdict.headline
    assert render_flamegraph(diagnosis.tree, title=title, suspects=suspects) == svg_file


def test_a_title_comes_first_and_one_group_holds_all_boxes(diagnosis: Diagnosis) -> None:
    """Otherwise Chromium takes a time that grows with the square of the number of boxes."""
    root = draw(diagnosis)
    assert root[0].tag == f"{SVG}title"
    assert root[0].text
    assert [child.tag for child in root].count(f"{SVG}title") == 1
    frames = root.find(f"{SVG}g[@id='frames']")
    assert frames is not None
    assert all(group.tag == f"{SVG}g" for group in frames)
    holders = [group for group in root.iter() if group.find(f"{SVG}title") is not None]
    assert len(holders) == len(frames) + 1


def test_no_text_is_empty(diagnosis: Diagnosis) -> None:
    """A box too narrow for a word has no text element at all."""
    for text in draw(diagnosis).iter(f"{SVG}text"):
        assert text.text


def test_the_picture_is_self_contained(diagnosis: Diagnosis) -> None:
    """No link, font, picture or handler from outside, and one small script."""
    assert diagnosis.tree is not None
    text = render_flamegraph(diagnosis.tree, title=diagnosis.verdict.headline)
    root = ElementTree.fromstring(text.encode())
    assert text.count("http") == text.count("http://www.w3.org/")
    for element in root.iter():
        assert not [name for name in element.attrib if "href" in name or name.startswith("on")]
    assert not re.search(r"url\(|@import|@font-face", text)
    scripts = list(root.iter(f"{SVG}script"))
    assert len(scripts) == 1
    assert len((scripts[0].text or "").encode()) < 6000


def test_the_header_says_what_is_seen(disk: Diagnosis) -> None:
    """Without a script: the headline, the sample, how many ranks were read and which were not."""
    shown = " ".join(text.text or "" for text in draw(disk).findall(f"{SVG}text"))
    assert disk.verdict.headline in shown
    assert "Sample 1" in shown
    assert "56 of 64 ranks read" in shown
    assert "Ranks not read: 56-63" in shown
    assert "suspects of the verdict" in shown


def test_every_rank_stands_in_a_box_whose_label_splits(diagnosis: Diagnosis) -> None:
    """All ranks of each stack appear, and frame labels keep their form."""
    assert diagnosis.tree is not None
    seen = RankSet()
    for title, _, _, _, _ in boxes(draw(diagnosis)):
        if title.count("@") >= 3:
            seen = seen | RankSet.parse(split_label(title).ranks_in)
    for stack in diagnosis.tree.stacks:
        assert not stack.ranks - seen


def test_suspects_stand_out_and_the_crowd_is_calm(local: Diagnosis) -> None:
    """The colour tells whose box it is."""
    colours = {title: colour for title, colour, _, _, _ in boxes(draw(local))}
    assert colours["MainThread@read_shard@/workspace/data.py:88@3|0-2/4-7"] == "suspect"
    assert colours["MainThread@<module>@train.py:345@0-7|"] == "all"
    native = "MainThread@c10d::Work::wait@libtorch_cpu.so@0-2/4-7|3"
    assert colours[native] == "most nat"
    assert local.tree is not None
    plain = ElementTree.fromstring(render_flamegraph(local.tree))
    assert "few" in {colour for _, colour, _, _, _ in boxes(plain)}


def test_boxes_lie_within_those_above_them(diagnosis: Diagnosis) -> None:
    """No box is wider than the one it hangs below, and none leaves the picture."""
    root = draw(diagnosis)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    rows: dict[float, list[tuple[float, float]]] = {}
    for _, colour, x, y, w in boxes(root):
        assert x >= 0 and y >= 0 and x + w <= width and y < height
        above = rows.get(y - flamegraph.ROW, [])
        assert colour == "root" or any(a <= x + 0.02 and x + w <= b + 0.02 for a, b in above)
        rows.setdefault(y, []).append((x, x + w))


def test_a_lone_suspect_among_thousands_is_visible() -> None:
    """However wide the others are, nobody gets less than two pixels, whatever the weight."""
    tree = one_each(40)
    crowd = MergedStack(
        kind="trainer", thread="MainThread", frames=(Frame("main", "a.py", "a.py", 1),) * 2,
        count=100_000, ranks=RankSet(range(40, 80)),
    )  # fmt: skip
    tree = StackTree(sample=0, taken_at=None, world_size=80, read=tree.read, unread=RankSet(),
                     stacks=(crowd, *tree.stacks[1:]))  # fmt: skip
    weights: tuple[Literal["distinct", "threads", "ranks"], ...] = ("distinct", "threads", "ranks")
    for weight in weights:
        root = ElementTree.fromstring(render_flamegraph(tree, weight=weight))
        assert min(width for *_, width in boxes(root)) >= MIN_WIDTH - 0.01


def test_suspects_can_be_read_without_a_zoom() -> None:
    """Among many stacks those of suspects are widened, and nobody else falls below the floor."""
    root = ElementTree.fromstring(render_flamegraph(one_each(400), suspects=RankSet((7, 9))))
    drawn = list(boxes(root))
    assert min(width for *_, width in drawn) >= MIN_WIDTH - 0.01
    assert min(width for _, colour, *_, width in drawn if colour == "suspect") > 150


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50))
def test_columns_fill_the_width(weights: list[float]) -> None:
    """Widths sum to the whole, none is below the floor, and a heavier one is never narrower."""
    widths = column_widths(weights, 1000.0, [MIN_WIDTH] * len(weights))
    assert sum(widths) == pytest.approx(1000.0)
    assert min(widths) >= MIN_WIDTH * 0.999
    by_weight = [width for _, width in sorted(zip(weights, widths, strict=True))]
    assert all(a <= b + 1e-6 for a, b in pairwise(by_weight))


def test_what_does_not_fit_is_counted_and_suspects_stay() -> None:
    """Past the cap stacks share a counted box; no rank vanishes and no suspect is hidden."""
    tree = one_each(300)
    suspects = RankSet((7, 299))
    root = ElementTree.fromstring(render_flamegraph(tree, suspects=suspects, max_boxes=200))
    drawn = list(boxes(root))
    assert len(drawn) <= 200
    titles = [title for title, *_ in drawn]
    assert "MainThread@f7@a.py:2@7|0-6/8-599" in titles
    assert any("@f299@" in title for title in titles)
    counted = [title for title in titles if title.startswith("+")]
    assert len(counted) == 1
    hidden = int(re.findall(r"\d+", counted[0])[0])
    assert hidden + len([title for title in titles if "@a.py:2@" in title]) == 300
    assert f"{hidden} stacks collapsed" in ElementTree.tostring(root, encoding="unicode")


def test_a_picture_of_many_stacks_keeps_to_the_cap() -> None:
    """Twelve thousand distinct frames stay below ten thousand boxes."""
    root = ElementTree.fromstring(render_flamegraph(one_each(1500, depth=9)))
    assert len(list(boxes(root))) <= 10_000


def test_a_deep_recursion_is_drawn() -> None:
    """A stack deeper than Python's own recursion limit is no trouble."""
    root = ElementTree.fromstring(render_flamegraph(one_each(2, depth=1500)))
    assert len(list(boxes(root))) > 3000


def test_one_kind_gives_a_graph_of_its_own(local: Diagnosis) -> None:
    """With ``kind`` only that kind's stacks are drawn."""
    assert local.tree is not None
    root = ElementTree.fromstring(render_flamegraph(local.tree, kind="dataloader"))
    roots = [title for title, colour, *_ in boxes(root) if colour == "root"]
    assert roots == ["dataloader · 8 ranks · 8 threads"]


def test_wide_characters_take_two_columns() -> None:
    """A clipped text ends in an ellipsis and fits."""
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdef", 4) == "abc…"
    assert clip("模型训练", 5) == "模…"


def luminance(colour: str) -> float:
    """The relative luminance of ``#rgb`` or ``#rrggbb`` as WCAG defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_can_be_read_on_every_colour(scheme: int) -> None:
    """Contrast is at least 4.5 to 1, light and dark."""
    css = (TEMPLATES / "flamegraph.css").read_text(encoding="utf-8")
    palette = re.findall(r"svg\{([^}]*--bg[^}]*)\}", css)[scheme]
    colours = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", palette))
    pairs = [("ink", name) for name in ("bg", "all", "most", "some", "few", "none")]
    for ink, ground in [*pairs, ("suspect-ink", "suspect"), ("dim", "bg")]:
        light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
