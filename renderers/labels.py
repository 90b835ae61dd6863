"""Frame labels: ``<ThreadName>@<FuncName>@<CodePath>@<RanksIn>|<RanksNotIn>``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from whyhang.renderers.clean import one_line, shorten
from whyhang.renderers.prefix import Node, paths
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stacktree import StackTree
from whyhang.schemas.words import ProcessKind

UNKNOWN = "unknown"
FILE_BUDGET_BYTES = 5_000_000
BOUNDED_RUNS = 8
RANKSETS_FORMAT = "whyhang.ranksets/1"
RANKSETS_FILE = "ranksets.json"

# Names of pybind11 lambdas exceed 300 characters.
_LONGEST_NAME = 200


@lru_cache(maxsize=65536)
def plain_name(name: str | None) -> str:
    """A thread or function name that may stand in a label; a missing one reads ``unknown``.

    ``;`` parts frames and ``@`` parts fields, so ``:`` and ``(at)`` stand in for them.
    """
    text = one_line(name or "").replace(";", ":").replace("@", "(at)")
    return shorten(text, _LONGEST_NAME) or UNKNOWN


@lru_cache(maxsize=65536)
def code_path(frame: Frame) -> str:
    """``path:line``; of a native frame its library, the line only where it is known."""
    path = frame.short_filename or frame.filename or frame.module or UNKNOWN
    if frame.is_native and not frame.line:
        path = path.rpartition("/")[2] or path
    text = one_line(path).replace(";", ":") or UNKNOWN
    return f"{text}:{frame.line}" if frame.line else text


class RankLabels:
    """Writes the rank part of labels, each distinct set once.

    ``read`` holds per kind the ranks of which a process was read: only those can be not in there.
    """

    def __init__(
        self, read: Iterable[tuple[ProcessKind, RankSet]], *, max_runs: int | None = None
    ) -> None:
        self._read = dict(read)
        self._max_runs = max_runs
        self._texts: dict[tuple[ProcessKind, RankSet], str] = {}

    def of(self, kind: ProcessKind, ranks: RankSet) -> str:
        """``0-5|6-7``: who is in there and who, of this kind, is not."""
        key = kind, ranks
        text = self._texts.get(key)
        if text is None:
            absent = self._read.get(kind, NOBODY) - ranks
            text = f"{ranks.format(self._max_runs)}|{absent.format(self._max_runs)}"
            self._texts[key] = text
        return text

    def label(self, node: Node) -> str:
        """The whole label of a frame's node."""
        if node.frame is None:
            raise ValueError("the root of a kind or thread has no frame label")
        name = plain_name(node.frame.name)
        ranks = self.of(node.kind, node.ranks)
        return f"{plain_name(node.thread)}@{name}@{code_path(node.frame)}@{ranks}"


def fitting_runs(
    tree: StackTree, nodes: Iterable[Node], *, budget_bytes: int = FILE_BUDGET_BYTES
) -> int | None:
    """How many runs a side the labels of these nodes may show so that the file stays small.

    None means exact sets. Stops counting once the budget is spent, because writing the exact sets
    of a large scattered job is what takes long.
    """
    exact = RankLabels(tree.read)
    spent = 0
    for node in nodes:
        spent += len(plain_name(node.thread)) + 2 + len(exact.of(node.kind, node.ranks))
        if node.frame is not None:
            spent += len(plain_name(node.frame.name)) + len(code_path(node.frame)) + 2
        if spent > budget_bytes:
            return BOUNDED_RUNS
    return None


def folded_runs(tree: StackTree) -> int | None:
    """How many runs a side the folded stacks of a tree show; None means exact sets."""
    return fitting_runs(tree, (node for path in paths(tree.stacks) for node in path.frames))


def ranksets_json(tree: StackTree) -> str:
    """Every distinct rank set of a tree once, in full: what bounded labels stand for.

    ``label`` is the rank part as bounded labels show it, ``ranks`` and ``not_in`` the exact sets.
    """
    bounded = RankLabels(tree.read, max_runs=BOUNDED_RUNS)
    seen: set[tuple[ProcessKind, RankSet]] = set()
    sets = []
    for path in paths(tree.stacks):
        for node in path.nodes:
            key = node.kind, node.ranks
            if key in seen:
                continue
            seen.add(key)
            sets.append(
                {
                    "kind": node.kind,
                    "label": bounded.of(node.kind, node.ranks),
                    "ranks": node.ranks.format(),
                    "not_in": (tree.read_of(node.kind) - node.ranks).format(),
                }
            )
    document = {
        "format": RANKSETS_FORMAT,
        "sample": tree.sample,
        "read": {kind: ranks.format() for kind, ranks in tree.read},
        "unread": tree.unread.format(),
        "sets": sets,
    }
    return json.dumps(document, indent=1) + "\n"
