"""Which mutants of the rules no test notices: holes in the tests.

The worlds are built and judged once. A mutant is asked only for what its change can reach; all
other answers are those of the unchanged rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.explain import Explainer
from whyhang.engine.groups import Members
from whyhang.engine.judge import Court
from whyhang.engine.reads import Reads
from whyhang.engine.rule_mutants import Mutant, mutants
from whyhang.engine.rule_reach import Reach, stale_nodes
from whyhang.engine.rule_tests import StagedTest, Suite
from whyhang.engine.rule_trials import Trial, check_rule, check_verdict
from whyhang.engine.truthset import TruthSet
from whyhang.engine.world import ScopeName
from whyhang.rules import ast
from whyhang.rules.findings import Finding
from whyhang.rules.ruleset import Rule, Ruleset
from whyhang.rules.suggest import did_you_mean
from whyhang.rules.test_cases import Accepted
from whyhang.rules.test_names import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """How a mutation run ended.

    ``survivors`` are holes in the tests, ``accepted`` those that the test file explains,
    ``needless`` the explanations of mutants that a test does notice.
    """

    total: int
    survivors: tuple[Mutant, ...]
    accepted: tuple[Mutant, ...]
    needless: tuple[Accepted, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def killed(self) -> int:
        """How many mutants some test noticed."""
        return self.total - len(self.survivors) - len(self.accepted)


class _Reevaluator(Evaluator):
    """Evaluates changed rules; what the change cannot reach is answered by the ``base``."""

    def __init__(
        self, base: Evaluator, ruleset: Ruleset, reads: Reads, stale: frozenset[int] | None
    ) -> None:
        super().__init__(ruleset, base.facts)
        self.base = base
        self.reads = reads
        self.stale = stale
        self._columns = base._columns
        if stale is not None:
            base.ignored("process")
            self._ignored = base._ignored

    def truth(
        self, expr: ast.Expr, scope: ScopeName = "job", sample: int | None = None
    ) -> TruthSet:
        if self.stale is not None and id(expr) not in self.stale:
            at = self.last if sample is None else sample
            known = self.base._truths.get((id(expr), scope, at))
            if known is not None:
                return known
        return super().truth(expr, scope, sample)

    def group(self, group: ast.Group, sample: int | None = None) -> Members:
        if self.stale is not None and id(group) not in self.stale:
            known = self.base._groups.get((id(group), self.last if sample is None else sample))
            if known is not None:
                return known
        return super().group(group, sample)


def run_mutants(suite: Suite, tests: Sequence[StagedTest]) -> Mutation:
    """Try every mutant of the suite's own rules; tests that are `todo` notice nothing."""
    run = _Run(suite, [test for test in tests if not test.test.todo])
    accepted = {entry.mutant: entry for entry in suite.file.accept}
    survivors: list[Mutant] = []
    excused: list[Mutant] = []
    titles: list[str] = []
    for mutant in mutants(suite.ruleset, suite.own, suite.variables):
        titles.append(mutant.title)
        if run.is_noticed(mutant):
            continue
        (excused if mutant.title in accepted else survivors).append(mutant)
    excused_titles = {mutant.title for mutant in excused}
    return Mutation(
        total=len(titles),
        survivors=tuple(survivors),
        accepted=tuple(excused),
        needless=tuple(
            entry
            for title, entry in accepted.items()
            if title in titles and title not in excused_titles
        ),
        findings=tuple(_unknown(suite.file.accept, titles)),
    )


def _unknown(entries: Iterable[Accepted], titles: Sequence[str]) -> Iterable[Finding]:
    for entry in entries:
        if entry.mutant not in titles:
            message = f"there is no mutant `{entry.mutant}`"
            help = did_you_mean(entry.mutant, titles)
            yield Finding(code="H505", message=message, span=entry.span, help=help)


