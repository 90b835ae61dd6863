"""Can a condition be true at all, and can it be false? Decided without evidence, by its words.

The condition is spread into alternatives, each a list of tests that must hold together; it is
impossible if every alternative contradicts itself. What cannot be told is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from whyhang.rules import ast
from whyhang.rules.domain import Domain, compared, domain_of, membership
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.shapes import Shape, shape

MAX_ALTERNATIVES = 64
# The job is in one state at a time.
_STATES = ("log.stalled", "log.progressing", "log.slow")


@dataclass(frozen=True, slots=True)
class Test:
    """One test of an alternative: an expression that must be true, or must be false."""

    node: ast.Expr
    positive: bool

    @property
    def words(self) -> str:
        """The test as people write it."""
        return self.node.text if self.positive else f"not ({self.node.text})"


def why_impossible(expr: ast.Expr, rules: Ruleset, *, positive: bool = True) -> str | None:
    """Why an expression can never be true (or false), None where it can be."""
    reasons: list[str] = []
    alternatives = _spread(expr, positive, rules)
    if alternatives is None:
        return None
    for tests in alternatives:
        reason = _conflict(tests, rules)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _spread(expr: ast.Expr, positive: bool, rules: Ruleset) -> list[tuple[Test, ...]] | None:
    """The alternatives of an expression, None if there are too many."""
    if isinstance(expr, ast.Not):
        return _spread(expr.part, not positive, rules)
    if isinstance(expr, ast.Ref) and expr.name in rules.defs:
        return _spread(rules.defs[expr.name], positive, rules)
    if isinstance(expr, ast.Held) and positive:
        return _spread(expr.part, positive, rules)
    if not isinstance(expr, ast.And | ast.Or):
        return [(_plain(expr, positive),)]
    together = isinstance(expr, ast.And) is positive
    result: list[tuple[Test, ...]] = [()] if together else []
    for part in expr.parts:
        found = _spread(part, positive, rules)
        if found is None:
            return None
        if together:
            result = [one + other for one in result for other in found]
        else:
            result += found
        if len(result) > MAX_ALTERNATIVES:
            return None
    return result


def _plain(expr: ast.Expr, positive: bool) -> Test:
    """A test without a negation of its own."""
    if isinstance(expr, ast.Quantified) and expr.quantifier == "none":
        return Test(replace(expr, quantifier="any"), not positive)
    if isinstance(expr, ast.In | ast.Known) and expr.negated:
        return Test(replace(expr, negated=False), not positive)
    return Test(expr, positive)


def _conflict(tests: tuple[Test, ...], rules: Ruleset) -> str | None:
    """What makes it impossible that all tests hold together, None if nothing does."""
    for test in tests:
        reason = _alone(test, rules)
        if reason is not None:
            return reason
    return _opposites(tests) or _states(tests) or _values(tests, rules)


def _alone(test: Test, rules: Ruleset) -> str | None:
    """Why a test by itself cannot hold."""
    node = test.node
    if isinstance(node, ast.Quantified):
        if test.positive and node.quantifier in ("any", "all", "most"):
            return why_impossible(node.predicate, rules)
        amount = None if node.amount is None else _constant(node.amount, rules)
        if not test.positive and _always(node.quantifier, amount):
            return f"`{node.text}` always holds"
    if isinstance(node, ast.In) and isinstance(node.names, ast.ListRef) and test.positive:
        entry = rules.lists.get(node.names.name)
        if entry is not None and not entry.patterns:
            return f"the list `{entry.name}` is empty"
    return None


def _always(quantifier: ast.Quantifier, amount: object) -> bool:
    if quantifier == "at_least":
        return amount == 0 and isinstance(amount, int)
    return quantifier == "at_most" and isinstance(amount, float) and amount >= 1


def _opposites(tests: Iterable[Test]) -> str | None:
    seen: dict[Shape, Test] = {}
    for test in tests:
        other = seen.setdefault(shape(test.node), test)
        if other.positive is not test.positive:
            return f"`{other.words}` and `{test.words}` contradict each other"
    return None


def _states(tests: Iterable[Test]) -> str | None:
    names = {
        test.node.name
        for test in tests
        if test.positive and isinstance(test.node, ast.Ref) and test.node.name in _STATES
    }
    if len(names) < 2:
        return None
    return f"{' and '.join(f'`{name}`' for name in sorted(names))} exclude each other"


def _values(tests: Iterable[Test], rules: Ruleset) -> str | None:
    """Comparisons of one value that leave nothing it could be."""
    domains: dict[Shape, Domain] = {}
    words: dict[Shape, list[str]] = {}
    for test in tests:
        for value, limit in _limits(test, rules):
            key = shape(value)
            words.setdefault(key, []).append(f"`{test.words}`")
            domains[key] = domains.get(key, domain_of(value)).both(limit)
            if domains[key].is_empty:
                said = list(dict.fromkeys(words[key]))
                if len(said) == 1:
                    return f"{said[0]} is never true"
                return f"{' and '.join(said)} exclude each other"
    return None


def _limits(test: Test, rules: Ruleset) -> Iterator[tuple[ast.Value, Domain]]:
    """The values that a test compares with constants, and what it leaves of them."""
    node = test.node
    if isinstance(node, ast.In) and isinstance(node.names, ast.Strings):
        yield node.value, membership(node.names.values, test.positive)
    if not isinstance(node, ast.Compare):
        return
    for value, other, flipped in ((node.left, node.right, False), (node.right, node.left, True)):
        if isinstance(value, ast.Field | ast.Count | ast.Share) and isinstance(
            other, ast.Literal_ | ast.Variable
        ):
            yield value, compared(node.op, _constant(other, rules), test.positive, flipped)


def _constant(node: ast.Literal_ | ast.Variable, rules: Ruleset) -> bool | int | float | str:
    variables: Mapping[str, bool | int | float | str] = rules.variables
    return node.value if isinstance(node, ast.Literal_) else variables[node.name]
