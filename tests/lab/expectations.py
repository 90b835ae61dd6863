"""What a scenario must show, as data: the verdict, and facts about single processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whyhang.engine.positions import Positions
from whyhang.rules.load import load_ruleset
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import DumpMode, Process
from whyhang.schemas.words import ProcessKind

# How kernels of the last years name one wait.
FUTEX = "futex"
PIPE_READ = "pipe_(read|wait)"
SOCKET = "wait_woken|sk_wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One process that the last sample must hold; what is None may be anything.

    ``function`` is that of its position and ``wchan`` a regular expression.
    """

    kind: ProcessKind
    rank: int | None = None
    function: str | None = None
    state: str | None = None
    wchan: str | None = None
    mode: DumpMode | None = None

    def __str__(self) -> str:
        parts = (self.function, self.state, self.wchan, self.mode)
        shown = " ".join(part for part in parts if part is not None)
        return f"{_name(self.kind, self.rank)}: {shown or 'there'}"

    def misfit(self, process: Process) -> int:
        """In how many points a process differs from this."""
        mode = process.dump.mode if process.dump is not None and process.dump.ok else None
        pairs = (
            (self.function, function_of(process)),
            (self.state, process.state),
            (self.mode, mode),
        )
        unlike = sum(wanted is not None and wanted != found for wanted, found in pairs)
        if self.wchan is not None and re.search(self.wchan, process.wchan or "") is None:
            unlike += 1
        return unlike

    def closest(self, processes: Iterable[Process]) -> Process | None:
        """The process of this kind and rank that fits best."""
        candidates = [
            process
            for process in processes
            if process.kind == self.kind and self.rank in (None, process.rank)
        ]
        return min(candidates, key=self.misfit, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The right answer to a scenario; of several verdicts or categories each is right."""

    verdicts: tuple[str, ...]
    categories: tuple[str, ...]
    suspects: tuple[int, ...] = ()
    facts: tuple[Fact, ...] = ()

    def told(self) -> Iterator[str]:
        """All of it, one statement a line."""
        who = f" {list(self.suspects)}" if self.suspects else ""
        yield f"{'|'.join(self.verdicts)} {'|'.join(self.categories)}{who}"
        yield from map(str, self.facts)


def seen(
    expected: Expected, verdict: Mapping[str, Any], processes: Sequence[Process]
) -> Iterator[tuple[bool, str]]:
    """What was found in the place of each statement of `Expected.told`, and whether it fits."""
    suspects = tuple(verdict["suspects"]["rank_list"])
    right = (
        verdict["verdict"] in expected.verdicts
        and verdict["category"] in expected.categories
        and suspects == expected.suspects
    )
    who = f" {list(suspects)}" if suspects else ""
    yield right, f"{verdict['verdict']} {verdict['category']}{who}"
    for fact in expected.facts:
        found = fact.closest(processes)
        if found is None:
            yield False, f"{_name(fact.kind, fact.rank)}: none"
        else:
            yield fact.misfit(found) == 0, describe(found)


def describe(process: Process) -> str:
    """A process in the points that a fact can ask for."""
    mode = None if process.dump is None else process.dump.mode
    parts = (function_of(process), process.state, process.wchan, mode)
    shown = " ".join(part for part in parts if part is not None)
    return f"{_name(process.kind, process.rank)}: {shown}"


def function_of(process: Process) -> str | None:
    """The function of its position under the built-in rules."""
    thread = _positions().thread(process)
    if isinstance(thread, Missing):
        return None
    top = _positions().top(thread.stack)
    return None if isinstance(top, Missing) else top.function


@lru_cache(maxsize=1)
def _positions() -> Positions:
    return Positions(load_ruleset().lists)


def _name(kind: str, rank: int | None) -> str:
    return kind if rank is None else f"{kind} {rank}"
