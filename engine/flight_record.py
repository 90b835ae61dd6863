"""What the flight recorder dumps of a job say of each group: who came to an operation, who left it.

Records come first. A group's status numbers are used only where they count what the records count:
gloo's count transfers as well, and NCCL's mix both kinds in groups that transfer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from whyhang.engine.flight_batches import Batches
from whyhang.schemas.flight_recorder import FlightDump, FlightEntry, GroupStatus

Standing: TypeAlias = Literal["pending", "done", "absent", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class GroupKey:
    """A process group: its name and members. Names alone may repeat on disjoint ranks.

    One object a group, equal only to itself: comparing thousands of members would cost more than
    all else.
    """

    name: str
    ranks: tuple[int, ...]


class FlightRecord:
    """All dumps, arranged by group."""

    def __init__(self, dumps: Sequence[FlightDump], world_size: int | None = None) -> None:
        self.dumps: Mapping[int, FlightDump] = {dump.rank: dump for dump in dumps}
        self._descriptions: dict[str, str] = {}
        self._keys: dict[tuple[int, str], GroupKey] = {}
        self._groups: dict[tuple[str, tuple[int, ...]], GroupKey] = {}
        self._standings: dict[tuple[GroupKey, int], Mapping[int, Standing]] = {}
        self._aborting: dict[int, bool] = {}
        self._configured: dict[tuple[int, str], tuple[int, ...]] = {}
        for dump in dumps:
            for group in dump.groups:
                self._descriptions.setdefault(group.name, group.description)
                if group.ranks is not None:
                    self._configured[dump.rank, group.name] = group.ranks
        known = {max(ranks) for ranks in self._configured.values()} | self.dumps.keys()
        # Ranks are numbered from 0: a gap is a rank without a dump.
        self.world: tuple[int, ...] = tuple(range(max(max(known, default=-1) + 1, world_size or 0)))
        self._derived = self._derive_members(dumps)
        self._last: dict[tuple[int, GroupKey], int] = {}
        self._records: dict[tuple[GroupKey, int], dict[int, list[FlightEntry]]] = {}
        self._mixed: set[GroupKey] = set()
        self._gloo: set[GroupKey] = set()
        # Groups with a collective that may be over on one rank before another has come to it.
        self._one_sided: set[GroupKey] = set()
        self._batches = {dump.rank: Batches(dump.entries) for dump in dumps}
        for dump in dumps:
            for entry in dump.entries:
                self._add(dump.rank, entry)
        self._status = {dump.rank: self._named_status(dump) for dump in dumps}
        self._untrusted = self._distrust()
        self._last_over = self._find_last_over()

    def _add(self, rank: int, entry: FlightEntry) -> None:
        key = self.key(rank, entry.group)
        if entry.backend == "gloo":
            self._gloo.add(key)
        if entry.is_p2p:
            self._mixed.add(key)
            return
        place = rank, key
        self._last[place] = max(self._last.get(place, -1), entry.seq)
        records = self._records.setdefault((key, entry.seq), {})
        records.setdefault(rank, []).append(entry)

    def _find_last_over(self) -> dict[tuple[int, GroupKey], int]:
        found: dict[tuple[int, GroupKey], int] = {}
        for (key, seq), records in self._records.items():
            for rank, entries in records.items():
                if not is_symmetric(entries):
                    self._one_sided.add(key)
                elif seq > found.get((rank, key), -1) and all(
                    self._is_over(rank, entry) for entry in entries
                ):
                    found[rank, key] = seq
        return found

    def _derive_members(self, dumps: Sequence[FlightDump]) -> dict[str, tuple[int, ...]]:
        """Members of groups whose configuration is not recorded: whoever has a record in them."""
        seen: dict[str, set[int]] = defaultdict(set)
        for dump in dumps:
            for entry in dump.entries:
                seen[entry.group].add(dump.rank)
        return {name: tuple(sorted(ranks)) for name, ranks in seen.items()}

    def key(self, rank: int, name: str) -> GroupKey:
        """The group of that name that a rank belongs to."""
        key = self._keys.get((rank, name))
        if key is None:
            key = self._keys[rank, name] = self._find(rank, name)
        return key

    def _find(self, rank: int, name: str) -> GroupKey:
        ranks = self._configured.get((rank, name))
        if ranks is None:
            # PyTorch calls the default group 0; all ranks of the job are in it.
            ranks = self.world if name in ("", "0") else self._derived.get(name, (rank,))
        found = self._groups.get((name, ranks))
        if found is None:
            found = self._groups[name, ranks] = GroupKey(name, ranks)
        return found

    def description(self, key: GroupKey) -> str:
        """What the program calls the group; empty where it does not say."""
        found = self._descriptions.get(key.name, "")
        return "" if found == "undefined" else found

    def groups(self) -> tuple[GroupKey, ...]:
        """Every group that has a record, by name."""
        keys = {key for key, _ in self._records} | self._mixed
        return tuple(sorted(keys, key=lambda key: (len(key.name), key.name, key.ranks)))

    def records(self, key: GroupKey, seq: int) -> Mapping[int, Sequence[FlightEntry]]:
        """One collective by rank; several records where operations were coalesced."""
        return self._records.get((key, seq), {})

    def last_enqueued(self, rank: int, key: GroupKey) -> int | None:
        """The last collective of the group that a rank came to."""
        seq = self._last.get((rank, key))
        status = self.status(rank, key)
        counted = None if status is None else status.enqueued
        return seq if counted is None else max(counted, -1 if seq is None else seq)

    def last_completed(self, rank: int, key: GroupKey) -> int | None:
        """The last collective of the group that is over on a rank."""
        status = self.status(rank, key)
        return None if status is None else status.completed

    def last_over(self, rank: int, key: GroupKey) -> int:
        """The last collective that is over on a rank and needed all ranks of the group; else -1."""
        recorded = self._last_over.get((rank, key), -1)
        completed = None if key in self._one_sided else self.last_completed(rank, key)
        return recorded if completed is None else max(recorded, completed)

    def counts_collectives(self, key: GroupKey) -> bool:
        """Whether the same number is the same collective on all ranks of the group.

        gloo's numbers count transfers as well, which every rank has its own of.
        """
        return key not in self._mixed or key not in self._gloo

    def status(self, rank: int, key: GroupKey) -> GroupStatus | None:
        """A rank's numbers of a group, where they count collectives."""
        if key in self._mixed or key in self._untrusted:
            return None
        return self._status.get(rank, {}).get(key)

    def standing(self, rank: int, key: GroupKey, seq: int) -> Standing:
        """Where a rank stands with a collective: in it, past it, or never in it."""
        dump = self.dumps.get(rank)
        if dump is None:
            return "unknown"
        entries = self.records(key, seq).get(rank)
        completed = self.last_completed(rank, key)
        if entries:
            over = all(self._is_over(rank, entry) for entry in entries)
            return "done" if over else "pending"
        last = self.last_enqueued(rank, key)
        if last is None:
            return self._without_trace(dump, key, seq)
        if last < seq:
            return "absent"
        if completed is not None:
            return "done" if completed >= seq else "unknown"
        return "done"

    def standings(self, key: GroupKey, seq: int) -> Mapping[int, Standing]:
        """Where all ranks of a group stand with a collective."""
        found = self._standings.get((key, seq))
        if found is None:
            found = {rank: self.standing(rank, key, seq) for rank in key.ranks}
            self._standings[key, seq] = found
        return found

    def _without_trace(self, dump: FlightDump, key: GroupKey, seq: int) -> Standing:
        """No record and no number of this group: absent if the record would still be there."""
        if not dump.entries:
            # Dumps of unfinished works only: an empty one is a rank that waits for nothing.
            return "absent" if dump.status else "unknown"
        if dump.entries[0].record == 0:
            return "absent"
        others = (e.created_ns for entries in self.records(key, seq).values() for e in entries)
        first = min((at for at in others if at is not None), default=None)
        oldest = dump.entries[0].created_ns
        if first is None or oldest is None:
            return "unknown"
        return "absent" if oldest < first else "unknown"

    def pending(self, rank: int) -> list[FlightEntry]:
        """What a rank has enqueued and not finished, oldest first."""
        dump = self.dumps.get(rank)
        return [] if dump is None else [e for e in dump.entries if not self._is_over(rank, e)]

    def is_memberless(self, rank: int, entry: FlightEntry) -> bool:
        """Whether a record ends a batch of transfers of which no other record is left."""
        return entry.transfer is None and self._batches[rank].is_memberless(entry)

    def _is_over(self, rank: int, entry: FlightEntry) -> bool:
        """Whether a rank is done with a record.

        gloo only retires a record. NCCL retires works that were aborted as well, with no sign of
        completion; the group's numbers then decide, or what else the rank's records show. What
        went in a batch is over with the batch.
        """
        batch = self._batches[rank]
        frame = batch.frame(entry)
        if frame is not None:
            return self._is_over(rank, frame)
        if batch.is_left(entry):
            return True
        if entry.state == "completed" or (entry.retired and entry.backend == "gloo"):
            return True
        completed = None if entry.is_p2p else self.last_completed(rank, self.key(rank, entry.group))
        if completed is not None:
            return completed >= entry.seq
        return entry.retired and not self._retires_aborted(rank)

    def _retires_aborted(self, rank: int) -> bool:
        """Whether a rank's records that are retired without completion were aborted."""
        found = self._aborting.get(rank)
        if found is None:
            found = self._aborting[rank] = any(
                entry.state == "completed" or self._is_aborted(rank, entry)
                for entry in self.dumps[rank].entries
            )
        return found

    def _is_aborted(self, rank: int, entry: FlightEntry) -> bool:
        """Whether a record is retired although its group's numbers say that it is not over."""
        if entry.is_p2p or not entry.retired or entry.backend == "gloo":
            return False
        completed = self.last_completed(rank, self.key(rank, entry.group))
        return completed is not None and completed < entry.seq

    def is_unfinished(self, rank: int) -> bool:
        """Whether a rank's numbers say that a work runs although no record shows it."""
        return any(
            status.enqueued is not None
            and status.completed is not None
            and status.enqueued > status.completed
            and self.status(rank, key) is not None
            for key, status in self._status.get(rank, {}).items()
        )

    def _named_status(self, dump: FlightDump) -> dict[GroupKey, GroupStatus]:
        """A rank's status numbers by group. They are kept by the group's number on that rank."""
        names = {e.group_id: e.group for e in dump.entries if e.group_id is not None}
        names = {**self._by_order(dump, names), **names}
        return {
            self.key(dump.rank, names[number]): status
            for number, status in dump.status.items()
            if number in names
        }

    def _by_order(self, dump: FlightDump, known: Mapping[int, str]) -> Mapping[int, str]:
        """Numbers and names both count groups in the order of their creation.

        Used only where there are as many of both and the records agree.
        """
        names = sorted({group.name for group in dump.groups if group.name.isdigit()}, key=int)
        if len(names) != len(dump.groups) or len(names) != len(dump.status):
            return {}
        paired = dict(zip(sorted(dump.status), names, strict=True))
        return paired if all(paired.get(n) == name for n, name in known.items()) else {}

    def _distrust(self) -> set[GroupKey]:
        """Groups whose numbers differ from those of the records on some rank."""
        found: set[GroupKey] = set()
        for (rank, key), seq in self._last.items():
            status = self._status.get(rank, {}).get(key)
            if status is not None and status.enqueued is not None and status.enqueued != seq:
                found.add(key)
        return found


