"""Puts keys in their usual order; a comment goes with the key below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from whyhang.rules.fmt_tree import Branch, Tree, block_end, indent_of, key_order

_MODELINE = "yaml-language-server"


@dataclass(slots=True)
class _Entry:
    """A key with its value: blank lines and comments above it, and its lines from the key on."""

    name: str
    blanks: int = 0
    comments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def order_keys(tree: Tree) -> None:
    """Order the keys of the innermost mappings that need it.

    Lines only change places inside such a mapping, so that those beside it stay where they are;
    those around it are out of date afterwards.
    """
    unsorted = [
        each
        for each in tree.branches()
        if isinstance(each.node, yaml.MappingNode) and _can_be_ordered(each)
    ]
    deepest = max((len(each.path) for each in unsorted), default=0)
    chosen = [each for each in unsorted if len(each.path) == deepest]
    content = _content_lines(tree)
    ends = [_region_end(tree.lines, each, content) for each in chosen]
    for branch, end in zip(chosen, ends, strict=True):
        if branch.is_flow:
            _order_flow(tree.lines, branch)
        else:
            _order_block(tree.lines, branch, end, content)


def is_ordered(tree: Tree) -> bool:
    """Whether nothing is left to order that can be ordered."""
    return not any(
        isinstance(each.node, yaml.MappingNode) and _can_be_ordered(each)
        for each in tree.branches()
    )


def _can_be_ordered(branch: Branch) -> bool:
    if not _is_unsorted(branch):
        return False
    if branch.is_flow:
        return branch.first[0] == branch.last[0]
    keys = [(key.start_mark.line, key.start_mark.column) for key, _ in branch.node.value]
    return len({line for line, _ in keys}) == len(keys) and len({col for _, col in keys}) == 1


def _names(branch: Branch) -> list[str]:
    return [str(key.value) for key, _ in branch.node.value]


def _sorted(names: Sequence[str], order: Sequence[str]) -> list[int]:
    """The places of the names in their usual order; unknown ones stay behind the rest."""
    rank = {name: place for place, name in enumerate(order)}
    return sorted(range(len(names)), key=lambda place: rank.get(names[place], len(rank)))


def _is_unsorted(branch: Branch) -> bool:
    order = key_order(branch.path)
    names = _names(branch) if order else []
    return _sorted(names, order) != list(range(len(names)))


# --- flow -------------------------------------------------------------------------------------


def _order_flow(lines: list[str], branch: Branch) -> None:
    (line, column), (_, end) = branch.first, branch.last
    texts = [
        lines[line][key.start_mark.column : max(value.end_mark.column, key.end_mark.column)]
        for key, value in branch.node.value
    ]
    texts = [texts[place] for place in _sorted(_names(branch), key_order(branch.path))]
    lines[line] = f"{lines[line][:column]}{{{', '.join(texts)}}}{lines[line][end:]}"


# --- blocks -----------------------------------------------------------------------------------


def _content_lines(tree: Tree) -> set[int]:
    """The lines on which scalars go on: there `#` begins no comment, and indents say nothing."""
    found: set[int] = set()
    for branch in tree.branches():
        node = branch.node
        if not isinstance(node, yaml.ScalarNode):
            continue
        if node.style in ("|", ">"):
            column = _hangs_on(tree.lines, branch)
            first = node.start_mark.line
            found.update(range(first + 1, block_end(tree.lines, first, column)))
        else:
            found.update(range(node.start_mark.line + 1, node.end_mark.line + 1))
    return found


def _hangs_on(lines: list[str], branch: Branch) -> int:
    if branch.key is not None:
        column: int = branch.key.start_mark.column
        return column
    line, column = branch.first
    dash: int = lines[line].rfind("-", 0, column)
    return dash if dash >= 0 else indent_of(lines[line])


def _order_block(lines: list[str], branch: Branch, end: int, content: set[int]) -> None:
    node = branch.node
    starts = [key.start_mark.line for key, _ in node.value]
    column = node.value[0][0].start_mark.column
    entries: list[_Entry] = []
    gap: list[str] = _own_comments(lines, starts[0]) if not branch.path else []
    first = starts[0] - len(gap)
    for number, name in enumerate(_names(branch)):
        start = starts[number]
        limit = starts[number + 1] if number + 1 < len(starts) else end
        stop = _last_line(lines, start, limit, column, content) + 1
        entry = _Entry(name=name, lines=[lines[start][column:], *lines[start + 1 : stop]])
        entry.blanks = sum(1 for line in gap if not line.strip())
        entry.comments = [line for line in gap if line.strip()]
        entries.append(entry)
        gap = lines[stop:limit]
    prefix = lines[starts[0]][:column]
    lines[first : end - len(gap)] = _put(entries, branch, prefix, column)


def _put(entries: list[_Entry], branch: Branch, prefix: str, column: int) -> list[str]:
    """The entries in their new order; blank lines stay where they were."""
    blanks = [entry.blanks for entry in entries]
    places = _sorted([entry.name for entry in entries], key_order(branch.path))
    result: list[str] = []
    for number, place in enumerate(places):
        entry = entries[place]
        start = prefix if number == 0 else " " * column
        result += [""] * blanks[number] + entry.comments
        result += [start + entry.lines[0], *entry.lines[1:]]
    return result


def _region_end(lines: list[str], branch: Branch, content: set[int]) -> int:
    """The line after a mapping's last entry: where something begins that is indented less."""
    start = branch.node.value[-1][0].start_mark
    column: int = start.column
    number: int = start.line + 1
    while number < len(lines):
        line = lines[number]
        less = indent_of(line) < column or (column == 0 and line.startswith(("---", "...")))
        if line.strip() and number not in content and less:
            break
        number += 1
    return number


def _last_line(lines: list[str], start: int, limit: int, column: int, content: set[int]) -> int:
    """An entry's last line: comments below it belong to it where they are indented more."""
    for number in range(limit - 1, start, -1):
        line = lines[number]
        if not line.strip():
            continue
        if number in content or not line.lstrip().startswith("#") or indent_of(line) > column:
            return number
    return start


def _own_comments(lines: list[str], start: int) -> list[str]:
    """The comments right above the first key of a file that are about it, not about the file."""
    first = start
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    block = lines[first:start]
    if first == 0 or any(_MODELINE in line for line in block) or lines[first - 1].strip():
        return []
    return block
