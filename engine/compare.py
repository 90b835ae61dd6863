"""What differs between two versions of the rules: by item, and on recorded incidents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from whyhang.engine.incidents import read_evidence
from whyhang.engine.replay import outcome, replay
from whyhang.rules.ruleset import FrameList, Rule, Ruleset, SuppressRule
from whyhang.schemas.replay import Alarm, Changes, IncidentChange, ItemChange, Replayed

# The parts of an outcome whose change matters; which rule says so does not.
PARTS = ("verdict", "category", "suspects", "confidence")
# Alarms that are closer than this are the same.
ALARM_SECONDS = 0.5


def compare(
    old: tuple[str, Ruleset],
    new: tuple[str, Ruleset],
    incidents: Iterable[tuple[str, Path]],
    *,
    version: str | None = None,
) -> Changes:
    """Judge each incident under both versions and keep those whose outcome differs."""
    changed, total = [], 0
    for name, path in incidents:
        incident = read_evidence(path)
        before, after = (
            replay(ruleset, incident, name=name, version=version) for _, ruleset in (old, new)
        )
        total += 1
        parts = tuple(differing(before, after))
        if parts:
            changed.append(IncidentChange(incident=name, parts=parts, before=before, after=after))
    return Changes(
        old=old[0],
        new=new[0],
        items=tuple(item_changes(old[1], new[1])),
        incidents=tuple(changed),
        total=total,
    )


def differing(before: Replayed, after: Replayed) -> Iterator[str]:
    """The parts of the outcome that differ: verdict, category, suspects, confidence, alarm."""
    was, now = outcome(before), outcome(after)
    yield from (part for part in PARTS if was[part] != now[part])
    if _alarm_moves(before.alarm, after.alarm):
        yield "alarm"


def _alarm_moves(before: Alarm | None, after: Alarm | None) -> bool:
    """Whether an alarm comes, stays away or is raised at another time on what was recorded."""
    if before is None or after is None:
        return before is not after
    if before.earlier != after.earlier or before.is_raised is not after.is_raised:
        return True
    return before.is_raised and abs(before.confirmed - after.confirmed) >= ALARM_SECONDS


def item_changes(old: Ruleset, new: Ruleset) -> Iterator[ItemChange]:
    """The entries that differ, by kind and name, in the order of the new file."""
    yield from _differences("detect", _detect(old), _detect(new))
    yield from _differences("variable", _texts(old.variables), _texts(new.variables))
    yield from _differences("list", _lists(old.lists), _lists(new.lists))
    for kind, was, now in (("def", old.defs, new.defs), ("set", old.sets, new.sets)):
        yield from _differences(
            kind,
            {name: each.text for name, each in was.items()},
            {name: each.text for name, each in now.items()},
        )
    yield from _differences(
        "ignore",
        {group.text: group.text for group in old.ignore},
        {group.text: group.text for group in new.ignore},
    )
    yield from _entries("suppression", old.suppress, new.suppress)
    yield from _entries("rule", old.rules, new.rules)


def _differences(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[ItemChange]:
    for name in dict.fromkeys((*new, *old)):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield ItemChange(kind=kind, name=name, before=before, after=after)


def _entries(
    kind: str, old: Iterable[Rule | SuppressRule], new: Iterable[Rule | SuppressRule]
) -> Iterator[ItemChange]:
    """Rules or suppressions: a new or lost one as a whole, else key by key."""
    was, now = ({entry.id: _entry(entry) for entry in side} for side in (old, new))
    for id in dict.fromkeys((*now, *was)):
        if id not in was or id not in now:
            there = {side: keys[id]["when"] for side, keys in ((0, was), (1, now)) if id in keys}
            yield ItemChange(kind=kind, name=id, before=there.get(0), after=there.get(1))
        else:
            for change in _differences(kind, was[id], now[id]):
                yield ItemChange(
                    kind=kind,
                    name=f"{id} {change.name}",
                    before=change.before,
                    after=change.after,
                )
    both = [id for id in now if id in was]
    if both != [id for id in was if id in now]:
        yield ItemChange(kind=kind, name="order", before=None, after=None)


def _entry(entry: Rule | SuppressRule) -> dict[str, str]:
    """The keys of an entry as texts; what has its default is left out."""
    found = {}
    for key in fields(entry):
        value = getattr(entry, key.name)
        if key.name in ("id", "span") or not value:
            continue
        found[key.name] = value.text if hasattr(value, "text") else _text(value)
    return found


def _lists(lists: Mapping[str, FrameList]) -> dict[str, str]:
    return {name: "\n".join(entry.patterns) for name, entry in lists.items()}


def _detect(ruleset: Ruleset) -> dict[str, str]:
    config = ruleset.config.detect
    values = {key.name: getattr(config, key.name) for key in fields(config)}
    values |= {f"phases.{name}": value for name, value in values.pop("phases").items()}
    return {
        name: f"{value:g} s" if isinstance(value, float) else _text(value)
        for name, value in values.items()
    }


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if value is None:
        return "auto"
    return f"{value:g}" if isinstance(value, float) else str(value)
