"""One field over all subjects: each distinct value once, with those that have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from whyhang.engine.classes import Partition
from whyhang.engine.facts import FactValue
from whyhang.engine.truthset import TruthSet
from whyhang.schemas.missing import Missing
from whyhang.schemas.stack import Stack


class Column:
    """The values of a field, each with the subjects that have it.

    ``known`` are those that have one, ``missing`` the others by the reason.
    """

    __slots__ = ("_owners", "_values", "known", "missing")

    def __init__(self, classes: Partition, value_of: Callable[[int], FactValue | Missing]) -> None:
        values: dict[object, FactValue] = {}
        groups: dict[object, list[int]] = {}
        unknown: dict[str, list[int]] = {}
        for number, member in enumerate(classes.representatives()):
            value = value_of(member)
            if isinstance(value, Missing):
                unknown.setdefault(value.reason, []).append(number)
                continue
            key = _identity(value)
            values.setdefault(key, value)
            groups.setdefault(key, []).append(number)
        self._values = tuple(values.values())
        self._owners = classes.unite(groups.values())
        self.known = classes.union(n for numbers in groups.values() for n in numbers)
        self.missing = {reason: classes.union(numbers) for reason, numbers in unknown.items()}

    def ask(self, test: Callable[[FactValue], bool], members: int) -> TruthSet:
        """The answers of ``members``: each distinct value is tested once."""
        passed = (number for number, value in enumerate(self._values) if test(value))
        yes, known = self._owners.union(passed) & members, self.known & members
        return TruthSet(members, yes, known & ~yes, self.missing)

    def items(self) -> Iterator[tuple[FactValue, int]]:
        """Each value with those that have it."""
        for number, value in enumerate(self._values):
            yield value, self._owners.bitmap(number)

    def values_of(self, bits: int) -> tuple[FactValue, ...]:
        """The values that some of ``bits`` have."""
        return tuple(value for value, owners in self.items() if owners & bits)


def _identity(value: FactValue) -> object:
    """What makes two values the same; of a stack that is its Python frames."""
    return value.python if isinstance(value, Stack) else (type(value), value)
