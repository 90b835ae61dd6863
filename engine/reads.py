"""What a clause reads: the facets that decide which subjects it can tell apart."""

from __future__ import annotations

from collections.abc import Iterable

from whyhang.engine.facets import TIME_FACET, Facet, facets_of
from whyhang.engine.world import ScopeName
from whyhang.rules import ast
from whyhang.rules.ruleset import Ruleset


class Reads:
    """Finds the facets behind expressions, each expression once."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._known: dict[int, frozenset[Facet]] = {}

    def of(self, part: ast.Expr | ast.Group | ast.Value) -> frozenset[Facet]:
        """The facets of the subject that a condition, a value or a group's predicate reads."""
        if id(part) not in self._known:
            self._known[id(part)] = frozenset(self._find(part))
        return self._known[id(part)]

    def family(self, group: ast.Group, *more: ast.Expr | ast.Field) -> frozenset[Facet]:
        """The facets of a subject through its members in a group that is asked about."""
        kind = self.kind_of(group)
        inner: set[Facet] = {"exists", *self.of(group)}
        for part in more:
            inner |= self.of(part)
        # Who is ignored is taken out before anybody counts; a thread goes with its process.
        if kind in ("process", "child", "thread"):
            for ignored in self._ruleset.ignore:
                inner |= self.of(ignored)
                if kind == "thread":
                    inner |= {("process", facet) for facet in self.of(ignored)}
        return frozenset((kind, facet) for facet in inner)

    def kind_of(self, group: ast.Group) -> ScopeName:
        """The kind of a group's members."""
        if isinstance(group, ast.Named):
            return self.kind_of(self._ruleset.sets[group.name])
        return self.kind_of(group.group) if isinstance(group, ast.Except) else group.kind

    def _find(self, part: ast.Expr | ast.Group | ast.Value) -> Iterable[Facet]:
        if isinstance(part, ast.And | ast.Or):
            return (facet for each in part.parts for facet in self.of(each))
        if isinstance(part, ast.Not | ast.Held):
            return self.of(part.part)
        if isinstance(part, ast.Ref):
            definition = self._ruleset.defs.get(part.name)
            return facets_of(part.name) if definition is None else self.of(definition)
        if isinstance(part, ast.Quantified):
            return self.family(part.group, part.predicate)
        if isinstance(part, ast.Agree):
            return self.family(part.group, part.field)
        if isinstance(part, ast.Compare):
            return self.of(part.left) | self.of(part.right)
        if isinstance(part, ast.In):
            return self.of(part.value)
        if isinstance(part, ast.Unchanged):
            return (*facets_of(part.field.name), TIME_FACET)
        if isinstance(part, ast.Has | ast.Matches | ast.Known):
            return facets_of(part.field.name)
        if isinstance(part, ast.Field):
            return facets_of(part.name)
        if isinstance(part, ast.Count | ast.Share):
            return self.family(part.group)
        if isinstance(part, ast.Filtered):
            return self.of(part.predicate)
        if isinstance(part, ast.Named):
            return self.of(self._ruleset.sets[part.name])
        if isinstance(part, ast.Except):
            return self.of(part.group) | self.of(part.without)
        return ()
