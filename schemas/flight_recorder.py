"""What PyTorch's flight recorder keeps: the last collectives of one rank, newest last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SEND = re.compile(r"send (\d{1,9})->(\d{1,9})")
_RECEIVE = re.compile(r"recv (\d{1,9})<-(\d{1,9})")
Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightEntry:
    """A collective or a transfer between two ranks, as one rank recorded it.

    ``seq`` counts the collectives of the group, the same on all its ranks; ``p2p_seq`` counts
    transfers and differs between ranks. ``state`` is scheduled, started or completed. ``frames``
    are ``function file:line``, innermost first. Times are nanoseconds since 1970.
    """

    record: int
    group: str
    group_id: int | None = None
    op: str = ""
    seq: int = 0
    p2p_seq: int = 0
    is_p2p: bool = False
    state: str = "scheduled"
    retired: bool = False
    input_sizes: Sizes = ()
    output_sizes: Sizes = ()
    dtypes: tuple[str, ...] = ()
    created_ns: int | None = None
    frames: tuple[str, ...] = ()

    @property
    def backend(self) -> str:
        """``nccl``, ``gloo``, …; empty where the record does not tell."""
        return self.op.partition(":")[0] if ":" in self.op else ""

    @property
    def name(self) -> str:
        """The operation without its backend."""
        return self.op.partition(":")[2] or self.op

    @property
    def completed(self) -> bool:
        """Whether the operation is over. gloo's records never say so, they are only retired."""
        return self.state == "completed" or self.retired

    @property
    def transfer(self) -> tuple[int, int] | None:
        """Sender and receiver by their numbers in the group; None for what is no transfer."""
        match = _SEND.search(self.op)
        if match is not None:
            return int(match[1]), int(match[2])
        match = _RECEIVE.search(self.op)
        return None if match is None else (int(match[2]), int(match[1]))


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The last works of a process group; None where the record does not tell."""

    enqueued: int | None = None
    started: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightGroup:
    """A process group that a rank belongs to. ``ranks`` is None where its members are unknown."""

    name: str
    description: str = ""
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightDump:
    """The record of one rank. ``status`` is by the group's number on that rank."""

    rank: int
    version: str | None = None
    nccl_version: str | None = None
    groups: tuple[FlightGroup, ...] = ()
    status: Mapping[int, GroupStatus] = field(default_factory=dict)
    entries: tuple[FlightEntry, ...] = ()
