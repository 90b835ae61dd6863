"""The names that conditions may use besides fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from whyhang.rules import ast
from whyhang.rules.fields import FieldType
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
