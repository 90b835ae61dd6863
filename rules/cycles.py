"""Definitions and sets that are defined by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whyhang.rules import ast
from whyhang.rules.findings import Finding


def cycles(
    defs: Mapping[str, ast.Expr | None], sets: Mapping[str, ast.Group | None]
) -> Iterable[Finding]:
    """Definitions and sets that lead back to themselves (H204), each circle once."""
    bodies: dict[str, ast.Expr | ast.Group | None] = {
        **{f"def {name}": body for name, body in defs.items()},
        **{f"set {name}": body for name, body in sets.items()},
    }
    done: set[str] = set()
    for start in bodies:
        yield from _follow(start, bodies, [], done)


def _follow(
    key: str,
    bodies: Mapping[str, ast.Expr | ast.Group | None],
    trail: list[str],
    done: set[str],
) -> Iterable[Finding]:
    if key in trail:
        circle = [name.split()[1] for name in trail[trail.index(key) :]]
        body = bodies[key]
        assert body is not None
        way = " -> ".join([*circle, circle[0]])
        yield Finding(
            code="H204", message=f"`{circle[0]}` is defined by itself: {way}", span=body.span
        )
        return
    body = bodies.get(key)
    if key in done or body is None:
        return
    trail.append(key)
    for name in references(body):
        yield from _follow(name, bodies, trail, done)
    trail.pop()
    done.add(key)


def references(node: ast.Node) -> Iterable[str]:
    """The definitions and sets that a node names, as ``def x`` and ``set x``."""
    for part in walk(node):
        if isinstance(part, ast.Ref):
            yield f"def {part.name}"
        elif isinstance(part, ast.Named):
            yield f"set {part.name}"


def walk(node: ast.Node) -> Iterable[ast.Node]:
    """A node and all below it, in the order of the text."""
    yield node
    for name in ast.parts_of(node):
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ast.Node):
                yield from walk(part)
