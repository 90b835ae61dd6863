"""``whyhang fmt``: one way to write a ``hang.yaml``.

Keys in their usual order, conditions in their usual spacing with one clause a line, flow mappings
opened where a condition does not fit into them. The text is edited where it stands; there is no
way through a YAML writer, so comments and everything else stay as they are.
"""

from __future__ import annotations

import yaml

from whyhang.rules.document import read_document
from whyhang.rules.findings import RuleErrors
from whyhang.rules.fmt_flow import open_flows
from whyhang.rules.fmt_order import is_ordered, order_keys
from whyhang.rules.fmt_scalars import format_scalars
from whyhang.rules.fmt_tree import Tree, condition_kind, has_anchors, read_tree
from whyhang.rules.load import load_source
from whyhang.rules.parse import parse_expr, parse_group
from whyhang.rules.shapes import shape
from whyhang.rules.sources import Source
from whyhang.schemas.errors import WhyhangError

# Line ends that YAML knows and text editors do not: such a file is left alone.
_ODD_BREAKS = "\r\x85\u2028\u2029\ufeff"
_MAX_ROUNDS = 1000


class FormatFault(WhyhangError):
    """The formatter would have changed what a file means: our fault, and undone."""

    exit_status = 3


def format_source(source: Source) -> str:
    """The text of a file as it should be written.

    Raises RuleErrors with the findings where the file has errors.
    """
    findings = load_source(source, {})[1]
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise RuleErrors(errors)
    return format_text(source.text)


def format_text(text: str) -> str:
    """The formatted text of a file that has no errors of its own."""
    if any(char in text for char in _ODD_BREAKS):
        return text
    try:
        result = _formatted(text)
        same = result == text or meaning(result) == meaning(text)
    except (yaml.YAMLError, RuleErrors):
        same = False
    if not same:
        raise FormatFault(
            "internal error: formatting would change what the file means",
            "the file is untouched; please report it with the file",
        )
    return result


def _formatted(text: str) -> str:
    tree = read_tree(text)
    if tree is None:
        return text
    while open_flows(tree):
        tree = _again(tree)
    format_scalars(tree)
    tree = _again(tree)
    if not has_anchors(text):
        if not tree.lines[-1]:
            tree.lines.pop()  # the file's last line end: it must not move with a key
        for _ in range(_MAX_ROUNDS):
            if is_ordered(tree):
                break
            before = list(tree.lines)
            order_keys(tree)
            if tree.lines == before:
                break
            tree = _again(tree)
        tree.lines.append("")
    return "\n".join(tree.lines)


def _again(tree: Tree) -> Tree:
    found = read_tree("\n".join(tree.lines))
    assert found is not None
    return found


def meaning(text: str) -> object:
    """What a file says, as values that can be compared: conditions by their trees."""
    document = read_document(text, "")

    def value(node: object, path: tuple[str | int, ...]) -> object:
        if isinstance(node, dict):
            return {name: value(each, (*path, name)) for name, each in node.items()}
        if isinstance(node, list):
            return [value(each, (*path, number)) for number, each in enumerate(node)]
        kind = condition_kind(path)
        if kind and isinstance(node, str):
            return shape(parse_expr(node) if kind == "expr" else parse_group(node))
        # A block at the end of a file may have no line end of its own.
        return node.rstrip("\n") if isinstance(node, str) else (type(node).__name__, node)

    return value(document.data, ())
