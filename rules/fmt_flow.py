"""Opens flow mappings and lists (``{…}``, ``[…]``) whose conditions need lines of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from whyhang.rules.fmt_scalars import condition_lines, fits_in_flow
from whyhang.rules.fmt_tree import Branch, Tree

_COMMENT = re.compile(r"#[^\n]*")


def open_flows(tree: Tree) -> bool:
    """Open the outermost flow nodes that need it; whether there were any."""
    crowded = _crowded(tree)
    outermost = [each for each in tree.branches() if each.path in crowded and not each.in_flow]
    for branch in sorted(outermost, key=lambda each: each.first, reverse=True):
        _open(tree.lines, branch)
    return bool(outermost)


def _crowded(tree: Tree) -> set[tuple[str | int, ...]]:
    """The paths of flow nodes in which a condition stands that does not fit, at any depth."""
    flows = {each.path for each in tree.branches() if each.is_flow}
    found: set[tuple[str | int, ...]] = set()
    for each in tree.branches():
        lines = condition_lines(each)
        if lines is None or fits_in_flow(lines):
            continue
        path = each.path[:-1]
        while path in flows:
            found.add(path)
            path = path[:-1]
    return found


def _open(lines: list[str], branch: Branch) -> None:
    (line, column), (last, end) = branch.first, branch.last
    head, rest = lines[line][:column], lines[last][end:].strip()
    if rest and not rest.startswith("#"):
        return
    if branch.key is None:
        # `- {`: the first key takes the brace's place.
        indent, opening = column, []
    else:
        indent = branch.key.start_mark.column + 2
        opening = [head.rstrip() + (f"  {rest}" if rest else "")]
        head, rest = " " * indent, ""
    body: list[str] = []
    for own, text in _entries(lines, branch):
        if own:
            body.append(" " * indent + text)
        else:
            # Inside braces the indent of further lines says nothing; outside it must be deeper.
            first, *further = text.split("\n")
            body.append(" " * indent + first)
            body.extend(
                " " * (indent + 4) + line.lstrip() if line.strip() else "" for line in further
            )
    body[0] = head + body[0][indent:] + (f"  {rest}" if rest else "")
    lines[line : last + 1] = [*opening, *body]


def _entries(lines: list[str], branch: Branch) -> Iterator[tuple[bool, str]]:
    """The entries as text (False), and the comments on lines of their own between them (True)."""
    node = branch.node
    spans: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        spans = [("", key, value) for key, value in node.value]
    else:
        spans = [("- ", item, item) for item in node.value]
    (line, column), (last, end) = branch.first, branch.last
    place, pending = (line, column + 1), ""
    for mark, first, value in spans:
        start = first.start_mark.line, first.start_mark.column
        for comment, fresh in _between(lines, place, start):
            if pending and not fresh:
                pending += f"  {comment}"
            else:
                if pending:
                    yield False, pending
                pending = ""
                yield True, comment
        if pending:
            yield False, pending
        place = value.end_mark.line, value.end_mark.column
        pending = mark + _slice(lines, start, place)
        if mark == "" and place == (first.end_mark.line, first.end_mark.column):
            pending += ":"
    for comment, fresh in _between(lines, place, (last, end - 1)):
        if fresh:
            yield False, pending
            pending = ""
            yield True, comment
        else:
            pending += f"  {comment}"
    if pending:
        yield False, pending


def _between(
    lines: list[str], start: tuple[int, int], end: tuple[int, int]
) -> Iterator[tuple[str, bool]]:
    """The comments between two entries, and whether each stands on a line of its own."""
    gap = _slice(lines, start, end)
    for match in _COMMENT.finditer(gap):
        yield match[0].rstrip(), "\n" in gap[: match.start()]


def _slice(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    (first, left), (last, right) = start, end
    if first == last:
        return lines[first][left:right]
    return "\n".join([lines[first][left:], *lines[first + 1 : last], lines[last][:right]])
