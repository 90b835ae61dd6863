"""What the renderers get: the verdict, the evidence it rests on and the merged stacks."""

from __future__ import annotations

from dataclasses import dataclass

from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.stacktree import StackTree
from whyhang.schemas.topology import Topology
from whyhang.schemas.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks whose processes of one kind stand at the same position, for the report's table.

    ``position`` is None where it could not be read. ``status`` is the rank's (``running``,
    ``stopped``, …), ``state`` and ``wchan`` the kernel's words where all members share them.
    ``nameless`` are processes whose rank is not known, as ``node:pid``.
    """

    kind: str
    ranks: tuple[int, ...]
    position: str | None
    status: str
    state: str | None = None
    wchan: str | None = None
    role: str = ""
    nameless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One incident with its verdict, ready to be rendered. ``tree`` is None without stacks.

    ``topology`` is None where no source says anything of it; ``contradictions`` are the sentences
    in which two sources disagree.
    """

    incident: Incident
    verdict: Verdict
    tree: StackTree | None = None
    groups: tuple[Group, ...] = ()
    topology: Topology | Missing | None = None
    contradictions: tuple[str, ...] = ()
