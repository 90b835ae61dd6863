"""What the lints look at, and the words they use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from whyhang.rules import ast
from whyhang.rules.assemble import Assembly, RawRule
from whyhang.rules.fields import Scope
from whyhang.rules.findings import Finding, Severity
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.sources import is_builtin
from whyhang.schemas.evidence import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LintInput:
    """Rules without errors: as text (``assembly``) and as trees (``ruleset``).

    ``scopes`` says of whom each definition can be asked, ``disabled`` holds the conditions of
    rules that are switched off.
    """

    assembly: Assembly
    ruleset: Ruleset
    scopes: Mapping[str, tuple[Scope, ...]]
    disabled: tuple[ast.Node, ...] = ()

    @property
    def file(self) -> str:
        """The file that is checked; what it includes comes after."""
        return self.assembly.documents[0].file

    def packs(self) -> Collection[str]:
        """The files that are packs."""
        return {
            document.file
            for document in self.assembly.documents
            if isinstance(document.data, dict) and "pack" in document.data
        }

    def is_own(self, span: Span) -> bool:
        """Whether a place is in what is checked, not in a pack that ships with whyhang.

        What a file changes in such a pack must not be held against the pack.
        """
        return not is_builtin(span.file) or span.file == self.file

    def conditions(self) -> Iterator[tuple[ast.Expr | ast.Group, Scope]]:
        """Every expression and group of our own, each once, with what it is asked of."""
        return ((each, scope) for each, scope in self._all() if self.is_own(each.span))

    def _all(self) -> Iterator[tuple[ast.Expr | ast.Group, Scope]]:
        for name, body in self.ruleset.defs.items():
            scopes = self.scopes.get(name, ("job",))
            yield body, "job" if "job" in scopes else scopes[0]
        for group in (*self.ruleset.sets.values(), *self.ruleset.ignore):
            yield group, "job"
        for when in self.whens():
            yield when, "job"
        for rule in self.ruleset.rules:
            if rule.suspects is not None:
                yield rule.suspects, "job"

    def whens(self) -> Iterator[ast.Expr]:
        """The conditions of all suppressions and rules."""
        yield from (each.when for each in self.ruleset.suppress)
        yield from (each.when for each in self.ruleset.rules)

    def seconds(self, node: ast.Literal_ | ast.Variable) -> float:
        """The length of a duration."""
        value = self.value(node)
        return float(value) if isinstance(value, int | float) else 0.0

    def value(self, node: ast.Literal_ | ast.Variable) -> bool | int | float | str:
        """The value of a literal or variable."""
        return node.value if isinstance(node, ast.Literal_) else self.ruleset.variables[node.name]

    def key_span(self, raw: RawRule, name: str) -> Span:
        """Where a key's value of a rule stands; where the rule's id stands if it has none."""
        return raw.fields[name].span if name in raw.fields else raw.span


def lint_finding(
    code: str, message: str, span: Span, help: str = "", severity: Severity = "warning"
) -> Finding:
    """A finding of a lint: a warning unless said otherwise."""
    return Finding(code=code, message=message, span=span, help=help, severity=severity)
