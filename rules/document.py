"""A YAML file as plain data in which every key and value knows where it stands.

Values are read from the scalars' text, not by YAML 1.1's rules: ``no`` and ``on`` stay words and
``1:30`` stays text. Booleans are ``true`` and ``false`` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import yaml

from whyhang.rules.findings import Finding
from whyhang.rules.place import Place, split_lines
from whyhang.schemas.evidence import Span

Path: TypeAlias = tuple[str | int, ...]

# Aliases may repeat a node many times over; past this the file is an attack or an accident.
MAX_NODES = 50_000
MAX_DEPTH = 64

_INT = re.compile(r"[-+]?\d+\Z")
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?\Z")
_CONSTANTS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STANDARD_TAG = "tag:yaml.org,2002:"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True, kw_only=True)
class Document:
    """A parsed file. ``data`` is None where the YAML itself is broken.

    ``texts`` holds every scalar as written, ``places`` where each value stands, ``keys`` where
    the key (or the dash of a list item's value) of each path stands.
    """

    file: str
    lines: tuple[str, ...] = ()
    data: object = None
    places: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Span] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def span(self, path: Path) -> Span:
        """Where the value at ``path`` stands; the nearest enclosing one if it does not exist."""
        while path and path not in self.places:
            path = path[:-1]
        place = self.places.get(path)
        return place.whole if place is not None else Span(file=self.file, line=1, column=1)

    def key_span(self, path: Path) -> Span:
        """Where the key of ``path`` stands, else its value."""
        return self.keys.get(path) or self.span(path)

    def text(self, path: Path) -> str:
        """The scalar at ``path`` as written."""
        return self.texts[path]


def _is_tab(lines: Sequence[str], mark: yaml.Mark) -> bool:
    """Whether what the parser stumbled over is a tab."""
    return mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"


def read_document(text: str, file: str) -> Document:
    """Parse YAML; what is wrong with it stands in ``findings``."""
    text = text.removeprefix("\ufeff")
    document = Document(file=file, lines=split_lines(text))
    try:
        root = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        span = Span(file=file, line=1, column=1)
        if mark is not None:
            span = Span(file=file, line=mark.line + 1, column=mark.column + 1)
        help = "indent with spaces" if mark and _is_tab(document.lines, mark) else ""
        document.findings.append(
            Finding(code="H001", message=f"YAML: {message}", span=span, help=help)
        )
        return document
    except (yaml.YAMLError, RecursionError) as error:
        document.findings.append(
            Finding(
                code="H001",
                message=f"YAML: {str(error).splitlines()[0]}",
                span=Span(file=file, line=1, column=1),
            )
        )
        return document
    if root is None:
        return document
    walk = _Walk(document)
    try:
        document.data = walk.value(root, ())
    except _TooMuch as error:
        message = "YAML: too much of it, too deep, or an alias that holds itself"
        walk.fault("H001", message, error.node)
    return document


class _TooMuch(Exception):
    def __init__(self, node: yaml.Node) -> None:
        super().__init__()
        self.node = node


class _Walk:
    """Turns composed nodes into data, noting positions on the way."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> object:
        self.count += 1
        self.document.places[path] = self.place(node)
        if self.count > MAX_NODES or len(path) > MAX_DEPTH or id(node) in self.open:
            raise _TooMuch(node)
        if not node.tag.startswith(_STANDARD_TAG):
            self.fault("H003", f"tags such as `{node.tag}` have no meaning here", node)
        if isinstance(node, yaml.ScalarNode):
            self.document.texts[path] = node.value
            return (
                node.value if node.style else plain_value(node.value)
            )  # libyaml says "" for plain
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
            return dict(self.items(cast("yaml.MappingNode", node), path))
        finally:
            self.open.discard(id(node))

    def items(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, object]]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fault("H002", "a key must be a plain word", key)
                continue
            name: str = key.value
            if name in seen:
                self.fault("H012", f"duplicate key `{name}`", key)
                continue
            seen.add(name)
            here = (*path, name)
            self.document.keys[here] = self.place(key).whole
            yield name, self.value(value, here)

    def fault(self, code: str, message: str, node: yaml.Node) -> None:
        self.document.findings.append(
            Finding(code=code, message=message, span=self.place(node).whole)
        )

    def place(self, node: yaml.Node) -> Place:
        return find_place(node, self.document)


def find_place(node: yaml.Node, document: Document) -> Place:
    """Where a node's text stands, exactly where each character can be mapped."""
    line, column = node.start_mark.line, node.start_mark.column
    end_line, end_column = node.end_mark.line, node.end_mark.column
    here = document.lines[line] if line < len(document.lines) else ""
    width = end_column - column if end_line == line else len(here.rstrip()) - column
    whole = Span(file=document.file, line=line + 1, column=column + 1, length=max(1, width))
    if not isinstance(node, yaml.ScalarNode):
        return Place(whole=whole)
    if node.style == "|":
        indent = _block_indent(node, document, line + 1)
        return Place(whole=whole, line=line + 2, column=indent + 1, indent=indent)
    quote = 1 if node.style else 0
    if end_line == line and node.style != ">":
        # Escapes make the text differ from its source: then no character can be mapped.
        raw = here[column + quote : end_column - quote]
        if raw == node.value:
            return Place(whole=whole, line=line + 1, column=column + quote + 1)
    return Place(whole=whole, exact=False)


def _block_indent(node: yaml.ScalarNode, document: Document, first: int) -> int:
    """The columns that a literal block's lines are indented by."""
    for text, source in zip(node.value.split("\n"), document.lines[first:], strict=False):
        if text.strip():
            return len(source) - len(text)
    return 0


def plain_value(text: str) -> object:
    """The value of a plain scalar: null, true, false, a number, else its text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text
