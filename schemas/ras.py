"""What NCCL's RAS service answers, and what its client and its monitor print.

Ranks in here are ranks of a *communicator*; only (host, pid) says which process is meant. ``host``
is the address of NCCL's bootstrap interface. None always means that the reply does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

OPERATIONS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
BlockKind = Literal["INCOMPLETE", "DEAD", "TIMEOUT", "ERROR", "MISMATCH"]
WARNING_KINDS: frozenset[str] = frozenset({"TIMEOUT", "MISMATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RasRank:
    """A rank of a communicator and its owner; ``nvml`` is the GPU's number on the host."""

    rank: int
    gpu: int | None = None
    nvml: int | None = None
    pid: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RasProcess:
    """A process of the job with its GPUs, by CUDA's and by NVML's numbers."""

    pid: int
    host: str
    gpus: tuple[int, ...] = ()
    nvml: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RasComm:
    """A communicator in a text reply: the ``index``-th of a group; ``hash`` has 16 digits."""

    group: int
    index: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusGroup:
    """``n`` ranks with one status; ``ranks`` is None where NCCL does not list them."""

    n: int
    status: str
    ranks: tuple[RasRank, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountValue:
    """``n`` ranks that have launched up to one operation."""

    n: int
    op_count: int
    ranks: tuple[RasRank, ...] | None = None


@dataclass(frozen=True, slots=True)
class CountGroup:
    """Differing counts of one operation; ``op`` is None for the sum that NCCL < 2.26 counts."""

    op: str | None
    values: tuple[CountValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorValue:
    """``n`` ranks that report one error."""

    n: int
    error: str
    ranks: tuple[RasRank, ...] | None = None


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """The errors of one phase: ``initialization`` or ``asynchronous``."""

    phase: str
    count: int
    values: tuple[ErrorValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RasBlock:
    """One finding. Without a communicator it is about processes of the job."""

    kind: BlockKind
    comm: RasComm | None = None
    count: int | None = None
    processes: tuple[RasProcess, ...] | None = None
    ranks: tuple[RasRank, ...] | None = None
    status_groups: tuple[StatusGroup, ...] | None = None
    count_groups: tuple[CountGroup, ...] | None = None
    error_groups: tuple[ErrorGroup, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommGroup:
    """A row of the table of communicators. ``errors`` is empty for OK.

    A row of communicators without ranks is a ``ghost``: NCCL 2.26.2 to 2.28.9 print it when they
    walk their data wrongly.
    """

    group: int
    comms: int
    nodes_per_comm: int
    ranks_per_node: tuple[int, int]
    ranks_per_comm: int
    ranks_in_group: int
    status: str
    errors: tuple[str, ...] = ()

    @property
    def ghost(self) -> bool:
        """Whether the row describes nothing that exists."""
        return self.ranks_per_comm == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """How many nodes run how many processes; GPUs only where that is uniform as well."""

    nodes: int
    processes_per_node: int
    gpus_per_process: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """How many processes drive how many GPUs."""

    processes: int
    gpus_per_process: int


@dataclass(frozen=True, slots=True)
class OutlierNode:
    """A node unlike the others. NCCL's list of its pids is unreliable, its address is not."""

    host: str
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """The job as the answering process knows it; dead processes are counted."""

    nodes: int | None = None
    processes: int | None = None
    gpus: int | None = None
    processes_per_node: int | None = None
    gpus_per_process: int | None = None
    uniform: bool = True
    node_distribution: tuple[NodeRow, ...] = ()
    process_distribution: tuple[ProcessRow, ...] = ()
    outlier_nodes: tuple[OutlierNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply:
    """A report in text form. ``problem`` says why it is not complete."""

    complete: bool
    problem: str | None = None
    version: str | None = None
    built_cuda: str | None = None
    cuda_runtime: int | None = None
    cuda_driver: int | None = None
    job: JobSummary | None = None
    collection_seconds: float | None = None
    groups: tuple[CommGroup, ...] = ()
    blocks: tuple[RasBlock, ...] = ()
    unparsed: tuple[str, ...] = ()

    @property
    def ghosts(self) -> frozenset[int]:
        """The numbers of the groups that do not exist."""
        return frozenset(row.group for row in self.groups if row.ghost)


@dataclass(frozen=True, slots=True, kw_only=True)
class RasMember:
    """A rank of a communicator that answered, with its counts in the order of OPERATIONS."""

    rank: int
    host: str | None = None
    pid: int | None = None
    gpu: int | None = None
    nvml: int | None = None
    status: str = "RUNNING"
    async_error: int | None = None
    counts: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRank:
    """A rank that did not answer for its communicator.

    ``unresponsive`` false: its process answered, but no longer has this communicator.
    """

    rank: int
    host: str | None = None
    pid: int | None = None
    gpu: int | None = None
    unresponsive: bool | None = None
    considered_dead: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicator:
    """A communicator with all its ranks. ``hash`` is padded to 16 digits, as text prints it."""

    hash: str
    size: int
    secondary_hash: str | None = None
    members: tuple[RasMember, ...] = ()
    missing: tuple[MissingRank, ...] = ()

    def count_mismatch(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        """For each operation whose counts differ: count -> ranks."""
        found: dict[str, dict[int, tuple[int, ...]]] = {}
        for place, operation in enumerate(OPERATIONS):
            ranks: dict[int, list[int]] = {}
            for member in self.members:
                count = member.counts[place] if place < len(member.counts) else None
                if count is not None:
                    ranks.setdefault(count, []).append(member.rank)
            if len(ranks) > 1:
                found[operation] = {n: tuple(sorted(ranks[n])) for n in sorted(ranks)}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReply:
    """A report in JSON form. ``repaired``: it was not valid JSON as NCCL printed it."""

    complete: bool
    repaired: bool = False
    problem: str | None = None
    version: str | None = None
    cuda_runtime: int | None = None
    cuda_driver: int | None = None
    collection_seconds: float | None = None
    timeouts: int | None = None
    communicators: tuple[Communicator, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectAttempt:
    """An address that NCCL's own client tried."""

    addr: str
    port: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMessages:
    """What NCCL's own client wrote to stderr instead of a report."""

    attempts: tuple[ConnectAttempt, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorEvent:
    """An event of ``MONITOR``; ``timestamp`` is the server's local time."""

    timestamp: str
    event: str
    pid: int | None = None
    host: str | None = None
    gpus: tuple[int, ...] = ()
    nvml: tuple[int, ...] = ()
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorEvents:
    """A stream of events; ``form`` is ``text`` or ``json``."""

    form: Literal["text", "json"] = "text"
    events: tuple[MonitorEvent, ...] = ()
    unparsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RasDialogue:
    """A recorded session: commands with the first line of their answers, and the report."""

    exchanges: tuple[tuple[str, str], ...] = ()
    result: TextReply | JsonReply = field(default_factory=lambda: TextReply(complete=False))


RasReport: TypeAlias = TextReply | JsonReply
RasReply: TypeAlias = TextReply | JsonReply | ClientMessages | MonitorEvents | RasDialogue


def report_of(reply: RasReply) -> RasReport | None:
    """The report that a reply holds, if any."""
    if isinstance(reply, RasDialogue):
        return reply.result
    return reply if isinstance(reply, (TextReply, JsonReply)) else None
