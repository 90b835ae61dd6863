"""Texts -> checked syntax trees: the second half of loading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

from whyhang.rules import ast
from whyhang.rules.assemble import Assembly, Item, RawRule
from whyhang.rules.check import Checker
from whyhang.rules.config import build_config
from whyhang.rules.fields import FIELDS
from whyhang.rules.findings import Finding, RuleErrors
from whyhang.rules.grammar import keywords
from whyhang.rules.lint import lint
from whyhang.rules.lint_input import LintInput
from whyhang.rules.lint_time import lint_unbounded
from whyhang.rules.names import Names, TypedVariable
from whyhang.rules.parse import has_comment, parse_expr, parse_group
from whyhang.rules.patterns import is_regex
from whyhang.rules.place import Place
from whyhang.rules.quantities import DURATION, parse_duration
from whyhang.rules.ruleset import FrameList, Rule, Ruleset, SuppressRule
from whyhang.rules.sources import is_builtin
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.variables import read_variable, with_overrides
from whyhang.schemas.config import Config
from whyhang.schemas.evidence import Span
from whyhang.schemas.verdict import CATEGORIES, CONFIDENCES, VERDICTS

T = TypeVar("T")

# The frames that a position is never in; the engine asks for this list by name.
TRANSPARENT = "transparent"


def build(
    assembly: Assembly, overrides: Mapping[str, str], *, lints: bool = False
) -> tuple[Ruleset, list[Finding]]:
    """The rules, and all that is wrong; with errors among it the rules are only a part.

    Of the lints only those that are errors are looked for, unless ``lints`` asks for all.
    """
    builder = _Builder(assembly, overrides)
    ruleset, findings = builder.build()
    if not any(finding.severity == "error" for finding in findings):
        findings.extend(builder.lint(ruleset, lints))
    return ruleset, findings


class _Builder:
    def __init__(self, assembly: Assembly, overrides: Mapping[str, str]) -> None:
        self.assembly = assembly
        self.findings = list(assembly.findings)
        self.disabled: list[ast.Node] = []
        variables = {
            name: read_variable(item.value, item.text) for name, item in assembly.vars.items()
        }
        self.variables: dict[str, TypedVariable] = with_overrides(variables, overrides)
        self.defs = {name: self.parse(item, parse_expr) for name, item in assembly.defs.items()}
        self.sets = {name: self.parse(item, parse_group) for name, item in assembly.sets.items()}
        self.checker = Checker(
            Names(
                variables=self.variables,
                lists=tuple(assembly.lists),
                defs=self.defs,
                sets=self.sets,
            )
        )

    def build(self) -> tuple[Ruleset, list[Finding]]:
        self.reserved_names()
        self.list_patterns()
        self.checker.check_definitions()
        ignored = map(self.ignored, self.assembly.ignore)
        ignore: tuple[ast.Group, ...] = tuple(group for group in ignored if group is not None)
        suppress = tuple(self.present(map(self.suppression, self.active(self.assembly.suppress))))
        rules = tuple(self.present(map(self.rule, self.active(self.assembly.rules))))
        self.findings.extend(self.checker.findings)
        if self.assembly.incomplete:
            # What is unknown here may well stand in the file that could not be read.
            self.findings = [one for one in self.findings if one.code not in ("H201", "H402")]
        ruleset = Ruleset(
            config=self.config(),
            variables={name: variable.value for name, variable in self.variables.items()},
            lists={name: self.frame_list(name) for name in self.assembly.lists},
            defs={name: body for name, body in self.defs.items() if body is not None},
            sets={name: body for name, body in self.sets.items() if body is not None},
            ignore=ignore,
            suppress=suppress,
            rules=rules,
        )
        return ruleset, self.findings

    def lint(self, ruleset: Ruleset, everything: bool) -> list[Finding]:
        given = LintInput(
            assembly=self.assembly,
            ruleset=ruleset,
            scopes=self.checker.def_scopes,
            disabled=tuple(self.disabled),
        )
        if everything:
            return list(lint(given))
        return [one for one in lint_unbounded(given) if one.severity == "error"]

    # --- names -------------------------------------------------------------------------------

    def reserved_names(self) -> None:
        for what, items in (("def", self.assembly.defs), ("set", self.assembly.sets)):
            for name, item in items.items():
                if name in keywords():
                    self.fault("H209", f"`{name}` is a word of the language", item.key_span)
                elif what == "def" and name in FIELDS:
                    self.fault("H209", f"`{name}` is a field already", item.key_span)
        for name, raw in self.assembly.lists.items():
            if name in keywords():
                self.fault("H209", f"`{name}` is a word of the language", raw.span)

    def list_patterns(self) -> None:
        for raw in self.assembly.lists.values():
            for item in raw.patterns:
                if is_regex(item.text):
                    try:
                        re.compile(item.text[1:-1])
                    except re.error as error:
                        self.fault("H211", f"not a regular expression: {error}", item.span)

    def frame_list(self, name: str) -> FrameList:
        raw = self.assembly.lists[name]
        return FrameList(
            name=name,
            patterns=tuple(item.text for item in raw.patterns),
            why=raw.why,
            frames=name in self.checker.frame_lists or name == TRANSPARENT,
            span=raw.span,
        )

    # --- rules -------------------------------------------------------------------------------

    def active(self, rules: Mapping[str, RawRule]) -> list[RawRule]:
        """All rules, disabled ones too: those are checked, and dropped after."""
        return list(rules.values())

    def ignored(self, item: Item) -> ast.Group | None:
        group = self.parse(item, parse_group)
        if group is not None:
            self.checker.check_group(group, ("process", "thread", "child"), "what is ignored")
        return group

    def suppression(self, raw: RawRule) -> SuppressRule | None:
        when = self.condition(raw)
        if when is None or raw.disabled:
            return None
        return SuppressRule(
            id=raw.id,
            when=when,
            summary=_text(raw, "summary"),
            category=_choice(raw, "category", CATEGORIES, "other"),
            span=raw.span,
        )

    def rule(self, raw: RawRule) -> Rule | None:
        when = self.condition(raw)
        suspects = self.suspects(raw)
        refines = tuple(self.refined(raw))
        self.message(raw)
        if when is None or raw.disabled or "verdict" not in raw.fields:
            return None
        keep = _text(raw, "keep")
        priority = raw.fields["priority"].value if "priority" in raw.fields else 0
        labels = raw.fields["labels"].mapping() if "labels" in raw.fields else {}
        return Rule(
            id=raw.id,
            when=when,
            verdict=_choice(raw, "verdict", VERDICTS, "inconclusive"),
            category=_choice(raw, "category", CATEGORIES, "other"),
            confidence=_choice(raw, "confidence", CONFIDENCES, "high"),
            suspects=suspects,
            refines=refines,
            priority=priority if isinstance(priority, int) else 0,
            summary=_text(raw, "summary"),
            message=_text(raw, "message"),
            runbook=_text(raw, "runbook"),
            severity=_text(raw, "severity"),
            keep=parse_duration(keep) if DURATION.match(keep) else None,
            labels={name: item.text for name, item in labels.items()},
            span=raw.span,
        )

    def condition(self, raw: RawRule) -> ast.Expr | None:
        item = raw.fields.get("when")
        if item is None:
            return None
        when = self.parse(item, parse_expr)
        if when is None:
            return None
        self.checker.check_condition(when)
        if raw.disabled:
            self.disabled.append(when)
        held = raw.fields.get("for")
        if held is None or not DURATION.match(held.text):
            return when
        duration = ast.Literal_(
            span=held.span, text=held.text, type="duration", value=parse_duration(held.text)
        )
        text = f"({when.text}) for {held.text}"
        return ast.Held(span=when.span, text=text, part=when, duration=duration)

    def suspects(self, raw: RawRule) -> ast.Group | None:
        item = raw.fields.get("suspects")
        group = None if item is None else self.parse(item, parse_group)
        if group is not None:
            self.checker.check_group(group, ("rank", "node"), "suspects")
            if raw.disabled:
                self.disabled.append(group)
        return group

    def refined(self, raw: RawRule) -> Iterable[str]:
        item = raw.fields.get("refines")
        for one in [] if item is None else item.sequence():
            known = self.assembly.rules
            # Inside a pack its own rules go by their bare names.
            name = raw.prefix + one.text if raw.prefix + one.text in known else one.text
            if name not in known:
                help = did_you_mean(one.text, known)
                self.fault("H201", f"unknown rule `{one.text}`", one.span, help)
            elif name == raw.id:
                self.fault("H204", f"`{raw.id}` refines itself", one.span)
            else:
                yield name

    def message(self, raw: RawRule) -> None:
        item = raw.fields.get("message")
        # Those of packs that ship with whyhang are checked by its tests.
        if item is None or is_builtin(item.document.file):
            return
        from whyhang.rules.messages import message_faults  # jinja2 only where a message is

        for reason, line in message_faults(item.text):
            starts = [0, *(match.end() for match in re.finditer("\n", item.text))]
            start = starts[min(max(line, 1), len(starts)) - 1]
            end = item.text.find("\n", start)
            span = item.place.span(item.text, start, len(item.text) if end < 0 else end)
            self.findings.append(Finding(code="H203", message=f"message: {reason}", span=span))

    # --- the rest ----------------------------------------------------------------------------

    def config(self) -> Config:
        if any(finding.severity == "error" for finding in self.findings):
            return Config()
        return build_config(Item(document=self.assembly.documents[0], path=()).mapping())

    def parse(self, item: Item, parse: Callable[[str, Place], T]) -> T | None:
        if not isinstance(item.value, str):
            return None  # the schema has said so already
        place = item.place
        if not place.exact:
            self.unmapped(item)
        try:
            return parse(item.text, place)
        except RuleErrors as error:
            self.findings.extend(error.findings)
            return None

    def unmapped(self, item: Item) -> None:
        # A folded text is one line: a comment in it would swallow all that follows.
        swallowed = has_comment(item.text)
        self.findings.append(
            Finding(
                code="H013",
                severity="error" if swallowed else "warning",
                message="a comment in this condition hides all that follows it"
                if swallowed
                else "errors in this condition cannot be shown where they are",
                span=item.key_span,
                help="write conditions of several lines as a block: `key: |`",
            )
        )

    def fault(self, code: str, message: str, span: Span, help: str = "") -> None:
        self.findings.append(Finding(code=code, message=message, span=span, help=help))

    def present(self, items: Iterable[T | None]) -> Iterable[T]:
        return (item for item in items if item is not None)


def _text(raw: RawRule, name: str) -> str:
    return raw.fields[name].text if name in raw.fields else ""


def _choice(raw: RawRule, name: str, values: tuple[T, ...], default: T) -> T:
    text = _text(raw, name)
    return cast("T", text) if text in values else default
