"""Operations that one rank issued together, and how far each batch has come.

The members of a batch have records of their own that never change: they stay ``scheduled`` for
ever. Only the record that ends the batch, ``coalesced``, tells whether it is over. It has the
members' two numbers, for the first grows once for all of them and the second not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from whyhang.schemas.flight_recorder import FlightEntry

_FRAME = "coalesced"
_Place = tuple[str, int, int]


class Batches:
    """The batches among the records of one rank."""

    def __init__(self, entries: Sequence[FlightEntry]) -> None:
        # By identity: equal records may stand in several batches.
        self._frames: dict[int, FlightEntry] = {}
        self._left: set[int] = set()
        open_frames: dict[_Place, FlightEntry] = {}
        for entry in reversed(entries):
            place = _place(entry)
            if entry.name == _FRAME:
                open_frames[place] = entry
            elif place in open_frames:
                self._frames[id(entry)] = open_frames[place]
        self._note_left(entries)

    def frame(self, entry: FlightEntry) -> FlightEntry | None:
        """The record that ends the batch in which an operation went; None where there is none."""
        return self._frames.get(id(entry))

    def is_memberless(self, entry: FlightEntry) -> bool:
        """Whether a record ends a batch of which no member is recorded any more."""
        return entry.name == _FRAME and not any(frame is entry for frame in self._frames.values())

    def is_left(self, entry: FlightEntry) -> bool:
        """Whether the rank has gone on from a batch whose end was recorded and is over.

        Dumps of unfinished works leave such an end out, but not the members.
        """
        return id(entry) in self._left

    def _note_left(self, entries: Sequence[FlightEntry]) -> None:
        bare: dict[_Place, list[FlightEntry]] = {}
        lowest: dict[tuple[str, int], int] = {}
        for entry in entries:
            if not entry.is_p2p or entry.name == _FRAME or entry.backend == "gloo":
                continue
            number = entry.group, entry.p2p_seq
            lowest[number] = min(lowest.get(number, entry.seq), entry.seq)
            if id(entry) not in self._frames:
                bare.setdefault(_place(entry), []).append(entry)
        batches = [
            found
            for (group, seq, p2p_seq), found in bare.items()
            # A transfer that goes alone makes the second number grow, from 1.
            if len(found) > 1 or p2p_seq == 0 or seq > lowest[group, p2p_seq]
        ]
        for earlier, batch in enumerate(batches):
            # A rank hangs within the end of a batch only in its first, where its communicator is
            # created. Then nothing comes behind it.
            if earlier or batch[-1] is not entries[-1]:
                self._left.update(id(entry) for entry in batch)


def _place(entry: FlightEntry) -> _Place:
    return entry.group, entry.seq, entry.p2p_seq
