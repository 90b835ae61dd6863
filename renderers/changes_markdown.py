"""What a change of the rules changes on recorded incidents, as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.renderers import words
from whyhang.renderers.changes import NOTHING, alarm_time, item_texts, summary
from whyhang.renderers.clean import count_of
from whyhang.renderers.markdown import cell, code, plain
from whyhang.schemas.replay import Changes, IncidentChange, ItemChange, Replayed

_COLUMNS = ("Incident", "Verdict", "Suspects", "Alarm", "Decided by")
_ROWS_SHOWN = 50
_PATTERNS_SHOWN = 6


def render_changes_markdown(changes: Changes) -> Iterator[str]:
    """The lines: a summary, a table of the incidents that change, the entries that differ."""
    yield f"### Hang rules: {summary(changes)}"
    yield ""
    yield f"{code(changes.old)} → {code(changes.new)}"
    if changes.incidents:
        yield ""
        yield f"| {' | '.join(_COLUMNS)} |"
        yield f"|{'---|' * len(_COLUMNS)}"
        for change in changes.incidents[:_ROWS_SHOWN]:
            yield f"| {' | '.join(_cells(change))} |"
        if len(changes.incidents) > _ROWS_SHOWN:
            yield ""
            yield f"… and {len(changes.incidents) - _ROWS_SHOWN} more."
        if changes.unchanged:
            verb = "is" if changes.unchanged == 1 else "are"
            yield ""
            yield f"{count_of(changes.unchanged, 'other incident')} {verb} judged as before."
    yield ""
    if changes.items:
        yield "**What differs in the rules**"
        yield ""
        yield from map(_item, changes.items)
    else:
        yield "The rules say the same."


def _cells(change: IncidentChange) -> Iterator[str]:
    before, after = change.before, change.after
    yield cell(change.incident)
    yield _moved(_verdict(before), _verdict(after), bold=True)
    yield _moved(_suspects(before), _suspects(after), bold="suspects" in change.parts)
    yield _moved(alarm_time(before.alarm), alarm_time(after.alarm), bold="alarm" in change.parts)
    yield _moved(_decider(before), _decider(after), bold=False)


def _moved(before: str, after: str, *, bold: bool) -> str:
    """What was and what is; once where it stays."""
    if before == after:
        return after
    return f"{before} → **{after}**" if bold else f"{before} → {after}"


def _verdict(replayed: Replayed) -> str:
    verdict = replayed.verdict
    named = words.VERDICT_WORDS[verdict.verdict]
    return f"{named} ({plain(verdict.category)}, {verdict.confidence})"


def _suspects(replayed: Replayed) -> str:
    ranks = replayed.verdict.suspects.ranks
    return ranks.format(words.SHOWN_RUNS) if ranks else NOTHING


def _decider(replayed: Replayed) -> str:
    verdict = replayed.verdict
    if verdict.suppressed:
        return f"suppression {cell(verdict.suppressed[0].id)}"
    return cell(verdict.rule) if verdict.rule else "no rule"


def _item(item: ItemChange) -> str:
    name, *key = item.name.split(" ")
    head = f"- {item.kind} {code(name)}"
    if key:
        head += f", {code(' '.join(key))}"
    if item.before is None and item.after is not None:
        return f"{head}: new"
    if item.after is None and item.before is not None:
        return f"{head}: removed"
    texts = item_texts(item)
    if len(texts) == 2:
        return f"{head}: {code(texts[0])} → {code(texts[1])}"
    if item.kind != "list":
        return f"{head}: {texts[0]}"
    parts = texts[0].split(", ")
    shown = [f"{part[0]} {code(part[2:])}" for part in parts[:_PATTERNS_SHOWN] if part[1:2] == " "]
    more = [f"and {len(parts) - _PATTERNS_SHOWN} more"] if len(parts) > _PATTERNS_SHOWN else []
    return f"{head}: {', '.join(shown + more) or texts[0]}"
