"""Evidence: an expression about the job as a tree of clauses, each with its value and its ranks."""

from __future__ import annotations

from whyhang.engine.evaluate import Evaluator
from whyhang.engine.groups import Members, agreement
from whyhang.engine.quantify import need
from whyhang.engine.witness import word
from whyhang.rules import ast
from whyhang.schemas.evidence import Evidence
from whyhang.schemas.rankset import NOBODY, RankSet

RUNS_SHOWN = 8


class Explainer:
    """Turns what an evaluator decided at a sample (the last by default) into evidence."""

    def __init__(self, evaluator: Evaluator, sample: int | None = None) -> None:
        self.evaluator = evaluator
        self.sample = evaluator.last if sample is None else sample
        self._known: dict[int, Evidence] = {}

    def explain(self, expr: ast.Expr) -> Evidence:
        """The evidence of a question about the job; a definition is explained only once."""
        if id(expr) not in self._known:
            self._known[id(expr)] = self._explain(expr)
        return self._known[id(expr)]

    def _explain(self, expr: ast.Expr) -> Evidence:
        answer = self.evaluator.truth(expr, sample=self.sample)
        yes, no, unknown, detail = NOBODY, NOBODY, NOBODY, ""
        children: tuple[Evidence, ...] = ()
        if isinstance(expr, ast.And | ast.Or):
            children = tuple(self.explain(part) for part in expr.parts)
        elif isinstance(expr, ast.Not | ast.Held):
            children = (self.explain(expr.part),)
        elif isinstance(expr, ast.Quantified):
            yes, no, unknown, detail = self._quantified(expr)
        elif isinstance(expr, ast.Agree):
            yes, no, unknown, detail = self._agree(expr)
        elif isinstance(expr, ast.Compare):
            yes, unknown, detail = self._compare(expr)
        elif isinstance(expr, ast.Ref):
            definition = self.evaluator.ruleset.defs.get(expr.name)
            if definition is not None:
                children = (self.explain(definition),)
            else:
                detail = self._field(expr.name)
        elif isinstance(expr, ast.In | ast.Matches | ast.Has):
            field = expr.value if isinstance(expr, ast.In) else expr.field
            detail = self._field(field.name) if isinstance(field, ast.Field) else ""
        return Evidence(
            text=expr.text,
            value=answer.one(),
            span=expr.span,
            detail=detail,
            yes=yes,
            no=no,
            unknown=unknown,
            missing=answer.why_unknown(),
            children=children,
        )

    def _quantified(self, expr: ast.Quantified) -> tuple[RankSet, RankSet, RankSet, str]:
        evaluator = self.evaluator
        group = evaluator.group(expr.group, self.sample)
        answers = evaluator.truth(expr.predicate, group.kind, self.sample)
        tally = group.tally(answers, evaluator.members(group.kind))
        told = answers.yes & group.members, answers.no & group.members
        open_ = (group.members | group.doubtful) & ~(told[0] | told[1])
        yes, no, unknown = (evaluator.world.ranks_of(group.kind, part) for part in (*told, open_))
        size = tally.yes + tally.no + tally.unknown
        amount = evaluator.amount(expr)
        parts = [] if amount is None else [f"need {need(amount, size)} of {size}"]
        parts += [
            f"{word} {ranks.format(RUNS_SHOWN)}"
            for word, ranks in (("yes", yes), ("no", no), ("unknown", unknown))
            if ranks
        ]
        if not size and not unknown:
            parts.append("nobody is in the group")
        return yes, no, unknown, "; ".join(parts)

    def _agree(self, expr: ast.Agree) -> tuple[RankSet, RankSet, RankSet, str]:
        evaluator = self.evaluator
        group = evaluator.group(expr.group, self.sample)
        column = evaluator.column(expr.field.name, group.kind, self.sample)
        _, largest = agreement(
            expr.quantifier,
            evaluator.amount(expr),
            group,
            column,
            evaluator.members(group.kind),
        )
        known = column.known
        shared = ", ".join(map(str, column.values_of(largest)))
        asked = group.members | group.doubtful
        yes = evaluator.world.ranks_of(group.kind, largest)
        no = evaluator.world.ranks_of(group.kind, asked & known & ~largest)
        unknown = evaluator.world.ranks_of(group.kind, asked & ~known)
        return yes, no, unknown, f"{len(yes)} of {asked.bit_count()} at {shared or 'nothing'}"

    def _compare(self, expr: ast.Compare) -> tuple[RankSet, RankSet, str]:
        counted = [
            side for side in (expr.left, expr.right) if isinstance(side, ast.Count | ast.Share)
        ]
        if counted:
            group: Members = self.evaluator.group(counted[0].group, self.sample)
            size = self.evaluator.members(group.kind).bit_count()
            sure, doubt = group.members.bit_count(), group.doubtful.bit_count()
            amount = f"{sure}" if not doubt else f"{sure} to {sure + doubt}"
            yes = self.evaluator.world.ranks_of(group.kind, group.members)
            unknown = self.evaluator.world.ranks_of(group.kind, group.doubtful)
            detail = f"{amount} of {size}"
            if isinstance(counted[0], ast.Share) and size and not doubt:
                detail += f" ({sure / size:.1%})"
            if yes:
                detail += f": {yes.format(RUNS_SHOWN)}"
            return yes, unknown, "; ".join([detail, *self._variables(expr)])
        fields = [side.name for side in (expr.left, expr.right) if isinstance(side, ast.Field)]
        parts = [*map(self._field, fields), *self._variables(expr)]
        return NOBODY, NOBODY, "; ".join(part for part in parts if part)

    def _variables(self, expr: ast.Compare) -> list[str]:
        """The values of the variables that a comparison names."""
        values = self.evaluator.ruleset.variables
        found = []
        for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(side, ast.Variable):
                value = values[side.name]
                if isinstance(other, ast.Share) and isinstance(value, float):
                    text = f"{value * 100:.4g}%"
                else:
                    text = word(other.name if isinstance(other, ast.Field) else "", value)
                found.append(f"{side.text} is {text}")
        return found

    def _field(self, name: str) -> str:
        """The value of a fact of the job, in words."""
        evaluator = self.evaluator
        progress = evaluator.world.incident.progress
        if name == "log.stalled" and progress.stalled_seconds is not None:
            threshold = progress.threshold_seconds
            limit = "" if threshold is None else f", threshold {threshold:.0f} s"
            return f"no step for {progress.stalled_seconds:.0f} s{limit}"
        column = evaluator.column(name, "job", self.sample)
        for value, _ in column.items():
            return f"{name} is {word(name, value)}"
        return "; ".join(column.missing)


def reasons_of(evidence: Evidence) -> tuple[str, ...]:
    """Why a clause is unknown: the reasons of its undecided leaves, each once, with its ranks."""
    found: dict[str, RankSet] = {}
    for leaf in evidence.deciding():
        # Of several reasons nobody knows which ranks are whose.
        ranks = leaf.unknown if len(leaf.missing) < 2 else RankSet()
        for what in leaf.missing or (leaf.text,):
            found[what] = found.get(what, RankSet()) | ranks
    return tuple(what + _whose(ranks) for what, ranks in found.items())


def _whose(ranks: RankSet) -> str:
    if not ranks:
        return ""
    return f" (rank{'' if len(ranks) == 1 else 's'} {ranks.format(RUNS_SHOWN)})"
