"""Why ranks are in a group: the conditions about one rank (node, process) behind it.

Every node of such a tree is uniform: all whom it names answered alike. Of ``a or b`` each part
names those for whom that part decided; parts that decided for nobody are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.facts import FactValue
from whyhang.engine.matching import matching_frames
from whyhang.engine.suspects import describe
from whyhang.engine.truthset import TruthSet
from whyhang.engine.world import NOBODY, ScopeName
from whyhang.rules import ast
from whyhang.rules.fields import FIELDS
from whyhang.schemas.evidence import Evidence
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack
from whyhang.schemas.truth import Truth

VALUES_SHOWN = 3


class Witness:
    """Explains membership, from what an evaluator decided at a sample (by default the last)."""

    def __init__(self, evaluator: Evaluator, sample: int | None = None) -> None:
        self.evaluator = evaluator
        self.sample = evaluator.last if sample is None else sample

    def membership(self, group: ast.Group) -> Evidence:
        """Why the members of a group are in it."""
        members = self.evaluator.group(group, self.sample)
        return self._group(group, members.kind, members.members)

    def _group(self, group: ast.Group, kind: ScopeName, asked: int) -> Evidence:
        if isinstance(group, ast.Filtered):
            children = self._predicate(group.predicate, kind, asked, Truth.TRUE)
        elif isinstance(group, ast.Named):
            children = (self._group(self.evaluator.ruleset.sets[group.name], kind, asked),)
        elif isinstance(group, ast.Except):
            children = (self._group(group.group, kind, asked),)
        else:
            children = ()
        return Evidence(
            text=group.text,
            value=Truth.TRUE,
            span=group.span,
            yes=self.evaluator.world.ranks_of(kind, asked),
            children=children,
        )

    def _predicate(
        self, expr: ast.Expr, scope: ScopeName, asked: int, value: Truth
    ) -> tuple[Evidence, ...]:
        """The evidence of those among ``asked`` whose answer is ``value``; empty for nobody."""
        evaluator = self.evaluator
        told = side(evaluator.truth(expr, scope, self.sample), value) & asked
        if not told:
            return ()
        ranks = evaluator.world.ranks_of(scope, told)
        children = tuple(self._parts(expr, scope, told, value))
        if len(children) == 1 and isinstance(expr, ast.And | ast.Or):
            return children
        return (
            Evidence(
                text=expr.text,
                value=value,
                span=expr.span,
                detail="" if children else self._detail(expr, scope, told),
                yes=ranks if value is Truth.TRUE else RankSet(),
                no=ranks if value is Truth.FALSE else RankSet(),
                unknown=ranks if value is Truth.UNKNOWN else RankSet(),
                children=children,
            ),
        )

    def _parts(
        self, expr: ast.Expr, scope: ScopeName, told: int, value: Truth
    ) -> Iterator[Evidence]:
        if isinstance(expr, ast.And | ast.Or):
            for part in expr.parts:
                yield from self._predicate(part, scope, told, value)
        elif isinstance(expr, ast.Not):
            yield from self._predicate(expr.part, scope, told, ~value)
        elif isinstance(expr, ast.Held):
            yield from self._predicate(expr.part, scope, told, value)
        elif isinstance(expr, ast.Ref) and expr.name in self.evaluator.ruleset.defs:
            yield from self._predicate(self.evaluator.ruleset.defs[expr.name], scope, told, value)
        elif isinstance(expr, ast.Quantified) and value is Truth.TRUE:
            yield from self._members(expr, scope, told)

    def _members(self, expr: ast.Quantified, scope: ScopeName, told: int) -> Iterator[Evidence]:
        """Those of the counted members (the children of a rank) that say yes, and why."""
        group = self.evaluator.group(expr.group, self.sample)
        kin = self.evaluator.world.kin(scope, group.kind)
        inside = RankSet(m for bit in RankSet.from_bits(told) for m in kin.get(bit, NOBODY)).bits
        asked = inside & group.members
        return iter(self._predicate(expr.predicate, group.kind, asked, Truth.TRUE))

    def _detail(self, expr: ast.Expr, scope: ScopeName, told: int) -> str:
        """The values that decided, of the fields that a clause compares."""
        parts = [self._values(name, expr, scope, told) for name in dict.fromkeys(fields(expr))]
        return "; ".join(part for part in parts if part)

    def _values(self, name: str, expr: ast.Expr, scope: ScopeName, told: int) -> str:
        column = self.evaluator.column(name, scope, self.sample)
        if isinstance(expr, ast.Unchanged):
            return ""
        values = column.values_of(told)
        if isinstance(expr, ast.Has):
            positions = self.evaluator.facts.positions
            frames = [tuple(matching_frames(expr, value, positions)) for value in values]
            known, verb = [describe(found[0]) for found in frames if found], "has"
        else:
            known, verb = [word(name, value) for value in values], "is"
        unknown = [
            f"{name} is unknown: {reason}" for reason, bits in column.missing.items() if bits & told
        ]
        shown = list(dict.fromkeys(known))
        if len(shown) > VALUES_SHOWN:
            shown[VALUES_SHOWN:] = [f"{len(shown) - VALUES_SHOWN} other values"]
        return "; ".join([f"{name} {verb} {' or '.join(shown)}"] * bool(shown) + unknown)


def side(answers: TruthSet, value: Truth) -> int:
    """Those whose answer is ``value``."""
    if value is Truth.TRUE:
        return answers.yes
    return answers.no if value is Truth.FALSE else answers.unknown


def fields(expr: ast.Expr) -> Iterator[str]:
    """The fields that a clause without parts reads."""
    if isinstance(expr, ast.Ref):
        yield expr.name
    elif isinstance(expr, ast.Compare):
        for value in (expr.left, expr.right):
            if isinstance(value, ast.Field):
                yield value.name
    elif isinstance(expr, ast.In):
        if isinstance(expr.value, ast.Field):
            yield expr.value.name
    elif isinstance(expr, ast.Has | ast.Matches | ast.Unchanged | ast.Known | ast.Agree):
        yield expr.field.name


def word(name: str, value: FactValue) -> str:
    """A value for people, in the unit of its field."""
    if isinstance(value, Frame):
        return describe(value)
    if isinstance(value, Stack | tuple):
        frames = value.python if isinstance(value, Stack) else value
        return f"{len(frames)} frames" if frames else "empty"
    kind = FIELDS[name].type if name in FIELDS else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if kind == "percent":
        return f"{value * 100:.3g}%"
    return f"{value:.6g}" + (" s" if kind == "duration" else "")