class _Run:
    def __init__(self, suite: Suite, tests: Sequence[StagedTest]) -> None:
        self.ruleset = suite.ruleset
        self.tests = list(tests)
        self.stale = stale_nodes(suite.ruleset)
        self.reach = Reach(suite.ruleset)
        entries: tuple[Entry, ...] = (*suite.ruleset.rules, *suite.ruleset.suppress)
        # Who is asked first decides what is known: let everything be.
        for test in self.tests:
            for trial in test.trials.values():
                for entry in entries:
                    trial.truth(entry)
                    if isinstance(entry, Rule):
                        trial.suspects(entry)
        self.behind: Mapping[str, frozenset[tuple[str, str]]] = {
            entry.id: self._names_of(entry) for entry in entries
        }

    def _names_of(self, entry: Entry) -> frozenset[tuple[str, str]]:
        names = self.reach.of(entry.when)
        if isinstance(entry, Rule) and entry.suspects is not None:
            names |= self.reach.of(entry.suspects)
        return names

    def is_noticed(self, mutant: Mutant) -> bool:
        """Whether some test fails with the mutant."""
        stale = self._stale(mutant)
        reads = Reads(mutant.ruleset)
        touched = [
            (old, new)
            for old, new in zip(_entries(self.ruleset), _entries(mutant.ruleset), strict=True)
            if self._touches(mutant, old)
        ]
        for number, test in enumerate(self.tests):
            if self._fails(test, mutant, touched, stale, reads):
                # The next mutant is of the same item, most likely: ask this test first.
                self.tests.insert(0, self.tests.pop(number))
                return True
        return False

    def _stale(self, mutant: Mutant) -> frozenset[int] | None:
        """The nodes of the unchanged rules that mean something else now; None for all."""
        if mutant.section == "ignore":
            return None
        return self.stale.get((mutant.section, mutant.name), frozenset())

    def _touches(self, mutant: Mutant, entry: Entry) -> bool:
        if mutant.section == "ignore":
            return True
        if mutant.section in ("rule", "suppression"):
            return entry.id == mutant.name
        return (mutant.section, mutant.name) in self.behind[entry.id]

    def _means_another(self, base: Evaluator, mutant: Mutant, changed: _Reevaluator) -> bool:
        """Whether a changed definition or set answers otherwise, wherever it was asked for."""
        if mutant.section == "def":
            old, new = self.ruleset.defs[mutant.name], mutant.ruleset.defs[mutant.name]
            return any(
                answers != changed.truth(new, scope, at)
                for (key, scope, at), answers in list(base._truths.items())
                if key == id(old)
            )
        if mutant.section == "set":
            first, second = self.ruleset.sets[mutant.name], mutant.ruleset.sets[mutant.name]
            return any(
                _bits(members) != _bits(changed.group(second, at))
                for (key, at), members in list(base._groups.items())
                if key == id(first)
            )
        return True

    def _fails(
        self,
        test: StagedTest,
        mutant: Mutant,
        touched: Sequence[tuple[Entry, Entry]],
        stale: frozenset[int] | None,
        reads: Reads,
    ) -> bool:
        for at, trial in test.trials.items():
            base = trial.court
            evaluator = _Reevaluator(base.evaluator, mutant.ruleset, reads, stale)
            if not self._means_another(base.evaluator, mutant, evaluator):
                continue
            changed = Trial(
                Court(mutant.ruleset, base.incident, base.facts, evaluator, Explainer(evaluator))
            )
            if not any(_differs(trial, changed, old, new) for old, new in touched):
                continue
            asked = [expected for expected in test.test.expect if expected.at == at]
            for check in (check_rule, check_verdict):
                if any(True for expected in asked for _ in check(changed, expected)):
                    return True
        return False


def _bits(group: Members) -> tuple[int, int]:
    return group.members, group.doubtful


def _entries(ruleset: Ruleset) -> tuple[Entry, ...]:
    return (*ruleset.rules, *ruleset.suppress)


def _differs(before: Trial, after: Trial, old: Entry, new: Entry) -> bool:
    """Whether a rule or suppression comes out otherwise, or names others.

    Reasons are left out: where the answer is the same, they tell of the same evidence.
    """
    if before.truth(old) is not after.truth(new):
        return True
    if isinstance(old, Rule) and isinstance(new, Rule) and new.suspects is not None:
        return before.suspects(old) != after.suspects(new)
    return False