def differing_sizes(records: Mapping[int, Sequence[FlightEntry]]) -> Mapping[int, str]:
    """What each rank brought to one collective, where that must not differ but does.

    All-to-all and gathers may differ by design; shapes may differ while the sizes agree.
    """
    brought = {rank: _brought(entries) for rank, entries in records.items()}
    if None in brought.values() or len(set(brought.values())) < 2:
        return {}
    return {rank: text for rank, text in brought.items() if text is not None}


_UNIFORM = (
    "all_reduce",
    "allreduce",
    "broadcast",
    "_all_gather_base",
    "_allgather_base",
    "_reduce_scatter_base",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "reduce",
)
_SYMMETRIC = (*_UNIFORM[:2], *_UNIFORM[3:8], "all_gather", "reduce_scatter", "barrier")


def operation(entries: Sequence[FlightEntry]) -> tuple[str, ...]:
    """The operations of one collective as a rank recorded them, without what follows their name."""
    return tuple(entry.name.split(" ")[0].lower() for entry in entries)


def is_symmetric(entries: Sequence[FlightEntry]) -> bool:
    """Whether the end of the collective on one rank means that all ranks took part in it."""
    return all(name.removesuffix("_coalesced") in _SYMMETRIC for name in operation(entries))


def _brought(entries: Sequence[FlightEntry]) -> str | None:
    if not all(name.removesuffix("_coalesced") in _UNIFORM for name in operation(entries)):
        return None
    return "; ".join(
        f"{entry.name} {_elements(entry.input_sizes)} {','.join(sorted(set(entry.dtypes)))}"
        for entry in entries
    )


def _elements(sizes: Iterable[tuple[int, ...]]) -> int:
    total = 0
    for shape in sizes:
        count = 1
        for length in shape:
            count = min(count * length, 1 << 62)
        total += count
    return total
