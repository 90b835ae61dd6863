"""Classes of subjects that a clause cannot tell apart, so that each class is decided once.

A *facet* is a bundle of raw facts that fields read together: the stack, what the kernel says, the
counters. A clause names the facets that it reads, and subjects that are equal in all of them form
one class. A job has a handful of classes, whatever its size; only where a clause reads counters
that differ in every rank are there as many classes as ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from whyhang.schemas.rankset import RankSet

# A bitmap is as long as its table, however few members it has: many small classes are lists.
MANY = 256


class Partition:
    """Disjoint classes of the subjects of a table, in the order in which they were formed.

    Few classes are bitmaps, many are lists of bits.
    """

    __slots__ = ("_bitmaps", "_index", "_lists")

    def __init__(self, lists: Sequence[Sequence[int]], bitmaps: Sequence[int] = ()) -> None:
        self._bitmaps = bitmaps
        self._lists = lists
        if lists and len(lists) <= MANY:
            self._bitmaps = tuple(RankSet(members).bits for members in lists)
            self._lists = ()
        self._index: dict[int, int] | None = None

    @classmethod
    def by_key(cls, keys: Iterable[tuple[int, Hashable]]) -> Partition:
        """Those with the same key form one class."""
        found: dict[Hashable, list[int]] = {}
        for bit, key in keys:
            members = found.get(key)
            if members is None:
                found[key] = [bit]
            else:
                members.append(bit)
        return cls(tuple(found.values()))

    @property
    def is_fine(self) -> bool:
        """Whether there are too many classes to be worth anything."""
        return bool(self._lists)

    def __len__(self) -> int:
        return len(self._bitmaps) or len(self._lists)

    def representatives(self) -> Iterator[int]:
        """One member of each class."""
        for bits in self._bitmaps:
            yield (bits & -bits).bit_length() - 1
        for members in self._lists:
            yield members[0]

    def bitmap(self, number: int) -> int:
        """The members of a class."""
        return self._bitmaps[number] if self._bitmaps else RankSet(self._lists[number]).bits

    def union(self, numbers: Iterable[int]) -> int:
        """The members of some classes."""
        if self._lists:
            return RankSet(bit for number in numbers for bit in self._lists[number]).bits
        bits = 0
        for number in numbers:
            bits |= self._bitmaps[number]
        return bits

    def unite(self, groups: Iterable[Sequence[int]]) -> Partition:
        """Coarser classes: each is made of some of these, given by number."""
        if self._lists:
            lists = self._lists
            return Partition(tuple([b for n in group for b in lists[n]] for group in groups))
        return Partition((), tuple(self.union(group) for group in groups))

    def index(self) -> dict[int, int]:
        """The number of the class that each subject is in."""
        if self._index is None:
            members: Iterable[Iterable[int]] = self._lists or map(RankSet.from_bits, self._bitmaps)
            self._index = {bit: number for number, bits in enumerate(members) for bit in bits}
        return self._index

    def __and__(self, other: Partition) -> Partition:
        """The classes of those that are together in both partitions of a table."""
        if len(self) <= 1 or len(other) <= 1:
            return other if len(self) <= 1 else self
        if self._lists or other._lists:
            theirs = other.index()
            return Partition.by_key((bit, (n, theirs[bit])) for bit, n in self.index().items())
        shared = [mine & theirs for mine in self._bitmaps for theirs in other._bitmaps]
        return Partition((), tuple(bits for bits in shared if bits))
