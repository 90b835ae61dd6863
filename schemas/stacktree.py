"""All stacks of one sample merged: who stands where, and who does not."""

from __future__ import annotations

from dataclasses import dataclass

from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.words import ProcessKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedStack:
    """One distinct stack of one thread name in processes of one kind.

    ``frames`` is outermost first. ``count`` is the number of (rank, thread) pairs that show it,
    ``sources`` names the processes for people (``gpu31-rank1``) in order of rank, each with its
    number of threads. ``ranks`` holds those whose process has a rank.
    """

    kind: ProcessKind
    thread: str | None
    frames: tuple[Frame, ...]
    count: int
    ranks: RankSet
    sources: tuple[tuple[str, int | None, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackTree:
    """The distinct stacks of one sample.

    ``read`` holds, per kind, the ranks of which a process of that kind was read: "not in there"
    counts only those. ``unread`` holds the ranks of which nothing was read, ``world_size`` and
    ``taken_at`` are the incident's, ``sample`` is the index of the sample.
    """

    sample: int
    taken_at: str | None
    world_size: int | None
    read: tuple[tuple[ProcessKind, RankSet], ...]
    unread: RankSet
    stacks: tuple[MergedStack, ...]

    def read_of(self, kind: ProcessKind) -> RankSet:
        """The ranks of which a process of ``kind`` was read."""
        return dict(self.read).get(kind, RankSet())
