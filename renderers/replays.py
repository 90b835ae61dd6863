"""Replayed incidents as text and JSON: the outcome, the alarm, a timeline of the rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whyhang.renderers import words
from whyhang.renderers.clean import count_of, one_line
from whyhang.schemas.replay import Alarm, Mismatch, Replayed, RuleState
from whyhang.schemas.verdict import Verdict


def render_replays(
    replayed: Sequence[Replayed], mismatches: Sequence[Mismatch] = ()
) -> Iterator[str]:
    """All incidents as lines for people, then what is not as expected."""
    for number, each in enumerate(replayed):
        if number:
            yield ""
        yield from render_replay(each)
    for miss in mismatches:
        yield ""
        yield f"NOT AS EXPECTED: {miss.incident}: {miss.part} is {miss.found or 'none'}"
        yield f"  expected {miss.expected or 'none'}"


def render_replay(replayed: Replayed) -> Iterator[str]:
    """One incident: outcome, alarm, and per rule its state after each sample."""
    verdict = replayed.verdict
    yield f"{one_line(replayed.incident)}: {outcome_words(verdict)}{_by(verdict)}"
    yield f"  alarm: {alarm_words(replayed.alarm)}{_happened(replayed)}"
    moments = [f"+{words.duration(seconds)}" for seconds in replayed.moments] or ["no sample"]
    says = [verdict_words(each) for each in replayed.verdicts]
    live = {id: states for id, states in replayed.states.items() if any(s != "not" for s in states)}
    rows = [("", moments), ("verdict", says)]
    rows += [(id, [_state(state) for state in states]) for id, states in live.items()]
    names = max(len(name) for name, _ in rows)
    widths = [max(len(cells[n]) for _, cells in rows) for n in range(len(moments))]
    for name, cells in rows:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"  {name:<{names}}  {line}".rstrip()
    quiet = len(replayed.states) - len(live)
    if quiet:
        yield (
            f"  {count_of(quiet, 'other rule')} never apply"
            if quiet > 1
            else "  1 other rule never applies"
        )


def _state(state: RuleState) -> str:
    return state.upper() if state in ("fired", "acts") else state


def verdict_words(verdict: Verdict) -> str:
    """``local_hang 40-47``."""
    ranks = verdict.suspects.ranks
    return f"{verdict.verdict} {ranks.format(words.SHOWN_RUNS)}" if ranks else verdict.verdict


def outcome_words(verdict: Verdict) -> str:
    """``local_hang (disk_io, high), suspects 40-47``."""
    ranks = verdict.suspects.ranks
    who = f", suspects {ranks.format(words.SHOWN_RUNS)}" if ranks else ""
    return f"{verdict.verdict} ({verdict.category}, {verdict.confidence}){who}"


def alarm_words(alarm: Alarm | None) -> str:
    """When detection speaks up, in one sentence."""
    if alarm is None:
        return "nothing of the log was recorded"
    about = "about " if alarm.estimated else ""
    text = (
        f"suspected after {about}{words.duration(alarm.suspected)} of silence, "
        f"confirmed after {words.duration(alarm.confirmed)}"
    )
    if not alarm.is_raised:
        text += f", later than the {words.duration(alarm.recorded)} that were recorded"
    if alarm.earlier:
        text += f"; {count_of(alarm.earlier, 'earlier alarm')} that progress took back"
    return text


def render_replays_json(replayed: Iterable[Replayed], mismatches: Iterable[Mismatch] = ()) -> str:
    """The document ``whyhang.replay/1``; ``replay --expect`` reads it again."""
    document = {
        "format": "whyhang.replay/1",
        "incidents": [replay_to_json(each) for each in replayed],
        "mismatches": [
            {
                "incident": miss.incident,
                "part": miss.part,
                "expected": miss.expected,
                "found": miss.found,
            }
            for miss in mismatches
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def replay_to_json(replayed: Replayed) -> dict[str, Any]:
    """One incident; its own keys are those of its outcome."""
    return {
        "incident": replayed.incident,
        **verdict_to_json(replayed.verdict),
        "alarm": alarm_to_json(replayed.alarm),
        "happened": replayed.happened,
        "moments": [
            {"seconds": seconds, **verdict_to_json(verdict)}
            for seconds, verdict in zip(replayed.moments, replayed.verdicts, strict=False)
        ],
        "states": {id: list(states) for id, states in replayed.states.items()},
    }


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """The parts of an outcome."""
    return {
        "verdict": verdict.verdict,
        "category": verdict.category,
        "confidence": verdict.confidence,
        "suspects": verdict.suspects.ranks.format(),
        "rule": verdict.rule,
    }


def alarm_to_json(alarm: Alarm | None) -> dict[str, Any] | None:
    """An alarm; all times in seconds of silence."""
    if alarm is None:
        return None
    return {
        "threshold": alarm.threshold,
        "suspected": alarm.suspected,
        "confirmed": alarm.confirmed,
        "recorded": alarm.recorded,
        "raised": alarm.is_raised,
        "earlier": alarm.earlier,
        "estimated": alarm.estimated,
    }


def _by(verdict: Verdict) -> str:
    if verdict.suppressed:
        return f", suppressed by {', '.join(each.id for each in verdict.suppressed)}"
    return f", by {verdict.rule}" if verdict.rule else ""


def _happened(replayed: Replayed) -> str:
    if replayed.happened is None:
        return ""
    return f" (it was suspected after {words.duration(replayed.happened)})"
