"""The syntax tree of the expression language. Names follow the grammar's aliases.

An expression (``Expr``) is a yes/no question; a group (``Group``) is a set of ranks, nodes,
processes or threads. Every node knows where it stands (``span``) and its source text (``text``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from whyhang.schemas.evidence import Span

Kind = Literal["rank", "node", "process", "thread", "child"]
Quantifier = Literal["any", "all", "none", "most", "at_least", "at_most", "exactly"]
Comparison = Literal["==", "!=", "<=", ">=", "<", ">"]
# The same comparison with its sides exchanged.
MIRRORED: Mapping[Comparison, Comparison] = {
    "==": "==", "!=": "!=", "<=": ">=", ">=": "<=", "<": ">", ">": "<",
}  # fmt: skip
LiteralType = Literal["int", "float", "percent", "duration", "string"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every syntax node has."""

    span: Span
    text: str


_PARTS: dict[type, tuple[str, ...]] = {}


def parts_of(node: Node) -> tuple[str, ...]:
    """The names of what a node says, without where it stands."""
    kind = type(node)
    if kind not in _PARTS:
        names = (each.name for each in fields(node))
        _PARTS[kind] = tuple(name for name in names if name not in ("span", "text"))
    return _PARTS[kind]


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal_(Node):
    """A literal. Durations are seconds, percentages fractions of 1 (``90%`` is 0.9)."""

    type: LiteralType
    value: float | int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(Node):
    """``$name``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Node):
    """A dotted name used as a value: ``proc.state``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Node):
    """``count(GROUP)``."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Node):
    """``share(GROUP)``: the group as a fraction of all members of its kind."""

    group: Group


Value: TypeAlias = Literal_ | Variable | Field | Count | Share


# --- names of frames and strings ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRef(Node):
    """The name of a list in ``lists:``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strings(Node):
    """``["a", "b"]``."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob(Node):
    """A frame pattern in quotes."""

    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex(Node):
    """``/pattern/`` without the slashes."""

    pattern: str


# --- groups -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Node):
    """``ranks``, ``nodes``, …: all members of a kind."""

    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered(Node):
    """``ranks that are PRED``."""

    kind: Kind
    predicate: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Node):
    """The name of a set in ``sets:``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Except(Node):
    """``GROUP except GROUP``."""

    group: Group
    without: Group


Group: TypeAlias = Everything | Filtered | Named | Except


# --- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Or(Node):
    """``a or b or c``: a chain is one node."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class And(Node):
    """``a and b and c``: a chain is one node."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Node):
    """``not a``."""

    part: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Node):
    """``test for 2m``: true in every sample of a window that spans the duration."""

    part: Expr
    duration: Literal_ | Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(Node):
    """``at least 90% of ranks are PRED``; ``amount`` only for the three counting quantifiers."""

    quantifier: Quantifier
    group: Group
    predicate: Expr
    amount: Literal_ | Variable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agree(Node):
    """``all ranks agree on top.function``."""

    quantifier: Quantifier
    group: Group
    field: Field
    amount: Literal_ | Variable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(Node):
    """``value CMP value``."""

    left: Value
    op: Comparison
    right: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class In(Node):
    """``value in names``; ``negated`` for ``not in``."""

    value: Value
    names: ListRef | Strings
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Has(Node):
    """``stack has pattern``: any frame of the stack matches."""

    field: Field
    pattern: ListRef | Glob | Regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches(Node):
    """``proc.wchan matches /nfs|rpc/``."""

    field: Field
    pattern: Regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged(Node):
    """``stack unchanged for 10s``."""

    field: Field
    duration: Literal_ | Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Node):
    """``x is known``; ``negated`` for ``x is unknown``."""

    field: Field
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref(Node):
    """A bare name: a boolean field, or a definition in ``defs:``."""

    name: str


Expr: TypeAlias = (
    Or
    | And
    | Not
    | Held
    | Quantified
    | Agree
    | Compare
    | In
    | Has
    | Matches
    | Unchanged
    | Known
    | Ref
)
