"""Changes between two versions of the rules as text and as a comment on a pull request."""

from __future__ import annotations

import json
from typing import Any

from whyhang.renderers.changes import alarm_time, item_texts, render_changes, render_changes_json
from whyhang.renderers.changes_markdown import render_changes_markdown
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.replay import Alarm, Changes, IncidentChange, ItemChange, Replayed
from whyhang.schemas.verdict import Suspects, Verdict

ALARM = Alarm(threshold=120, suspected=120, confirmed=150, recorded=400)
LATE = Alarm(threshold=600, suspected=600, confirmed=660, recorded=400, earlier=2)


def replayed(name: str, alarm: Alarm | None = ALARM, **verdict: Any) -> Replayed:
    """An incident with a verdict."""
    given: dict[str, Any] = {"verdict": "local_hang", "category": "disk_io", "confidence": "high"}
    return Replayed(
        incident=name,
        verdict=Verdict(headline="", **{**given, "rule": "p/a", **verdict}),
        states={},
        alarm=alarm,
    )


CHANGES = Changes(
    old="main:hang.yaml",
    new="hang.yaml",
    items=(
        ItemChange(kind="variable", name="few", before="0.3", after="0.6"),
        ItemChange(kind="list", name="comm", before="a.b\nc|d", after="a.b\ne.*"),
        ItemChange(kind="rule", name="p/a when", before="x\n  and y", after="x"),
        ItemChange(kind="rule", name="p/new", before=None, after="x"),
        ItemChange(kind="rule", name="order", before=None, after=None),
    ),
    incidents=(
        IncidentChange(
            incident="17|80",
            parts=("verdict", "suspects"),
            before=replayed("17|80", suspects=Suspects(ranks=RankSet(range(40, 48)))),
            after=replayed("17|80", verdict="inconclusive", rule=None),
        ),
        IncidentChange(
            incident="1781", parts=("alarm",), before=replayed("1781"), after=replayed("1781", LATE)
        ),
    ),
    total=12,
)


def test_text_shows_before_and_after() -> None:
    """Outcomes that differ stand below each other; where only the alarm moved, that is said."""
    lines = list(render_changes(CHANGES))
    assert lines[0] == "main:hang.yaml -> hang.yaml: 2 of 12 recorded incidents change"
    assert "  before  local_hang (disk_io, high), suspects 40-47, by p/a" in lines
    assert "  after   inconclusive (disk_io, high), by no rule" in lines
    assert "  still   local_hang (disk_io, high), by p/a" in lines
    assert any(
        line == "  alarm   after 2 min 30 s -> none in 6 min 40 s, 2 false alarms before"
        for line in lines
    )
    assert "  list comm: + e.*, - c|d" in lines


def test_json_round_trips() -> None:
    """The document names each changed part of each incident."""
    document = json.loads(render_changes_json(CHANGES))
    assert document["unchanged"] == 10
    assert document["incidents"][0]["before"]["suspects"] == "40-47"
    assert document["incidents"][1]["after"]["alarm"]["earlier"] == 2


def test_markdown_is_a_table_of_changes() -> None:
    """Every row has as many cells as the head; what stays is said once, what is new in bold."""
    lines = list(render_changes_markdown(CHANGES))
    rows = [line for line in lines if line.startswith("|")]
    # A bar inside a name is escaped, or it would end the cell.
    assert {row.replace("\\|", "").count("|") for row in rows} == {6}
    assert lines[0] == "### Hang rules: 2 of 12 recorded incidents change"
    assert "| 40-47 → **none** |" in rows[2]
    assert "| Local hang (disk_io, high) → **Inconclusive (disk_io, high)** |" in rows[2]
    assert "| Local hang (disk_io, high) |" in rows[3]
    assert "| after 2 min 30 s → **none in 6 min 40 s, 2 false alarms before** |" in rows[3]
    assert "10 other incidents are judged as before." in lines
    assert "- variable `few`: `0.3` → `0.6`" in lines
    assert "- list `comm`: + `e.*`, - `c|d`" in lines
    assert "- rule `p/a`, `when`: `x and y` → `x`" in lines
    assert "- rule `p/new`: new" in lines
    assert "- rule `order`: changed" in lines


def test_nothing_changes() -> None:
    """Without a change there is no table."""
    lines = list(
        render_changes_markdown(Changes(old="a", new="b", items=(), incidents=(), total=3))
    )
    assert lines[0] == "### Hang rules: none of 3 recorded incidents changes"
    assert not any(line.startswith("|") for line in lines)
    assert lines[-1] == "The rules say the same."


def test_alarms_in_words() -> None:
    """An estimate says so; what was never recorded is unknown."""
    rough = Alarm(threshold=1, suspected=1, confirmed=2, recorded=9, estimated=True)
    assert alarm_time(rough) == "after about 2 s"
    assert alarm_time(None) == "unknown"
    assert "2 false alarms before" in alarm_time(LATE)
    moved = ItemChange(kind="list", name="l", before="a\nb", after="b\na")
    assert item_texts(moved) == ("another order",)
