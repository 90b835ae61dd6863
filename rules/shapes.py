"""Conditions compared by what they say: without positions, comments and spacing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from whyhang.rules import ast

Shape: TypeAlias = tuple[object, ...]


def shape(node: ast.Node) -> Shape:
    """A value that is equal for two nodes exactly if they say the same in the same words."""
    parts = (_part(getattr(node, name)) for name in ast.parts_of(node))
    return type(node).__name__, *parts


def _part(value: object) -> object:
    if isinstance(value, ast.Node):
        return shape(value)
    if isinstance(value, tuple):
        return tuple(map(_part, value))
    # 1 and 1.0 and True are equal in Python, but not in a condition.
    return type(value).__name__, value


def conjuncts(expr: ast.Expr, defs: Mapping[str, ast.Expr]) -> tuple[ast.Expr, ...]:
    """What must all be true for an expression to be true; definitions count as their bodies.

    The definitions must not lead back to themselves.
    """
    if isinstance(expr, ast.And):
        return tuple(part for each in expr.parts for part in conjuncts(each, defs))
    if isinstance(expr, ast.Ref) and expr.name in defs:
        return (expr, *conjuncts(defs[expr.name], defs))
    if isinstance(expr, ast.Held):
        return (expr, *conjuncts(expr.part, defs))
    return (expr,)
