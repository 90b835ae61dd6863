"""The function report: in how many threads each function stands, and in whose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from whyhang.renderers.clean import one_line
from whyhang.renderers.labels import UNKNOWN, code_path
from whyhang.renderers.words import moment
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stacktree import StackTree

# Up to here a report names each process; beyond, runs of ranks of a node are joined.
LISTED_SOURCES = 16
_RANKED = re.compile(r"(.*)-rank(\d+)\Z", re.DOTALL)


@dataclass(slots=True)
class Sources:
    """Processes by node: the ranks as a bitmap, which thousands of functions can share cheaply."""

    ranks: dict[str, int] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, names: Iterable[str]) -> Sources:
        """The sources with these names."""
        made = cls()
        for name in names:
            match = _RANKED.match(name)
            if match is None:
                made.others.add(one_line(name))
            else:
                node = one_line(match[1])
                made.ranks[node] = made.ranks.get(node, 0) | 1 << int(match[2])
        return made

    def add(self, other: Sources) -> None:
        """Take in the sources of another stack."""
        self.others |= other.others
        for node, bits in other.ranks.items():
            self.ranks[node] = self.ranks.get(node, 0) | bits

    def join(self, listed: int = LISTED_SOURCES) -> Iterator[str]:
        """Each process by node and rank; past ``listed`` of them ``gpu31-rank0..7`` for a run."""
        compress = sum(bits.bit_count() for bits in self.ranks.values()) > listed
        for node, bits in sorted(
            self.ranks.items(), key=lambda item: (item[1] & -item[1], item[0])
        ):
            for first, last in RankSet.from_bits(bits).runs():
                if compress and last > first:
                    yield f"{node}-rank{first}..{last}"
                else:
                    yield from (f"{node}-rank{rank}" for rank in range(first, last + 1))
        yield from sorted(self.others)


@dataclass(slots=True)
class _Calls:
    count: int = 0
    sources: Sources = field(default_factory=Sources)


def render_function_report(tree: StackTree | None, incident: Incident) -> Iterator[str]:
    """The lines of ``report.txt``, without line ends.

    A function counts once for each thread of each process in which it occurs, however often it
    recurs in that thread.
    """
    yield from _summary(tree, incident)
    yield ""
    yield "Function Call Statistics"
    yield "------------------------"
    if tree is None:
        yield ""
        yield "No stacks were read."
        return
    for (name, place), calls in _ranking(tree):
        yield ""
        yield f"{name} {place}"
        yield f"  Call Count: {calls.count}"
        yield f"  Sources: {', '.join(calls.sources.join())}"


def _summary(tree: StackTree | None, incident: Incident) -> Iterator[str]:
    yield "Stack Trace Analysis Report"
    yield "==========================="
    yield ""
    yield "Summary"
    yield "-------"
    yield f"Job ID: {one_line(incident.job_id or '') or UNKNOWN}"
    yield f"Analysis Time: {analysis_time(incident)}"
    yield f"Print ID: {one_line(incident.print_id or '') or UNKNOWN}"
    if tree is None:
        return
    taken = f", taken at {one_line(tree.taken_at)}" if tree.taken_at else ""
    yield f"Sample: {tree.sample}{taken}"
    if tree.unread:
        yield f"Ranks not read: {tree.unread}"


def _ranking(tree: StackTree) -> list[tuple[tuple[str, str], _Calls]]:
    functions: dict[tuple[str, str], _Calls] = {}
    for stack in tree.stacks:
        sources = Sources.of(name for name, _, _ in stack.sources)
        for key in {(one_line(frame.name) or UNKNOWN, code_path(frame)) for frame in stack.frames}:
            calls = functions.setdefault(key, _Calls())
            calls.count += stack.count
            calls.sources.add(sources)
    return sorted(functions.items(), key=lambda item: (-item[1].count, item[0]))


def analysis_time(incident: Incident) -> str:
    """The end of the collection in UTC; the last sample's time where the end is not known."""
    at = incident.finished_at or (incident.last.at if incident.last else incident.taken_at)
    return moment(at or "") or UNKNOWN
