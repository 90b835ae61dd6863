"""Evaluates expressions over all subjects at once.

A predicate about ranks is answered for every rank in one pass: subjects with the same value of a
field form one class, each class is decided once, and the logic runs on bitmaps. The cost follows
the diversity of the job, not its size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from whyhang.engine.classes import Partition
from whyhang.engine.columns import Column
from whyhang.engine.facets import TIME_FACET, Facet, facets_of, is_restarted
from whyhang.engine.facts import Facts, FactValue
from whyhang.engine.groups import Members, agreement
from whyhang.engine.intervals import OPERATORS, Interval, compare
from whyhang.engine.matching import is_listed, is_one_of, matching_frames
from whyhang.engine.quantify import decide
from whyhang.engine.reads import Reads
from whyhang.engine.truthset import TruthSet, constant, merge_reasons
from whyhang.engine.window import Window
from whyhang.engine.world import ScopeName, Subject
from whyhang.rules import ast
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack
from whyhang.schemas.truth import Truth

JOB_FIELDS = ("log.", "job.")
THE_JOB = Subject()
JUST_ONE = Partition((), (1,))


class Evaluator:
    """Evaluates a checked ruleset over one incident. Every result is kept and computed once."""

    def __init__(self, ruleset: Ruleset, facts: Facts) -> None:
        self.ruleset = ruleset
        self.facts = facts
        self.world = facts.world
        self.last = self.world.sample_count - 1
        self.window = Window([s.monotonic_seconds for s in self.world.incident.samples])
        self.reads = Reads(ruleset)
        self._truths: dict[tuple[int, ScopeName, int], TruthSet] = {}
        self._columns: dict[tuple[str, ScopeName, int], Column] = {}
        self._groups: dict[tuple[int, int], Members] = {}
        self._ignored: dict[ScopeName, int] | None = None
        # What goes by its id must stay alive, or the id may be another's.
        self._kept: list[ast.Expr | ast.Group] = []

    # --- entry points -----------------------------------------------------------------------

    def truth(
        self, expr: ast.Expr, scope: ScopeName = "job", sample: int | None = None
    ) -> TruthSet:
        """The answers of all subjects of a scope at a sample (the last by default)."""
        at = self.last if sample is None else sample
        key = (id(expr), scope, at)
        if key not in self._truths:
            self._truths[key] = self._evaluate(expr, scope, at)
            self._kept.append(expr)
        return self._truths[key]

    def group(self, group: ast.Group, sample: int | None = None) -> Members:
        """Who belongs to a group at a sample, and who may."""
        at = self.last if sample is None else sample
        key = (id(group), at)
        if key not in self._groups:
            self._groups[key] = self._group(group, at)
            self._kept.append(group)
        return self._groups[key]

    def members(self, scope: ScopeName) -> int:
        """All subjects of a scope that are not ignored."""
        if scope == "job":
            return 1
        return self.world.table(scope).members & ~self.ignored(scope)

    def ignored(self, scope: ScopeName) -> int:
        """The processes and threads that ``ignore:`` takes out; doubtful ones stay in."""
        if self._ignored is None:
            self._ignored = {}
            found: dict[ScopeName, int] = {}
            for group in self.ruleset.ignore:
                members = self.group(group)
                found[members.kind] = found.get(members.kind, 0) | members.members
            processes = found.get("process", 0) | found.get("child", 0)
            found["process"] = found["child"] = processes
            if processes:
                owners = self.world.kin("thread", "process")
                gone = RankSet(bit for bit, (own,) in owners.items() if processes >> own & 1)
                found["thread"] = found.get("thread", 0) | gone.bits
            self._ignored = found
            # Who is ignored was still a member when that was found out.
            self._truths.clear()
            self._groups.clear()
        return self._ignored.get(scope, 0)

    def column(self, name: str, scope: ScopeName, sample: int) -> Column:
        """The values of a field over a scope."""
        key = (name, scope, sample)
        if key not in self._columns:
            if scope == "job":
                classes = JUST_ONE
                subjects: Mapping[int, Subject] = {0: THE_JOB}
            else:
                classes = self.facts.classes.of(scope, facets_of(name), sample)
                subjects = self.world.table(scope).subjects
            self._columns[key] = Column(
                classes, lambda bit: self.facts.get(name, subjects[bit], sample)
            )
        return self._columns[key]

    # --- expressions ------------------------------------------------------------------------

    def _evaluate(self, expr: ast.Expr, scope: ScopeName, sample: int) -> TruthSet:
        if isinstance(expr, ast.And):
            result = self.truth(expr.parts[0], scope, sample)
            for part in expr.parts[1:]:
                result = result & self.truth(part, scope, sample)
            return result
        if isinstance(expr, ast.Or):
            result = self.truth(expr.parts[0], scope, sample)
            for part in expr.parts[1:]:
                result = result | self.truth(part, scope, sample)
            return result
        if isinstance(expr, ast.Not):
            return ~self.truth(expr.part, scope, sample)
        if isinstance(expr, ast.Ref):
            return self._ref(expr, scope, sample)
        if isinstance(expr, ast.Compare):
            return self._compare(expr, scope, sample)
        if isinstance(expr, ast.In):
            return self._in(expr, scope, sample)
        if isinstance(expr, ast.Has):
            return self._has(expr, scope, sample)
        if isinstance(expr, ast.Matches):
            search = re.compile(expr.pattern.pattern).search
            return self._decide(expr.field.name, scope, sample, lambda v: bool(search(str(v))))
        if isinstance(expr, ast.Known):
            return self._known(expr, scope, sample)
        if isinstance(expr, ast.Unchanged):
            return self._unchanged(expr, scope, sample)
        if isinstance(expr, ast.Held):
            return self._held(expr, scope, sample)
        return self._quantified(expr, scope, sample)

    def _ref(self, expr: ast.Ref, scope: ScopeName, sample: int) -> TruthSet:
        definition = self.ruleset.defs.get(expr.name)
        if definition is not None:
            return self.truth(definition, scope, sample)
        return self._decide(expr.name, scope, sample, bool)

    def _decide(
        self, name: str, scope: ScopeName, sample: int, test: Callable[[FactValue], bool]
    ) -> TruthSet:
        """Ask each distinct value of a field once."""
        members = self.members(scope)
        if scope != "job" and name.startswith(JOB_FIELDS):
            job = self._decide(name, "job", sample, test)
            return constant(members, job.one(), dict.fromkeys(job.why_unknown(), members))
        return self.column(name, scope, sample).ask(test, members)

    def _compare(self, expr: ast.Compare, scope: ScopeName, sample: int) -> TruthSet:
        left, right, op = expr.left, expr.right, expr.op
        if not isinstance(left, ast.Field) and isinstance(right, ast.Field):
            left, right, op = right, left, ast.MIRRORED[op]
        if isinstance(left, ast.Field) and not isinstance(right, ast.Field):
            bound = self._scalar(right, scope, sample)
            if not isinstance(bound, tuple):
                return self._decide(left.name, scope, sample, lambda v: OPERATORS[op](v, bound))
        return self._compare_each(left, op, right, scope, sample)

    def _compare_each(
        self, left: ast.Value, op: str, right: ast.Value, scope: ScopeName, sample: int
    ) -> TruthSet:
        """Comparisons with a counted group or between two fields, subject by subject."""
        members = self.members(scope)
        facets = self.reads.of(left) | self.reads.of(right)
        yes, no = self._each(
            scope,
            facets,
            lambda bit: compare(
                op,
                self._interval(left, scope, bit, sample),
                self._interval(right, scope, bit, sample),
            ),
        )
        reasons: dict[str, int] = {}
        for side in (left, right):
            if isinstance(side, ast.Count | ast.Share):
                reasons |= dict.fromkeys(self.group(side.group, sample).reasons, members)
        return TruthSet(members, yes & members, no & members, reasons)

    def _each(
        self,
        scope: ScopeName,
        facets: frozenset[Facet],
        decide_for: Callable[[int], Truth],
        sorts: tuple[ScopeName, Partition] | None = None,
    ) -> tuple[int, int]:
        """Ask one subject of each class that these facets tell apart: who says yes, who says no.

        Where they tell nearly everybody apart, it is enough that the members whom a clause counts
        are of the same ``sorts``: a kind of members and what they answer.
        """
        classes = JUST_ONE
        if scope != "job":
            # The answers of members may look back in time, and who is ignored looks ahead.
            classes = self.facts.classes.of(scope, facets, self.last, since=0)
            if classes.is_fine and sorts is not None:
                classes = self.facts.classes.by_members(scope, *sorts)
        answers = list(map(decide_for, classes.representatives()))
        yes, no = (
            classes.union(number for number, truth in enumerate(answers) if truth is wanted)
            for wanted in (Truth.TRUE, Truth.FALSE)
        )
        return yes, no

    def _interval(
        self, value: ast.Value, scope: ScopeName, bit: int, sample: int
    ) -> Interval | None:
        """The smallest and the largest that a value can be for one subject; None if unknown."""
        if isinstance(value, ast.Count | ast.Share):
            return self._counted(value, scope, bit, sample)
        if isinstance(value, ast.Field):
            job = scope == "job" or value.name.startswith(JOB_FIELDS)
            subject = THE_JOB if job else self.world.table(scope).subjects[bit]
            fact = self.facts.get(value.name, subject, sample)
            return None if isinstance(fact, Missing) else (fact, fact)
        constant_ = self._scalar(value, scope, sample)
        return constant_, constant_

    def _counted(
        self, value: ast.Count | ast.Share, scope: ScopeName, bit: int, sample: int
    ) -> Interval:
        """``count(g)`` or ``share(g)`` as an interval."""
        group = self.group(value.group, sample)
        inside = self._inside(scope, bit, group.kind)
        low = (group.members & inside).bit_count()
        high = low + (group.doubtful & inside).bit_count()
        if isinstance(value, ast.Count):
            return low, high
        size = inside.bit_count()
        return (low / size, high / size) if size else (0.0, 0.0)

    def _scalar(self, value: ast.Value, scope: ScopeName, sample: int) -> object:
        if isinstance(value, ast.Literal_):
            return value.value
        if isinstance(value, ast.Variable):
            return self.ruleset.variables[value.name]
        return self._interval(value, scope, 0, sample)

    def _in(self, expr: ast.In, scope: ScopeName, sample: int) -> TruthSet:
        assert isinstance(expr.value, ast.Field)
        if isinstance(expr.names, ast.ListRef):
            test = is_listed(self.ruleset.lists[expr.names.name], self.facts.positions)
        else:
            test = is_one_of(expr.names.values)
        result = self._decide(expr.value.name, scope, sample, test)
        return ~result if expr.negated else result

    def _has(self, expr: ast.Has, scope: ScopeName, sample: int) -> TruthSet:
        def test(value: FactValue) -> bool:
            return next(matching_frames(expr, value, self.facts.positions), None) is not None

        return self._decide(expr.field.name, scope, sample, test)

    def _known(self, expr: ast.Known, scope: ScopeName, sample: int) -> TruthSet:
        # A test on the value alone leaves exactly the unread ones undecided.
        result = self._decide(expr.field.name, scope, sample, lambda value: True)
        answered = TruthSet(result.members, result.yes, result.members & ~result.yes)
        return ~answered if expr.negated else answered

    # --- time -------------------------------------------------------------------------------

    def _unchanged(self, expr: ast.Unchanged, scope: ScopeName, sample: int) -> TruthSet:
        seconds = self._seconds(expr.duration)
        members = self.members(scope)
        subjects = self.world.table(scope).subjects
        facets = (*facets_of(expr.field.name), TIME_FACET)
        classes = self.facts.classes.of(scope, facets, sample, since=0)
        answers = Column(classes, lambda bit: self._stack_unchanged(subjects[bit], seconds, sample))
        return answers.ask(bool, members)

    def _stack_unchanged(self, subject: Subject, seconds: float, sample: int) -> bool | Missing:
        """Whether the Python stack was the same in every sample of a window of ``seconds``."""
        latest = self.facts.get("stack", subject, sample)
        if isinstance(latest, Missing):
            return latest
        assert isinstance(latest, Stack)
        for earlier in range(sample - 1, -1, -1):
            stack = self.facts.get("stack", subject, earlier)
            if isinstance(stack, Missing):
                return stack
            assert isinstance(stack, Stack)
            if stack is not latest and stack.python != latest.python:
                return False
            if is_restarted(subject, earlier + 1):
                return False
            if self.window.spans(earlier, sample, seconds):
                return self.window.hole(earlier, sample) or True
        return self.window.too_short(seconds) or True

    def _held(self, expr: ast.Held, scope: ScopeName, sample: int) -> TruthSet:
        """True in every sample of the window; an unknown one neither resets nor completes it."""
        seconds = self._seconds(expr.duration)
        result = self.truth(expr.part, scope, sample)
        why = self.window.too_short(seconds)
        for earlier in range(sample - 1, -1, -1):
            result = result & self.truth(expr.part, scope, earlier)
            if self.window.spans(earlier, sample, seconds):
                why = self.window.hole(earlier, sample)
                break
        if why is None:
            return result
        open_ = {why.reason: result.members}
        return TruthSet(result.members, 0, result.no, merge_reasons(result.reasons, open_))

    def _seconds(self, duration: ast.Literal_ | ast.Variable) -> float:
        value = self._scalar(duration, "job", self.last)
        assert isinstance(value, int | float)
        return float(value)

    # --- groups -----------------------------------------------------------------------------

    def _group(self, group: ast.Group, sample: int) -> Members:
        if isinstance(group, ast.Everything):
            return Members(group.kind, self.members(group.kind))
        if isinstance(group, ast.Named):
            return self.group(self.ruleset.sets[group.name], sample)
        if isinstance(group, ast.Filtered):
            answers = self.truth(group.predicate, group.kind, sample)
            reasons = {why: answers.reasons[why] for why in answers.why_unknown()}
            return Members(group.kind, answers.yes, answers.unknown, reasons)
        return self.group(group.group, sample).without(self.group(group.without, sample))

    def _inside(self, scope: ScopeName, bit: int, kind: ScopeName) -> int:
        return self.members(kind) & self.world.inside(scope, bit, kind)

    def amount(self, expr: ast.Quantified | ast.Agree) -> float | int | None:
        """The count (int) or share (float) that a quantifier asks for."""
        if expr.amount is None:
            return None
        value = self._scalar(expr.amount, "job", self.last)
        assert isinstance(value, int | float)
        return value

    def _quantified(
        self, expr: ast.Quantified | ast.Agree, scope: ScopeName, sample: int
    ) -> TruthSet:
        group = self.group(expr.group, sample)
        members, amount = self.members(scope), self.amount(expr)
        reasons: dict[str, int] = dict.fromkeys(group.reasons, members)
        decide_for: Callable[[int], Truth]
        sorts: tuple[ScopeName, Partition] | None = None
        if isinstance(expr, ast.Agree):
            column = self.column(expr.field.name, group.kind, sample)

            reasons |= dict.fromkeys(column.missing, members)

            def decide_for(inside: int) -> Truth:
                return agreement(expr.quantifier, amount, group, column, inside)[0]
        else:
            answers = self.truth(expr.predicate, group.kind, sample)
            reasons |= dict.fromkeys(answers.why_unknown(), members)
            sorts = group.kind, group.sorts(answers)

            def decide_for(inside: int) -> Truth:
                return decide(expr.quantifier, group.tally(answers, inside), amount)

        yes, no = self._each(
            scope,
            self.reads.of(expr),
            lambda bit: decide_for(self._inside(scope, bit, group.kind)),
            sorts,
        )
        return TruthSet(members, yes & members, no & members, reasons)
