"""A file as the formatter sees it: lines, YAML nodes with their paths, and which are conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import yaml

from whyhang.rules.document import LOADER, Path
from whyhang.rules.place import split_lines

RULE_KEYS = (
    "id", "refines", "summary", "when", "for", "keep", "suspects", "verdict", "category",
    "severity", "confidence", "priority", "message", "runbook", "labels", "tests", "override",
    "disabled",
)  # fmt: skip
TOP_KEYS = (
    "version", "pack", "job", "include", "vars", "lists", "defs", "sets", "ignore", "suppress",
    "rules", "progress", "detect", "collect", "topology", "on_hang", "store", "report",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A node with its path, the node it belongs to, and its key where that is a mapping."""

    node: yaml.Node
    path: Path
    parent: yaml.Node | None = None
    key: yaml.Node | None = None

    @property
    def is_flow(self) -> bool:
        """Whether it is written in braces or brackets."""
        return isinstance(self.node, yaml.CollectionNode) and bool(self.node.flow_style)

    @property
    def in_flow(self) -> bool:
        """Whether it stands in braces or brackets."""
        return isinstance(self.parent, yaml.CollectionNode) and bool(self.parent.flow_style)

    @property
    def first(self) -> tuple[int, int]:
        """Line and column of its first character, from 0."""
        return self.node.start_mark.line, self.node.start_mark.column

    @property
    def last(self) -> tuple[int, int]:
        """Line and column after its last character, from 0; of flow nodes and scalars only."""
        return self.node.end_mark.line, self.node.end_mark.column


@dataclass(slots=True)
class Tree:
    """The lines of a file and the nodes that the formatter may touch."""

    lines: list[str]
    root: yaml.MappingNode

    def branches(self) -> Iterator[Branch]:
        """All nodes, outermost first."""
        yield from _branches(Branch(node=self.root, path=()))


def read_tree(text: str) -> Tree | None:
    """The tree of a file, None where there is nothing to format: no block mapping at its top."""
    root = yaml.compose(text, Loader=LOADER)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return None
    return Tree(list(split_lines(text)), root)


def has_anchors(text: str) -> bool:
    """Whether the file names nodes to use them again: then their order counts."""
    return any(
        isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken)
        for token in yaml.scan(text, Loader=LOADER)
    )


def _branches(branch: Branch) -> Iterator[Branch]:
    yield branch
    node = branch.node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            path = (*branch.path, str(key.value))
            yield from _branches(Branch(node=value, path=path, parent=node, key=key))
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(cast("list[yaml.Node]", node.value)):
            yield from _branches(Branch(node=item, path=(*branch.path, number), parent=node))


def condition_kind(path: Path) -> str:
    """``expr`` or ``group`` where the value at a path is one, else the empty text."""
    if not path:
        return ""
    top, last = path[0], path[-1]
    if top in ("defs", "sets"):
        if len(path) == 2 or (len(path) == 3 and last == "replace"):
            return "expr" if top == "defs" else "group"
    elif top == "ignore":
        return "group" if len(path) == 2 else ""
    elif is_rule(path[:-1]) or (is_rule(path[:-2]) and path[-2:-1] == ("override",)):
        return {"when": "expr", "suspects": "group"}.get(str(last), "")
    return ""


def is_rule(path: Path) -> bool:
    """Whether a rule or suppression stands at a path."""
    return len(path) == 2 and path[0] in ("rules", "suppress") and isinstance(path[1], int)


def key_order(path: Path) -> tuple[str, ...]:
    """The order of the keys of the mapping at a path; empty where theirs is free."""
    if not path:
        return TOP_KEYS
    if is_rule(path) or (is_rule(path[:-1]) and path[-1] == "override"):
        return RULE_KEYS
    return ()


def indent_of(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def block_end(lines: list[str], header: int, column: int) -> int:
    """The line after a block scalar's last one that is not blank.

    ``header`` is the line of its ``|``; its lines are indented by more than ``column``.
    """
    end = header + 1
    for number in range(header + 1, len(lines)):
        if not lines[number].strip():
            continue
        if indent_of(lines[number]) <= column:
            break
        end = number + 1
    return end
