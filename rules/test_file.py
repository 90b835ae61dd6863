"""Reads test files of rules: YAML -> tests, with a finding for all that is wrong.

Codes: H501 unknown rule, H502 a value that a test cannot have, H503 a file that cannot be read,
H504 two tests of one name, H505 an accepted mutant that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from whyhang.rules.assemble import Item
from whyhang.rules.document import Document, read_document
from whyhang.rules.findings import Finding, RuleErrors, sorted_findings, with_sources
from whyhang.rules.sources import Source, is_builtin, read_source
from whyhang.rules.test_cases import Accepted, Expectation, RuleTest, RuleTestFile
from whyhang.rules.test_facts import FactReader
from whyhang.rules.test_inline import gather, is_rule_file
from whyhang.rules.test_world import WorldReader
from whyhang.rules.validate import validate

SCHEMA = "hang_test.v1.json"
_TEXTS = (
    "rule",
    "result",
    "verdict",
    "category",
    "confidence",
    "winner",
    "message",
    "position",
    "groups",
)


def read_test_file(path: Path) -> RuleTestFile:
    """The tests of a file. Raises UsageError if it cannot be read, RuleErrors for its faults."""
    return parse_test_file(read_source(path))


def parse_test_file(source: Source) -> RuleTestFile:
    """The tests that a source holds: a test file, or a rule file with tests beside its rules.

    Raises RuleErrors with all that is wrong.
    """
    document = read_document(source.text, source.name)
    findings = list(document.findings)
    if is_rule_file(document):
        document = gather(document, source.name.rpartition("/")[2])
    if not findings:
        findings = list(validate(document, SCHEMA))
    if findings:
        raise _errors(findings, document)
    reader = _Reader(document, source.directory or Path())
    file = reader.file()
    if reader.facts.findings:
        raise _errors(reader.facts.findings, document)
    return file


def _errors(findings: Iterable[Finding], document: Document) -> RuleErrors:
    lines = {document.file: document.lines}
    return RuleErrors(with_sources(sorted_findings(findings), lines))


class _Reader:
    def __init__(self, document: Document, directory: Path) -> None:
        self.document = document
        self.directory = directory
        self.top = Item(document=document, path=()).mapping()
        self.facts = FactReader(self.top["stacks"].mapping() if "stacks" in self.top else {})
        self.worlds = WorldReader(
            self.facts, self.top["defaults"].mapping() if "defaults" in self.top else {}
        )

    def file(self) -> RuleTestFile:
        rules = self.top["rules"]
        tests = tuple(self.test(item) for item in self.top["tests"].sequence())
        self.names(tests)
        return RuleTestFile(
            file=self.document.file,
            rules=rules.text if is_builtin(rules.text) else self.directory / rules.text,
            rules_span=rules.span,
            tests=tests,
            accept=tuple(self.accepted()),
            lines=self.document.lines,
        )

    def names(self, tests: Iterable[RuleTest]) -> None:
        seen: set[str] = set()
        for test in tests:
            if test.name in seen:
                message = f"there is a test `{test.name}` already"
                self.facts.findings.append(Finding(code="H504", message=message, span=test.span))
            seen.add(test.name)

    def accepted(self) -> Iterable[Accepted]:
        for item in self.top["accept"].sequence() if "accept" in self.top else []:
            parts = item.mapping()
            yield Accepted(
                mutant=parts["mutant"].text, why=parts["why"].text, span=parts["mutant"].span
            )

    def test(self, item: Item) -> RuleTest:
        parts = item.mapping()
        world = self.worlds.world(parts)
        recorded = parts.get("incident")
        if recorded is not None:
            self.alone(parts)
        last = world.moments[-1] if world.moments else 0.0
        end = None if recorded is not None else last
        return RuleTest(
            name=parts["name"].text,
            span=parts["name"].span,
            world=world if recorded is None else self.directory / recorded.text,
            expect=tuple(self.expectation(one, end) for one in parts["expect"].sequence()),
            todo="todo" in parts and parts["todo"].value is True,
        )

    def alone(self, parts: Mapping[str, Item]) -> None:
        """A recorded incident is its whole world."""
        for name, item in parts.items():
            if name not in ("name", "incident", "expect", "todo"):
                self.facts.fault(f"`{name}` has no effect beside `incident`", item)

    def expectation(self, item: Item, end: float | None) -> Expectation:
        parts = item.mapping()
        at = self.facts.duration(parts.get("at"))
        if at is not None and (end is None or at > end):
            span = "a recorded incident is judged as a whole" if end is None else f"{end:g} s long"
            self.facts.fault(f"`{parts['at'].text}` is beyond the timeline: {span}", parts["at"])
        values: dict[str, Any] = {name: parts[name].text for name in _TEXTS if name in parts}
        if "rule" not in parts:
            for name in ("result", "because"):
                if name in parts:
                    self.facts.fault(f"`{name}` needs a `rule` to be about", parts[name])
        if parts.keys() <= {"at"}:
            self.facts.fault("this expects nothing", item, f"known: {', '.join(_TEXTS)}, suspects")
        none = parts["none"].value if "none" in parts else None
        return Expectation(
            span=item.span,
            at=at,
            because=tuple(one.text for one in parts["because"].sequence())
            if "because" in parts
            else (),
            suspects=self.facts.ranks(parts.get("suspects")),
            none=cast("bool | None", none),
            **values,
        )
