"""Which clauses decided something in some test, once by being true and once by being false."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.rule_mutants import LEAVES, shown
from whyhang.engine.rule_tests import StagedTest, Suite
from whyhang.engine.rule_trees import roots, walk
from whyhang.engine.truthset import TruthSet
from whyhang.engine.world import ScopeName
from whyhang.rules import ast
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.evidence import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseCoverage:
    """One clause, and whether it decided something by being true and by being false."""

    text: str
    span: Span
    true: bool
    false: bool

    @property
    def covered(self) -> bool:
        """Whether both ways were seen."""
        return self.true and self.false


def measure(suite: Suite, tests: Iterable[StagedTest]) -> tuple[ClauseCoverage, ...]:
    """All clauses of the suite's own rules, in order of place."""
    recorder = _Recorder(suite.ruleset)
    for test in tests:
        for trial in test.trials.values():
            recorder.record(trial.court.evaluator)
    clauses = {
        id(node): node
        for root in roots(suite.ruleset)
        for node in walk(root)
        if isinstance(node, LEAVES) and node.span.file in suite.own
    }
    found = (
        ClauseCoverage(
            text=shown(node), span=node.span, true=key in recorder.true, false=key in recorder.false
        )
        for key, node in clauses.items()
    )
    return tuple(sorted(found, key=lambda one: (one.span.file, one.span.line, one.span.column)))


class _Recorder:
    """Follows each value to the clauses that decided it, subject by subject, as bitmaps."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self.true: set[int] = set()
        self.false: set[int] = set()
        self.followed: set[tuple[int, ScopeName, int]] = set()

    def record(self, evaluator: Evaluator) -> None:
        """Note what decided the rules in one world."""
        self.evaluator = evaluator
        self.followed.clear()
        for suppression in self.ruleset.suppress:
            self.expr(suppression.when, "job", 1)
        for rule in self.ruleset.rules:
            self.expr(rule.when, "job", 1)
            if rule.suspects is not None:
                self.group(rule.suspects)
        # Who is ignored takes part in nothing else: only here it decides.
        self.evaluator = Evaluator(replace(self.ruleset, ignore=()), evaluator.facts)
        self.followed.clear()
        for group in self.ruleset.ignore:
            self.group(group)

    def expr(self, node: ast.Expr, scope: ScopeName, subjects: int) -> None:
        """Note who decided a value; ``subjects`` are those whose value counts."""
        answers = self.evaluator.truth(node, scope)
        subjects &= answers.members
        # Most rules share their definitions: each is followed once for the same subjects.
        step = (id(node), scope, subjects)
        if not subjects or step in self.followed:
            return
        self.followed.add(step)
        if isinstance(node, LEAVES):
            if answers.yes & subjects:
                self.true.add(id(node))
            if answers.no & subjects:
                self.false.add(id(node))
        if isinstance(node, ast.And | ast.Or):
            for part in node.parts:
                same = _same(answers, self.evaluator.truth(part, scope))
                self.expr(part, scope, subjects & same)
        elif isinstance(node, ast.Not | ast.Held):
            self.expr(node.part, scope, subjects)
        elif isinstance(node, ast.Ref):
            definition = self.ruleset.defs.get(node.name)
            if definition is not None:
                self.expr(definition, scope, subjects)
        elif isinstance(node, ast.Quantified):
            members = self.evaluator.group(node.group)
            self.group(node.group)
            self.expr(node.predicate, members.kind, members.members | members.doubtful)
        elif isinstance(node, ast.Agree):
            self.group(node.group)
        elif isinstance(node, ast.Compare):
            for side in (node.left, node.right):
                if isinstance(side, ast.Count | ast.Share):
                    self.group(side.group)

    def group(self, node: ast.Group) -> None:
        """Note who decided the membership of a group."""
        if isinstance(node, ast.Named):
            self.group(self.ruleset.sets[node.name])
        elif isinstance(node, ast.Except):
            self.group(node.group)
            self.group(node.without)
        elif isinstance(node, ast.Filtered):
            self.expr(node.predicate, node.kind, self.evaluator.members(node.kind))


def _same(whole: TruthSet, part: TruthSet) -> int:
    """The subjects to whom a part gives the answer of the whole."""
    return (whole.yes & part.yes) | (whole.no & part.no) | (whole.unknown & part.unknown)


def share(clauses: Iterable[ClauseCoverage]) -> float:
    """The covered share of the clauses; 1 of none."""
    found = list(clauses)
    return sum(one.covered for one in found) / len(found) if found else 1.0


def holes(clauses: Iterable[ClauseCoverage]) -> Iterator[ClauseCoverage]:
    """The clauses that are not covered."""
    return (one for one in clauses if not one.covered)
