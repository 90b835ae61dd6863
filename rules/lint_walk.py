"""Walks conditions as the lints need it: asked of whom, negated or not, and what guards a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from whyhang.rules import ast
from whyhang.rules.fields import FIELDS, Scope
from whyhang.rules.shapes import Shape, conjuncts, shape
from whyhang.schemas.evidence import Span

# Fields that always have a value.
NEVER_UNKNOWN = ("job.ended", "job.trigger", "job.nodes", "unreadable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A part of a condition. ``guards`` must be true for the part to matter."""

    node: ast.Expr
    scope: Scope
    positive: bool = True
    guards: tuple[ast.Expr, ...] = ()

    def is_guarded(self, field: str) -> bool:
        """Whether the part matters only where the field is known."""
        return any(
            isinstance(guard, ast.Known) and not guard.negated and guard.field.name == field
            for guard in self.guards
        )


def visits(
    node: ast.Expr | ast.Group, scope: Scope, defs: Mapping[str, ast.Expr]
) -> Iterator[Visit]:
    """All expressions in a condition or group; definitions are not entered."""
    walk = _Walk(defs)
    if isinstance(node, ast.Everything | ast.Filtered | ast.Named | ast.Except):
        yield from walk.group(node, Visit(node=_NOTHING, scope=scope))
    else:
        yield from walk.expr(Visit(node=node, scope=scope))


_NOTHING = ast.Ref(span=Span(), text="", name="")


class _Walk:
    def __init__(self, defs: Mapping[str, ast.Expr]) -> None:
        self.defs = defs

    def expr(self, visit: Visit) -> Iterator[Visit]:
        yield visit
        node = visit.node
        if isinstance(node, ast.And | ast.Or):
            for number, part in enumerate(node.parts):
                others = node.parts[:number] + node.parts[number + 1 :]
                guards = self.beside(others, isinstance(node, ast.And))
                yield from self.expr(replace(visit, node=part, guards=visit.guards + guards))
        elif isinstance(node, ast.Not):
            yield from self.expr(replace(visit, node=node.part, positive=not visit.positive))
        elif isinstance(node, ast.Held):
            yield from self.expr(replace(visit, node=node.part))
        elif isinstance(node, ast.Quantified):
            yield from self.group(node.group, visit)
            inside = self.inside(visit, kind_of(node.group))
            flips = node.quantifier in ("none", "at_most")
            positive = visit.positive is not flips
            yield from self.expr(replace(inside, node=node.predicate, positive=positive))
        elif isinstance(node, ast.Agree):
            yield from self.group(node.group, visit)
        elif isinstance(node, ast.Compare):
            for side in (node.left, node.right):
                if isinstance(side, ast.Count | ast.Share):
                    yield from self.group(side.group, visit)

    def group(self, node: ast.Group, visit: Visit) -> Iterator[Visit]:
        if isinstance(node, ast.Except):
            yield from self.group(node.group, visit)
            yield from self.group(node.without, visit)
        elif isinstance(node, ast.Filtered):
            inside = self.inside(visit, node.kind)
            yield from self.expr(replace(inside, node=node.predicate, positive=True))

    def beside(self, others: tuple[ast.Expr, ...], is_and: bool) -> tuple[ast.Expr, ...]:
        """What the other parts of a chain say where this part decides it."""
        if is_and:
            return tuple(part for other in others for part in conjuncts(other, self.defs))
        # `x is unknown or …`: the rest is about known ones.
        return tuple(
            replace(other, negated=False)
            for other in others
            if isinstance(other, ast.Known) and other.negated
        )

    def inside(self, visit: Visit, kind: ast.Kind | None) -> Visit:
        """The members of a group: only what guards the job itself holds for them, too."""
        kept = tuple(
            guard
            for guard in visit.guards
            if isinstance(guard, ast.Known)
            and guard.field.name in FIELDS
            and "job" in FIELDS[guard.field.name].scopes
        )
        return replace(visit, scope=kind or "rank", guards=kept)


def kind_of(group: ast.Group) -> ast.Kind | None:
    """The kind of a group's members, None for a named set."""
    if isinstance(group, ast.Named):
        return None
    return kind_of(group.group) if isinstance(group, ast.Except) else group.kind


def expanded(group: ast.Group, sets: Mapping[str, ast.Group]) -> ast.Group:
    """A group in which named sets are replaced by what they stand for."""
    if isinstance(group, ast.Named) and group.name in sets:
        return expanded(sets[group.name], sets)
    if isinstance(group, ast.Except):
        return replace(
            group, group=expanded(group.group, sets), without=expanded(group.without, sets)
        )
    return group


def same_group(one: ast.Group, other: ast.Group, sets: Mapping[str, ast.Group]) -> bool:
    """Whether two groups are put in the same words."""
    return group_shape(one, sets) == group_shape(other, sets)


def group_shape(group: ast.Group, sets: Mapping[str, ast.Group]) -> Shape:
    """What a group says, named sets replaced."""
    return shape(expanded(group, sets))


def fields_asked(node: ast.Expr) -> tuple[ast.Field, ...]:
    """The fields whose value a single test asks for; none for chains and quantifiers."""
    if isinstance(node, ast.In):
        return (node.value,) if isinstance(node.value, ast.Field) else ()
    if isinstance(node, ast.Has | ast.Matches | ast.Unchanged):
        return (node.field,)
    if isinstance(node, ast.Compare):
        return tuple(side for side in (node.left, node.right) if isinstance(side, ast.Field))
    if isinstance(node, ast.Ref) and node.name in FIELDS:
        return (ast.Field(span=node.span, text=node.text, name=node.name),)
    return ()
