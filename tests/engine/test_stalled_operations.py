"""Who did not submit an operation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whyhang.engine.stalled_operations import name_absent
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import LogEvent
from whyhang.schemas.rankset import RankSet


def incident(*ready: str, size: int | None = 4, kind: str = "op_submitted") -> Incident:
    """An incident whose log lists these ranks as ready, a line each."""
    events = tuple(LogEvent(kind=kind, line="", ranks=RankSet.parse(text)) for text in ready)
    return Incident(print_id=None, world_size=size, events=events)


def test_the_rest_is_absent() -> None:
    """All ranks but those of the last line."""
    *before, last = name_absent(incident("0", "0-1/3")).events
    assert [event.kind for event in before] == ["op_submitted", "op_submitted"]
    assert (last.kind, last.ranks) == ("op_not_submitted", RankSet((2,)))


def test_the_rest_is_there() -> None:
    """Where the log lists who is missing, all ranks but those of the last line are there."""
    *_, last = name_absent(incident("0", "2-3", kind="op_not_submitted")).events
    assert (last.kind, last.ranks) == ("op_submitted", RankSet((0, 1)))


@pytest.mark.parametrize(
    "told",
    [
        incident("0", size=None, kind="op_not_submitted"),
        incident("0-3", kind="op_not_submitted"),
        incident("0", size=None),
        incident("0-3"),
        incident(),
        incident("0", kind="barrier_missed"),
        incident("0", size=0),
    ],
)
def test_nobody_is_named_without_reason(told: Incident) -> None:
    """Where the size is not known, all are ready, or the log does not tell."""
    assert name_absent(told) is told


def at_the_store(*ranks: str, came: int = 3, size: int = 4) -> RankSet | None:
    """Whom the lines of these ranks leave out; None where nobody is missing."""
    line = f"(world_size={size}, worker_count={came}, timeout=0:30:00)"
    told = replace(incident(*ranks, kind="store_waiting"), events=())
    events = tuple(
        LogEvent(kind="store_waiting", line=line, ranks=RankSet.parse(text)) for text in ranks
    )
    found = name_absent(replace(told, events=events)).events
    return next((event.ranks for event in found if event.kind == "store_absent"), None)


def test_who_is_missing_at_the_store() -> None:
    """Named where all that came wrote a line; nobody is missing where all or more came."""
    assert at_the_store("0", "1", "3") == RankSet((2,))
    assert at_the_store("0", "1") == RankSet()
    assert at_the_store("0", "1", came=4) is None
    assert at_the_store("0", came=5) is None
    assert at_the_store() is None


def after_timeout(*enqueued: tuple[str, int], group: str = "0") -> RankSet | None:
    """Who is behind by what these ranks wrote of their queues; None where nobody is."""
    text = "[PG ID {} PG GUID {}(default_pg) Rank {}] {}ast enqueued {}work: {}, last completed"
    events = tuple(
        LogEvent(
            kind="dump_signal" if number % 2 else "watchdog_status",
            line=text.format(group, group, ranks, "lL"[number % 2], "NCCL " * (number % 2), count),
            ranks=RankSet.parse(ranks),
        )
        for number, (ranks, count) in enumerate(enqueued)
    )
    found = name_absent(replace(incident(), events=events)).events
    return next((event.ranks for event in found if event.kind == "op_not_submitted"), None)


def test_who_enqueued_fewer_operations() -> None:
    """A few with a smaller number; what a rank writes again no longer counts."""
    assert after_timeout(("0", 101), ("1", 101), ("2", 100)) == RankSet((2,))
    assert after_timeout(("2", 100), ("0", 101), ("1", 101), ("2", 103)) == RankSet((2,))
    assert after_timeout(("0", 101), ("1", 101)) is None


def test_numbers_that_accuse_nobody() -> None:
    """Those of half of the ranks, of other groups, and of lines that name no single rank."""
    assert after_timeout(("0", 101), ("1", 100)) is None
    assert after_timeout(("0", 101), ("1", 100), ("2", 100)) is None
    assert after_timeout(("0", 101), ("1", 101), ("2", 100), group="3") is None
    assert after_timeout(("0", 101), ("1", 101), ("2-3", 100)) is None
