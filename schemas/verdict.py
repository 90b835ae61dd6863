"""What the rules concluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from whyhang.schemas.evidence import Evidence
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.unread import UnreadKind
from whyhang.schemas.words import ProcessKind

FORMAT = "whyhang.verdict/1"
VerdictKind = Literal["local_hang", "global_hang", "slow", "no_hang", "inconclusive"]
VERDICTS: tuple[VerdictKind, ...] = get_args(VerdictKind)
Category = Literal[
    "dataloader",
    "disk_io",
    "checkpoint_io",
    "collective_wait",
    "barrier",
    "device_sync",
    "gpu_device",
    "compile",
    "user_code",
    "lock_deadlock",
    "init_rendezvous",
    "exited_rank",
    "stopped_process",
    "network",
    "logging_service",
    "other",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Confidence = Literal["high", "medium", "low"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectPosition:
    """Where suspects stand: ``read_shard /workspace/data.py:88`` in processes of one kind."""

    frame: str
    kind: ProcessKind
    ranks: RankSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects:
    """Who is at fault; empty where nobody can be named."""

    ranks: RankSet = NOBODY
    nodes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    positions: tuple[SuspectPosition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """A suppression that acted."""

    id: str
    summary: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A rule that could not be decided, and which evidence was missing."""

    rule: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSeen:
    """Ranks that were not read, why, and what helps.

    ``ranks`` is empty for processes whose rank could not be read either.
    """

    ranks: RankSet
    reason: str
    kind: UnreadKind | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The conclusion of one judgement.

    ``rule`` is the id of the rule that won (None where none fired), ``also`` those that fired
    beside it. ``lowered`` lists why the confidence is below the rule's own, ``overrides`` the
    variables of the rules that were given another value (``still=30s``).
    """

    verdict: VerdictKind
    category: Category
    confidence: Confidence
    headline: str
    rule: str | None = None
    summary: str = ""
    print_id: str | None = None
    job_id: str | None = None
    suspects: Suspects = Suspects()
    evidence: Evidence | None = None
    also: tuple[str, ...] = ()
    suppressed: tuple[Suppression, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
    lowered: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    rules_digest: str | None = None
    overrides: tuple[str, ...] = ()
    whyhang: str | None = None

    @property
    def is_hang(self) -> bool:
        """Whether it says that the job hangs."""
        return self.verdict in ("local_hang", "global_hang")
