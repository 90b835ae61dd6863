"""The names that conditions may use besides fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from whyhang.rules import ast
from whyhang.rules.fields import FIELDS, FieldType
from whyhang.rules.ruleset import VariableValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedVariable:
    """A variable of ``vars:`` with its type."""

    type: FieldType
    value: VariableValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """All that conditions may name besides fields.

    A definition or set that could not be parsed is None: its name exists all the same.
    """

    variables: Mapping[str, TypedVariable] = field(default_factory=dict)
    lists: Iterable[str] = ()
    defs: Mapping[str, ast.Expr | None] = field(default_factory=dict)
    sets: Mapping[str, ast.Group | None] = field(default_factory=dict)

    def elsewhere(self, name: str, what: str) -> str:
        """Says that the name exists, only as something else than ``what``; empty if it does not."""
        homes = {
            "defs": name in self.defs,
            "lists": name in self.lists,
            "sets": name in self.sets,
            "vars": name in self.variables,
            "fields": name in FIELDS,
        }
        home = next((home for home, holds in homes.items() if holds), "")
        if home == "vars":
            return f"`{name}` is one of vars: write `${name}`"
        return f"`{name}` is one of {home}, not a {what.split()[-1]}" if home else ""
