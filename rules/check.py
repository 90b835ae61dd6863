"""Names and types of conditions (H2xx): every name must exist, and mean what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from whyhang.rules import ast
from whyhang.rules.cycles import cycles
from whyhang.rules.fields import FIELDS, GROUPS_IN_SCOPE, SCOPES, FieldInfo, FieldType, Scope
from whyhang.rules.findings import Finding
from whyhang.rules.names import Names
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.wording import (
    EXAMPLES,
    PLURAL,
    TYPE_WORDS,
    elsewhere,
    no_group,
    question,
    which_group,
    whose,
)

Type = FieldType | None  # None: unknown, because something else is wrong already

_NUMBERS = ("int", "num")
_LITERAL_TYPES: Mapping[ast.LiteralType, FieldType] = {
    "int": "int",
    "float": "num",
    "percent": "percent",
    "duration": "duration",
    "string": "str",
}


class Checker:
    """Checks conditions against the names of one set of rules; collects ``findings``."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.findings: list[Finding] = []
        self.def_scopes: dict[str, tuple[Scope, ...]] = {}
        self.frame_lists: set[str] = set()
        self.text_lists: set[str] = set()
        self._open: list[str] = []
        self._open_sets: list[str] = []
        self._sets: dict[tuple[str, Scope], tuple[ast.Kind | None, bool]] = {}

    # --- entry points ------------------------------------------------------------------------

    def check_condition(self, expr: ast.Expr) -> None:
        """Check the ``when:`` of a rule or suppression."""
        self.expr(expr, "job")

    def check_group(self, group: ast.Group, kinds: tuple[ast.Kind, ...], what: str) -> None:
        """Check a group of the whole job, whose members must be of one of ``kinds``."""
        kind = self.group(group, "job")
        if kind is not None and kind not in kinds:
            self.add(
                "H208",
                f"{what} must be {' or '.join(PLURAL[one] for one in kinds)}, not {PLURAL[kind]}",
                group,
            )

    def check_definitions(self) -> None:
        """Check every definition and set, used or not."""
        for name in self.names.defs:
            self.scopes_of(name)
        for set_ in self.names.sets.values():
            if set_ is not None:
                self.within(set_)
        self.findings.extend(cycles(self.names.defs, self.names.sets))

    def within(self, group: ast.Group) -> None:
        """Check a named set: it must mean something in the job or inside a node."""
        self.findings.extend(_fewest(self.attempt(group, scope) for scope in SCOPES))

    def scopes_of(self, name: str) -> tuple[Scope, ...]:
        """Of whom a definition can be asked: the scopes in which all its fields exist."""
        if name in self.def_scopes:
            return self.def_scopes[name]
        body = self.names.defs[name]
        if body is None or name in self._open:
            return SCOPES  # reported elsewhere: a syntax error, or a circle
        self._open.append(name)
        tries = {scope: self.attempt(body, scope) for scope in SCOPES}
        self._open.pop()
        scopes = tuple(scope for scope, found in tries.items() if not any(map(_about_scope, found)))
        for found in tries.values():
            self.findings.extend(one for one in found if not _about_scope(one))
        if not scopes:
            self.findings.extend(_fewest(tries.values()))
        # A definition that fits nowhere is reported once, not again at each use.
        self.def_scopes[name] = scopes or SCOPES
        return self.def_scopes[name]

    def attempt(self, node: ast.Expr | ast.Group, scope: Scope) -> list[Finding]:
        """The findings of a node in one scope, kept apart."""
        kept, self.findings = self.findings, []
        if isinstance(node, ast.Everything | ast.Filtered | ast.Named | ast.Except):
            self.group(node, scope)
        else:
            self.expr(node, scope)
        found, self.findings = self.findings, kept
        return found

    def add(self, code: str, message: str, node: ast.Node, help: str = "") -> None:
        self.findings.append(Finding(code=code, message=message, span=node.span, help=help))

    # --- expressions -------------------------------------------------------------------------

    def expr(self, node: ast.Expr, scope: Scope) -> None:
        if isinstance(node, ast.And | ast.Or):
            for part in node.parts:
                self.expr(part, scope)
        elif isinstance(node, ast.Not):
            self.expr(node.part, scope)
        elif isinstance(node, ast.Held):
            self.expr(node.part, scope)
            self.duration(node.duration)
        elif isinstance(node, ast.Quantified):
            self.amount(node.amount)
            kind = self.group(node.group, scope)
            if kind is not None:
                self.expr(node.predicate, kind)
        elif isinstance(node, ast.Agree):
            self.amount(node.amount)
            kind = self.group(node.group, scope)
            if kind is not None:
                self.field(node.field, kind)
        elif isinstance(node, ast.Compare):
            self.compare(node, scope)
        elif isinstance(node, ast.In):
            self.membership(node, scope)
        elif isinstance(node, ast.Has):
            self.has(node, scope)
        elif isinstance(node, ast.Matches):
            self.expect(node.field, scope, ("str",), "`matches` is about text")
            self.regex(node.pattern)
        elif isinstance(node, ast.Unchanged):
            self.unchanged(node, scope)
        elif isinstance(node, ast.Known):
            self.field(node.field, scope)
        else:
            self.ref(node, scope)

    def ref(self, node: ast.Ref, scope: Scope) -> None:
        name = node.name
        if name in self.names.defs:
            scopes = self.scopes_of(name)
            if scope not in scopes:
                self.add(
                    "H205",
                    elsewhere(name, scopes, scope),
                    node,
                    whose(name, scopes, scope, question=True),
                )
            return
        info = FIELDS.get(name)
        if info is None:
            self.unknown("field or def", node, name, [*FIELDS, *self.names.defs])
            return
        self.field_in_scope(node, info, scope)
        if info.type != "bool":
            self.add(
                "H202",
                f"`{name}` is {TYPE_WORDS[info.type]}, not a yes/no question",
                node,
                question(info),
            )

    def compare(self, node: ast.Compare, scope: Scope) -> None:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        for value, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(value, ast.Field) and isinstance(other, ast.Literal_):
                self.possible(value, other, (str(other.value),))
        if left is None or right is None:
            return
        for type_, side in ((left, node.left), (right, node.right)):
            if type_ in ("frame", "frames"):
                self.add(
                    "H202",
                    f"`{side.text}` is {TYPE_WORDS[type_]} and cannot be compared",
                    side,
                    "write `top in LIST`, `stack has LIST` or `top.function == …`",
                )
                return
        if not _comparable(left, right):
            side, type_, other_type = node.right, right, left
            if isinstance(node.left, ast.Literal_) and not isinstance(node.right, ast.Literal_):
                side, type_, other_type = node.left, left, right
            other = node.left if side is node.right else node.right
            self.add(
                "H202",
                f"`{other.text}` is {TYPE_WORDS[other_type]}, `{side.text}` is {TYPE_WORDS[type_]}",
                side,
                EXAMPLES.get(other_type, ""),
            )
        elif node.op not in ("==", "!=") and left in ("str", "bool"):
            self.add("H202", f"{TYPE_WORDS[left]} has no order", node, "compare it with == or !=")

    def membership(self, node: ast.In, scope: Scope) -> None:
        type_ = self.value(node.value, scope)
        if type_ not in ("frame", "str", None):
            help = "write `stack has LIST`" if type_ == "frames" else ""
            self.add(
                "H202",
                f"`in` is about a frame or text; `{node.value.text}` is {TYPE_WORDS[type_]}",
                node.value,
                help,
            )
            return
        if isinstance(node.names, ast.ListRef):
            self.list_ref(node.names, frames=type_ == "frame")
        elif isinstance(node.value, ast.Field):
            self.possible(node.value, node.names, node.names.values)

    def has(self, node: ast.Has, scope: Scope) -> None:
        self.expect(node.field, scope, ("frames",), "`has` is about a stack of frames")
        if isinstance(node.pattern, ast.ListRef):
            self.list_ref(node.pattern, frames=True)
        elif isinstance(node.pattern, ast.Regex):
            self.regex(node.pattern)

    def unchanged(self, node: ast.Unchanged, scope: Scope) -> None:
        self.duration(node.duration)
        if self.field(node.field, scope) is not None and node.field.name != "stack":
            self.add("H202", "only `stack` can be unchanged", node.field)

    # --- groups ------------------------------------------------------------------------------

    def group(self, node: ast.Group, scope: Scope) -> ast.Kind | None:
        """The kind of the group's members, None if that cannot be told."""
        if isinstance(node, ast.Named):
            return self.named(node, scope)
        if isinstance(node, ast.Except):
            left, right = self.group(node.group, scope), self.group(node.without, scope)
            if left is not None and right is not None and left != right:
                self.add("H206", f"{PLURAL[left]} except {PLURAL[right]}: not the same kind", node)
            return left
        allowed = GROUPS_IN_SCOPE[scope]
        if node.kind not in allowed:
            self.add("H205", no_group(node.kind, scope), node, which_group(node.kind))
        if isinstance(node, ast.Filtered):
            self.expr(node.predicate, node.kind)
        return node.kind

    def named(self, node: ast.Named, scope: Scope) -> ast.Kind | None:
        name = node.name
        if name not in self.names.sets:
            self.unknown("set", node, name, [*self.names.sets, *PLURAL.values()])
            return None
        kind, fits = self.set_in_scope(name, scope)
        if not fits and self.set_in_scope(name, "job")[1]:
            self.add("H205", f"`{name}` has no meaning inside a condition about one {scope}", node)
        return kind

    def set_in_scope(self, name: str, scope: Scope) -> tuple[ast.Kind | None, bool]:
        """The kind of a set's members, and whether it means anything in a scope."""
        body = self.names.sets[name]
        if body is None or name in self._open_sets:
            return None, True  # reported elsewhere: a syntax error, or a circle
        if (name, scope) not in self._sets:
            self._open_sets.append(name)
            kept, self.findings = self.findings, []
            kind = self.group(body, scope)
            self._sets[name, scope] = kind, not any(map(_about_scope, self.findings))
            self.findings = kept
            self._open_sets.pop()
        return self._sets[name, scope]

    # --- values ------------------------------------------------------------------------------

    def value(self, node: ast.Value, scope: Scope) -> Type:
        if isinstance(node, ast.Literal_):
            return _LITERAL_TYPES[node.type]
        if isinstance(node, ast.Variable):
            return self.variable(node)
        if isinstance(node, ast.Field):
            return self.field(node, scope)
        self.group(node.group, scope)
        return "int" if isinstance(node, ast.Count) else "percent"

    def variable(self, node: ast.Variable) -> Type:
        variable = self.names.variables.get(node.name)
        if variable is None:
            self.unknown("variable", node, node.name, self.names.variables, mark="$")
            return None
        return variable.type

    def field(self, node: ast.Field, scope: Scope) -> Type:
        info = FIELDS.get(node.name)
        if info is None:
            self.unknown("field", node, node.name, FIELDS)
            return None
        self.field_in_scope(node, info, scope)
        return info.type

    def field_in_scope(self, node: ast.Node, info: FieldInfo, scope: Scope) -> None:
        if scope not in info.scopes:
            self.add(
                "H205",
                elsewhere(info.name, info.scopes, scope),
                node,
                whose(info.name, info.scopes, scope, question=info.type == "bool"),
            )

    def expect(
        self, node: ast.Field, scope: Scope, types: tuple[FieldType, ...], rule: str
    ) -> None:
        type_ = self.field(node, scope)
        if type_ is None or type_ in types:
            return
        help = f"write `{node.name} in LIST`" if type_ == "frame" else ""
        self.add("H202", f"{rule}; `{node.name}` is {TYPE_WORDS[type_]}", node, help)

    def possible(self, field_: ast.Field, node: ast.Node, values: Iterable[str]) -> None:
        info = FIELDS.get(field_.name)
        if info is None or not info.values:
            return
        for value in values:
            if value not in info.values:
                self.add(
                    "H210",
                    f'`{info.name}` is never "{value}"',
                    node,
                    did_you_mean(value, info.values) or f"it is one of {', '.join(info.values)}",
                )

    def list_ref(self, node: ast.ListRef, *, frames: bool) -> None:
        if node.name not in self.names.lists:
            self.unknown("list", node, node.name, self.names.lists)
            return
        (self.frame_lists if frames else self.text_lists).add(node.name)

    def duration(self, node: ast.Literal_ | ast.Variable) -> None:
        type_ = _LITERAL_TYPES[node.type] if isinstance(node, ast.Literal_) else self.variable(node)
        if type_ not in ("duration", None):
            self.add(
                "H202",
                f"`{node.text}` is {TYPE_WORDS[type_]}, not a duration",
                node,
                EXAMPLES["duration"],
            )

    def amount(self, node: ast.Literal_ | ast.Variable | None) -> None:
        if node is None:
            return
        value: object
        type_: Type
        if isinstance(node, ast.Literal_):
            type_, value = _LITERAL_TYPES[node.type], node.value
        else:
            type_ = self.variable(node)
            if type_ is None:
                return
            value = self.names.variables[node.name].value
        if type_ is not None and type_ not in ("int", "percent"):
            self.add(
                "H207",
                f"`{node.text}` is {TYPE_WORDS[type_]}, not a count or percentage",
                node,
                "write a count such as 3 or a percentage such as 90%",
            )
        elif type_ == "percent" and isinstance(value, float) and value > 1:
            self.add("H207", f"`{node.text}` is more than all", node)

    def regex(self, node: ast.Regex) -> None:
        try:
            re.compile(node.pattern)
        except re.error as error:
            self.add("H211", f"not a regular expression: {error}", node)

    def unknown(
        self, what: str, node: ast.Node, name: str, known: Iterable[str], mark: str = ""
    ) -> None:
        self.add(
            "H201",
            f"unknown {what} `{mark}{name}`",
            node,
            self.names.elsewhere(name, what) or did_you_mean(name, known),
        )


def _about_scope(finding: Finding) -> bool:
    return finding.code == "H205"


def _fewest(tries: Iterable[list[Finding]]) -> list[Finding]:
    return min(tries, key=len)


def _comparable(left: FieldType, right: FieldType) -> bool:
    return left == right or (left in _NUMBERS and right in _NUMBERS)
