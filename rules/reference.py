"""The generated parts of ``docs/rules.md``: its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from whyhang.rules.codes import CODES
from whyhang.rules.constructs import CONSTRUCTS
from whyhang.rules.fields import EVENT_KINDS, FIELDS, SCOPES, Scope
from whyhang.rules.message_names import MESSAGE_NAMES
from whyhang.rules.schema_reference import (
    expectation_rows,
    fact_rows,
    rule_rows,
    setting_rows,
    test_rows,
)
from whyhang.rules.wording import TYPE_WORDS


def scope_words(scopes: Sequence[Scope]) -> str:
    """Of whom a field can be asked, in a few words."""
    if set(scopes) == set(SCOPES):
        return "anywhere"
    return ", ".join(scopes)


def field_table() -> Iterator[str]:
    """The fields as a Markdown table."""
    yield from _head("field", "type", "asked of", "answer")
    for info in FIELDS.values():
        if info.name.startswith("event."):
            continue
        values = f": {', '.join(f'`{value}`' for value in info.values)}" if info.values else ""
        yield _row(f"`{info.name}`", info.type, scope_words(info.scopes), info.doc + values)


def event_table() -> Iterator[str]:
    """The kinds of log and kernel lines as a Markdown table."""
    yield from _head("field", "true where")
    for kind in EVENT_KINDS:
        yield _row(f"`event.{kind}`", FIELDS[f"event.{kind}"].doc)


def type_table() -> Iterator[str]:
    """The types as a Markdown table."""
    yield from _head("type", "meaning")
    for name, words in TYPE_WORDS.items():
        yield _row(f"`{name}`", words)


def construct_table() -> Iterator[str]:
    """What conditions are made of, as a Markdown table."""
    yield from _head("write", "true where")
    for each in CONSTRUCTS:
        yield _row(f"`{each.example}`", each.meaning)


def code_table() -> Iterator[str]:
    """The codes of findings as a Markdown table."""
    yield from _head("code", "severity", "about")
    for each in CODES:
        yield _row(each.code, each.severity, each.about)


def message_table() -> Iterator[str]:
    """The names that a message may use, as a Markdown table."""
    yield from _head("name", "value")
    for name, words in MESSAGE_NAMES.items():
        yield _row(f"`{name}`", words)


def key_table(rows: Callable[[], Iterable[tuple[str, str]]]) -> Iterator[str]:
    """The keys of a part of a file as a Markdown table."""
    yield from _head("key", "what")
    for key, words in rows():
        yield _row(f"`{key}`", words)


SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "constructs": construct_table,
    "types": type_table,
    "fields": field_table,
    "events": event_table,
    "messages": message_table,
    "codes": code_table,
    "rules": partial(key_table, rule_rows),
    "settings": partial(key_table, setting_rows),
    "tests": partial(key_table, test_rows),
    "facts": partial(key_table, fact_rows),
    "expectations": partial(key_table, expectation_rows),
}


def fill(text: str) -> str:
    """A page with what stands between its markers made anew."""
    for name, make in SECTIONS.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no place for {name}")
        table = "\n".join(make())
        text = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return text


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield "|" + "---|" * len(names)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
