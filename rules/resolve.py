"""All that a ``hang.yaml`` and its packs come to, and where each item is from.

The text is a ``hang.yaml`` by itself: without includes it loads to the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from whyhang.rules.assemble import Assembly, Item, RawRule, assemble
from whyhang.rules.build import build
from whyhang.rules.findings import RuleErrors, with_sources
from whyhang.rules.fmt_expression import format_condition
from whyhang.rules.fmt_scalars import is_plain
from whyhang.rules.fmt_tree import RULE_KEYS, TOP_KEYS
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.sources import Source

SECTIONS = ("job", "progress", "detect", "collect", "topology", "on_hang", "store", "report")
DEFAULT = "default"
_SECONDS = (
    "timeout", "grace", "keep", "floor", "ceiling", "first_step", "warmup", "stall", "confirm",
    "max_age",
)  # fmt: skip
_AUTO = ("stall", "confirm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """One item: a condition or value as text, or parts of its own by key or in a row."""

    origin: str
    text: str = ""
    kind: str = "value"  # or: expr, group, map, row
    parts: tuple[tuple[str, Resolved], ...] = ()


def resolve(source: Source, overrides: Mapping[str, str]) -> Resolved:
    """Everything in the order of ``hang.yaml``. Raises RuleErrors where there are errors."""
    assembly = assemble(source)
    ruleset, findings = build(assembly, overrides)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        lines = {document.file: document.lines for document in assembly.documents}
        raise RuleErrors(with_sources(errors, lines))
    sections = {**_rules(assembly, ruleset, overrides), **dict(_sections(assembly, ruleset))}
    found = ((name, sections[name]) for name in TOP_KEYS if name in sections)
    return Resolved(origin="", kind="map", parts=tuple(found))


def _rules(
    assembly: Assembly, ruleset: Ruleset, overrides: Mapping[str, str]
) -> dict[str, Resolved]:
    file = assembly.documents[0].file
    variables = [
        (name, Resolved(origin="--set", text=overrides[name]))
        if name in overrides
        else (name, _value(item))
        for name, item in assembly.vars.items()
    ]
    lists = []
    for name, raw in assembly.lists.items():
        patterns = Resolved(
            origin=_origin(raw.span),
            kind="row",
            parts=tuple(("", _value(item)) for item in raw.patterns),
        )
        why = [("why", Resolved(origin=_origin(raw.span), text=raw.why))] if raw.why else []
        lists.append((name, _map(_origin(raw.span), [*why, ("patterns", patterns)])))
    refines = {rule.id: rule.refines for rule in ruleset.rules}
    return {
        "version": Resolved(origin=file, text="1"),
        "include": Resolved(origin=file, kind="row"),
        "vars": _map("", variables),
        "lists": _map("", lists),
        "defs": _map("", [(name, _value(item, "expr")) for name, item in assembly.defs.items()]),
        "sets": _map("", [(name, _value(item, "group")) for name, item in assembly.sets.items()]),
        "ignore": _row(_value(item, "group") for item in assembly.ignore),
        "suppress": _row(_rule(raw, ()) for raw in assembly.suppress.values()),
        "rules": _row(_rule(raw, refines.get(raw.id, ())) for raw in assembly.rules.values()),
    }


def _rule(raw: RawRule, refines: tuple[str, ...]) -> Resolved:
    parts = [("id", Resolved(origin=_origin(raw.span), text=raw.id))]
    for name in RULE_KEYS:
        item = raw.fields.get(name)
        if item is None:
            continue
        if name == "refines":
            rows = (Resolved(origin=_origin(item.span), text=each) for each in refines)
            parts.append((name, _row(rows, _origin(item.span))))
        else:
            parts.append((name, _value(item, {"when": "expr", "suspects": "group"}.get(name, ""))))
    if raw.disabled:
        parts.append(("disabled", Resolved(origin=_origin(raw.span), text="true")))
    return _map(_origin(raw.span), parts)


def _sections(assembly: Assembly, ruleset: Ruleset) -> Iterator[tuple[str, Resolved]]:
    top = Item(document=assembly.documents[0], path=()).mapping()
    defaults: dict[str, Any] = asdict(ruleset.config)
    # Where it stands is no setting.
    del defaults["topology"]["place"]
    notify = {name: defaults["on_hang"].pop(f"notify_{name}") for name in ("run", "post")}
    if "notify" in (top["on_hang"].mapping() if "on_hang" in top else {}):
        defaults["on_hang"]["notify"] = notify
    for name in SECTIONS:
        given = top[name].mapping() if name in top else {}
        parts = []
        for key, value in defaults[name].items():
            if key in given:
                parts.append((key, _value(given[key])))
            elif value is not None or key in _AUTO:
                parts.append((key, _default(key, value)))
        if parts:
            yield name, _map("", parts)


def _default(key: str, value: object) -> Resolved:
    if isinstance(value, dict):
        return _map(DEFAULT, [(name, _default(key, each)) for name, each in value.items()])
    if isinstance(value, list | tuple):
        return _row((_default("", each) for each in value), DEFAULT)
    text = "auto" if value is None else str(value)
    if key in _SECONDS and isinstance(value, int | float):
        text = f"{value:g}s" if value < 1e6 else f"{value / 86400:g}d"
    return Resolved(origin=DEFAULT, text=text)


def _value(item: Item, kind: str = "") -> Resolved:
    origin = _origin(item.span)
    if isinstance(item.value, dict):
        return _map(origin, [(name, _value(each)) for name, each in item.mapping().items()])
    if isinstance(item.value, list):
        return _row((_value(each) for each in item.sequence()), origin)
    text = "null" if item.value is None else item.text
    return Resolved(origin=origin, text=text, kind=kind or "value")


def _map(origin: str, parts: Iterable[tuple[str, Resolved]]) -> Resolved:
    return Resolved(origin=origin, kind="map", parts=tuple(parts))


def _row(parts: Iterable[Resolved], origin: str = "") -> Resolved:
    return Resolved(origin=origin, kind="row", parts=tuple(("", part) for part in parts))


def _origin(span: Any) -> str:
    return f"{span.file}:{span.line}"


# --- as text and JSON -------------------------------------------------------------------------


def resolved_lines(resolved: Resolved) -> Iterator[str]:
    """The items as a ``hang.yaml``, each with its origin in a comment."""
    for name, part in resolved.parts:
        if part.kind == "value" or part.parts or name in ("include", "rules"):
            yield from _lines(f"{name}:", part, "")


def _lines(head: str, item: Resolved, indent: str) -> Iterator[str]:
    said = f"  # {item.origin}" if item.origin else ""
    if item.kind in ("expr", "group"):
        lines = format_condition(item.text, chain=item.kind == "expr")
        if len(lines) == 1 and is_plain(lines[0]):
            yield f"{indent}{head} {lines[0]}{said}"
        else:
            yield f"{indent}{head} |{said}"
            yield from (f"{indent}  {line}" for line in lines)
    elif item.kind == "value":
        yield f"{indent}{head} {_scalar(item.text)}{said}"
    elif not item.parts:
        yield f"{indent}{head} {'[]' if item.kind == 'row' else '{}'}{said}"
    elif item.kind == "row":
        yield f"{indent}{head}"
        for _, part in item.parts:
            if part.kind == "map":
                yield from _item(part, f"{indent}  ")
            else:
                yield from _lines("-", part, f"{indent}  ")
    else:
        yield f"{indent}{head}"
        for name, part in item.parts:
            yield from _lines(f"{_scalar(name)}:", part, f"{indent}  ")


def _item(item: Resolved, indent: str) -> Iterator[str]:
    """A mapping in a row: its first key stands beside the dash."""
    inner = f"{indent}  "
    lines = [line for name, part in item.parts for line in _lines(f"{name}:", part, inner)]
    yield f"{indent}- {lines[0][len(inner) :]}"
    yield from lines[1:]


def _scalar(text: str) -> str:
    return text if is_plain(text) and "#" not in text else json.dumps(text, ensure_ascii=False)


def resolved_json(resolved: Resolved) -> object:
    """The items as plain data: ``value`` and ``origin`` each."""
    if resolved.kind == "map":
        return {name: resolved_json(part) for name, part in resolved.parts}
    if resolved.kind == "row":
        return [resolved_json(part) for _, part in resolved.parts]
    return {"value": resolved.text.rstrip("\n"), "origin": resolved.origin}
