"""What a change of the rules changes on recorded incidents, as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from whyhang.renderers import words
from whyhang.renderers.clean import count_of, shorten
from whyhang.renderers.replays import alarm_to_json, outcome_words, verdict_to_json
from whyhang.schemas.replay import Alarm, Changes, IncidentChange, ItemChange, Replayed

LONGEST_TEXT = 160
NOTHING = "none"


def render_changes(changes: Changes) -> Iterator[str]:
    """The changed incidents and the entries that differ, as lines for people."""
    yield f"{changes.old} -> {changes.new}: {summary(changes)}"
    for change in changes.incidents:
        yield ""
        yield change.incident
        before, after = change.before, change.after
        if set(change.parts) - {"alarm"}:
            yield f"  before  {outcome_words(before.verdict)}, {_rule(before)}"
            yield f"  after   {outcome_words(after.verdict)}, {_rule(after)}"
        else:
            yield f"  still   {outcome_words(after.verdict)}, {_rule(after)}"
        if "alarm" in change.parts:
            yield f"  alarm   {alarm_time(before.alarm)} -> {alarm_time(after.alarm)}"
    yield ""
    yield "entries that differ:" if changes.items else "no entry of the rules differs"
    for item in changes.items:
        yield f"  {item.kind} {item.name}: {' -> '.join(item_texts(item))}"


def summary(changes: Changes) -> str:
    """One sentence: how many incidents change."""
    if not changes.total:
        return "no incidents to compare on"
    recorded = count_of(changes.total, "recorded incident")
    if not changes.incidents:
        return f"none of {recorded} changes"
    verb = "changes" if len(changes.incidents) == 1 else "change"
    return f"{len(changes.incidents)} of {recorded} {verb}"


def alarm_time(alarm: Alarm | None) -> str:
    """After how much silence the alarm is raised, in a few words."""
    if alarm is None:
        return "unknown"
    if alarm.is_raised:
        text = f"after {'about ' if alarm.estimated else ''}{words.duration(alarm.confirmed)}"
    else:
        text = f"none in {words.duration(alarm.recorded)}"
    if alarm.earlier:
        text += f", {count_of(alarm.earlier, 'false alarm')} before"
    return text


def item_texts(item: ItemChange) -> tuple[str, ...]:
    """What an entry was and is; of a list what was added and removed."""
    if item.kind == "list" and item.before is not None and item.after is not None:
        was, now = item.before.split("\n"), item.after.split("\n")
        parts = [f"+ {each}" for each in now if each not in was]
        parts += [f"- {each}" for each in was if each not in now]
        return (", ".join(parts) or "another order",)
    if item.before is None and item.after is None:
        return ("changed",)
    return tuple(NOTHING if side is None else _short(side) for side in (item.before, item.after))


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), LONGEST_TEXT) or '""'


def _rule(replayed: Replayed) -> str:
    verdict = replayed.verdict
    if verdict.suppressed:
        return f"suppressed by {', '.join(each.id for each in verdict.suppressed)}"
    return f"by {verdict.rule}" if verdict.rule else "by no rule"


def render_changes_json(changes: Changes) -> str:
    """The document ``whyhang.changes/1``."""
    document = {
        "format": "whyhang.changes/1",
        "old": changes.old,
        "new": changes.new,
        "total": changes.total,
        "unchanged": changes.unchanged,
        "incidents": [_incident(change) for change in changes.incidents],
        "entries": [
            {"kind": item.kind, "name": item.name, "before": item.before, "after": item.after}
            for item in changes.items
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _incident(change: IncidentChange) -> dict[str, object]:
    return {
        "incident": change.incident,
        "parts": list(change.parts),
        **{
            side: {
                **verdict_to_json(each.verdict),
                "suppressed": [entry.id for entry in each.verdict.suppressed],
                "alarm": alarm_to_json(each.alarm),
            }
            for side, each in (("before", change.before), ("after", change.after))
        },
    }
