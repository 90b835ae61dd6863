"""Writes each condition as it should stand: plain where it is one clause, else as a block."""

from __future__ import annotations

import re

import yaml

from whyhang.rules.document import LOADER
from whyhang.rules.fmt_expression import format_condition
from whyhang.rules.fmt_tree import Branch, Tree, block_end, condition_kind

MAX_WIDTH = 100
_FLOW_MARKS = re.compile(r"[,\[\]{}]")
_COMMENT = re.compile(r"(?:^|\s)(#.*)")


def condition_lines(branch: Branch) -> tuple[str, ...] | None:
    """The formatted lines of a condition, None where the node is none."""
    kind = condition_kind(branch.path)
    if not kind or not isinstance(branch.node, yaml.ScalarNode):
        return None
    return format_condition(branch.node.value, chain=kind == "expr")


def fits_in_flow(lines: tuple[str, ...]) -> bool:
    """Whether a condition can stand unquoted between braces or brackets."""
    return (
        len(lines) == 1
        and "#" not in lines[0]
        and not _FLOW_MARKS.search(lines[0])
        and is_plain(lines[0])
    )


def is_plain(text: str) -> bool:
    """Whether a text can stand in YAML without quotes and be read as it is."""
    try:
        node = yaml.compose(f"- {text}", Loader=LOADER)
    except yaml.YAMLError:
        return False
    if not isinstance(node, yaml.SequenceNode):
        return False
    (item,) = node.value
    return isinstance(item, yaml.ScalarNode) and not item.style and item.value == text


def format_scalars(tree: Tree) -> None:
    """Rewrite the conditions of a tree's lines; the nodes are out of date afterwards."""
    branches = [each for each in tree.branches() if condition_lines(each) is not None]
    # From the end, so that places before stay right; an alias leads to the same place twice.
    places = {each.first: each for each in branches}
    for place in sorted(places, reverse=True):
        branch = places[place]
        lines = condition_lines(branch)
        if lines is not None:
            _rewrite(tree.lines, branch, lines)


def _rewrite(lines: list[str], branch: Branch, condition: tuple[str, ...]) -> None:
    line, column = branch.first
    if lines[line][column : column + 1] in ("&", "!", "*"):
        return
    if branch.in_flow:
        _rewrite_in_flow(lines, branch, condition)
        return
    start_line, start_column, indent = _start(lines, branch)
    if isinstance(branch.node, yaml.ScalarNode) and branch.node.style in ("|", ">"):
        end_line = block_end(lines, line, indent)
        comments = _comments(lines[start_line][start_column:] if start_line == line else "")
        comments = comments or _gap(lines, (start_line, start_column), (line, len(lines[line])))
        tail: list[str] = []
    else:
        last_line, last_column = branch.last
        end_line = last_line + 1
        comments = _gap(lines, (start_line, start_column), (line, column))
        tail = _comments(lines[last_line][last_column:])
    head = lines[start_line][:start_column]
    said = "".join(f"  {comment}" for comment in (*comments, *tail))
    text = condition[0]
    if len(condition) == 1 and is_plain(text) and len(f"{head} {text}{said}") <= MAX_WIDTH:
        lines[start_line:end_line] = [f"{head} {text}{said}"]
        return
    body = [" " * (indent + 2) + each for each in condition]
    lines[start_line:end_line] = [f"{head} |{said}", *body]


def _start(lines: list[str], branch: Branch) -> tuple[int, int, int]:
    """Where the part to rewrite begins (after the colon or dash), and the indent it hangs on."""
    if branch.key is not None:
        mark = branch.key.end_mark
        colon = lines[mark.line].index(":", mark.column)
        return mark.line, colon + 1, branch.key.start_mark.column
    line, column = branch.first
    dash = lines[line].rfind("-", 0, column)
    while dash < 0:  # the item stands on a line below its dash
        line -= 1
        dash = lines[line].rfind("-")
    return line, dash + 1, dash


def _gap(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> list[str]:
    """The comments between two places."""
    (first, left), (last, right) = start, end
    if first == last:
        return _comments(lines[first][left:right])
    middle = (comment for line in lines[first + 1 : last] for comment in _comments(line))
    return [*_comments(lines[first][left:]), *middle, *_comments(lines[last][:right])]


def _comments(text: str) -> list[str]:
    match = _COMMENT.search(text)
    return [match[1].rstrip()] if match else []


def _rewrite_in_flow(lines: list[str], branch: Branch, condition: tuple[str, ...]) -> None:
    (line, column), (last, end) = branch.first, branch.last
    if line == last and fits_in_flow(condition):
        lines[line] = lines[line][:column] + condition[0] + lines[line][end:]
