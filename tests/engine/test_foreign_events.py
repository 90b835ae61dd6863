"""Events of kinds that are not ours are what their lines tell of."""

from __future__ import annotations

from whyhang.engine.foreign_events import classify_events
from whyhang.schemas.progress import LogEvent
from whyhang.schemas.rankset import RankSet

XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4110, GPU has fallen off the bus."


def test_a_foreign_kind_is_what_its_line_tells_of() -> None:
    """What the writer knew of rank, node, device and time stays."""
    event = LogEvent(
        kind="Xid", line=XID, source="kernel", ranks=RankSet([3]), node="n1", device="g", at="t"
    )
    (found,) = classify_events([event])
    assert (found.kind, found.ranks, found.node) == ("xid", RankSet([3]), "n1")
    assert (found.device, found.at, found.source) == ("g", "t", "kernel")


def test_what_a_line_knows_fills_gaps() -> None:
    """A line may know more than whoever kept it."""
    (found,) = classify_events([LogEvent(kind="gpu", line=XID)])
    assert found.kind == "xid"
    assert found.device


def test_other_events_stay() -> None:
    """Kinds of ours are believed, and a line that tells of nothing is kept as it is."""
    events = [LogEvent(kind="io_error", line=XID), LogEvent(kind="note", line="all is well")]
    assert list(classify_events(events)) == events
