"""What a test run found, as text, JSON and JUnit XML: one structure, three writers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from whyhang.engine.rule_coverage import ClauseCoverage, holes, share
from whyhang.engine.rule_mutants import Mutant
from whyhang.engine.rule_mutation import Mutation
from whyhang.engine.rule_tests import Outcome
from whyhang.engine.rule_trials import Mismatch
from whyhang.schemas.evidence import Evidence
from whyhang.schemas.truth import Truth

MARKS = {Truth.TRUE: "true ", Truth.FALSE: "false", Truth.UNKNOWN: "?    "}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """The run of one test file; what was not asked for is None.

    ``untested`` says of rules what no test expects of them.
    """

    file: str
    outcomes: tuple[Outcome, ...]
    coverage: tuple[ClauseCoverage, ...] | None = None
    mutation: Mutation | None = None
    untested: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """Whether anything is to be mended."""
        holes_in_tests = self.mutation is not None and bool(self.mutation.survivors)
        return any(o.failed for o in self.outcomes) or holes_in_tests or bool(self.untested)


# --- text -------------------------------------------------------------------------------------


def as_text(reports: Sequence[FileReport]) -> Iterator[str]:
    """Failures with what was found and why, then one line of sums for each file."""
    for report in reports:
        for outcome in report.outcomes:
            yield from _outcome(outcome)
        if report.coverage is not None:
            yield from _coverage(report.coverage)
        if report.mutation is not None:
            yield from _mutation(report.mutation)
        for line in report.untested:
            yield f"UNTESTED  {line}"
        yield summary(report)


def summary(report: FileReport) -> str:
    """The sums of one file in a line."""
    counts = _counts(report.outcomes)
    parts = [f"{number} {word}" for word, number in counts.items() if number or word == "passed"]
    if report.coverage is not None:
        parts.append(f"{share(report.coverage):.0%} of {len(report.coverage)} clauses covered")
    mutation = report.mutation
    if mutation is not None:
        parts.append(f"{mutation.killed} of {mutation.total} mutants noticed")
        if mutation.accepted:
            parts.append(f"{len(mutation.accepted)} accepted")
        if mutation.survivors:
            parts.append(f"{len(mutation.survivors)} survived")
    return f"{report.file}: {', '.join(parts)}"


def _counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    found = {"passed": 0, "failed": 0, "todo": 0, "todo that pass": 0}
    for outcome in outcomes:
        if outcome.test.todo:
            found["todo that pass" if outcome.agrees else "todo"] += 1
        else:
            found["passed" if outcome.agrees else "failed"] += 1
    return found


def _outcome(outcome: Outcome) -> Iterator[str]:
    test = outcome.test
    if outcome.agrees:
        if test.todo:
            yield f"TODO PASSES  {test.span}  {test.name}: take `todo` out"
        return
    yield f"{'TODO' if test.todo else 'FAIL'}  {test.span}  {test.name}"
    for mismatch in outcome.mismatches:
        yield from _mismatch(mismatch)


def _mismatch(mismatch: Mismatch) -> Iterator[str]:
    at = mismatch.expectation.at
    when = "" if at is None else f" at {at:g} s"
    yield f"  {mismatch.expectation.span}: {mismatch.what} of {mismatch.of}{when}"
    yield f"    expected  {mismatch.expected}"
    yield f"    found     {mismatch.found}"
    if mismatch.evidence is not None:
        for line in evidence_lines(mismatch.evidence):
            yield f"      {line}"


def evidence_lines(evidence: Evidence, depth: int = 0) -> Iterator[str]:
    """The clauses that made the value what it is, outermost first."""
    text = " ".join(evidence.text.split())
    why = "; ".join(dict.fromkeys(part for part in (evidence.detail, *evidence.missing) if part))
    deciding = [child for child in evidence.children if child.value is evidence.value]
    note = f"   {why}" if why and not deciding else ""
    yield f"{MARKS[evidence.value]} {'  ' * depth}{text}{note}"
    for child in deciding:
        yield from evidence_lines(child, depth + 1)


def _coverage(clauses: Sequence[ClauseCoverage]) -> Iterator[str]:
    for clause in holes(clauses):
        seen = (("true", clause.true), ("false", clause.false))
        never = " or ".join(word for word, was in seen if not was)
        yield f"UNCOVERED  {clause.span}: `{clause.text}` never decides by being {never}"


def _mutation(mutation: Mutation) -> Iterator[str]:
    for mutant in mutation.survivors:
        place = f"{mutant.span}: " if mutant.span.line else ""
        yield f"SURVIVED  {place}{mutant.title}"
    for mutant in mutation.accepted:
        yield f"ACCEPTED  {mutant.title}"
    for entry in mutation.needless:
        yield f"NEEDLESS  {entry.span}: a test notices `{entry.mutant}`: take it out of `accept`"


# --- JSON -------------------------------------------------------------------------------------


def as_json(reports: Sequence[FileReport]) -> str:
    """Everything, as one JSON document."""
    document = {
        "format": "whyhang.tests/1",
        "failed": any(report.failed for report in reports),
        "files": [_file(report) for report in reports],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _file(report: FileReport) -> dict[str, object]:
    found: dict[str, object] = {
        "file": report.file,
        "failed": report.failed,
        "counts": _counts(report.outcomes),
        "tests": [_test(outcome) for outcome in report.outcomes],
        "untested": list(report.untested),
    }
    if report.coverage is not None:
        found["coverage"] = {
            "share": round(share(report.coverage), 4),
            "clauses": [
                {
                    "text": one.text,
                    "file": one.span.file,
                    "line": one.span.line,
                    "column": one.span.column,
                    "true": one.true,
                    "false": one.false,
                }
                for one in report.coverage
            ],
        }
    if report.mutation is not None:
        found["mutants"] = {
            "total": report.mutation.total,
            "killed": report.mutation.killed,
            "survived": [_mutant(mutant) for mutant in report.mutation.survivors],
            "accepted": [_mutant(mutant) for mutant in report.mutation.accepted],
            "needless": [entry.mutant for entry in report.mutation.needless],
        }
    return found


def _mutant(mutant: Mutant) -> dict[str, object]:
    span = mutant.span
    return {
        "mutant": mutant.title,
        "file": span.file or None,
        "line": span.line or None,
        "column": span.column or None,
    }


def _test(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.test.name,
        "line": outcome.test.span.line,
        "todo": outcome.test.todo,
        "agrees": outcome.agrees,
        "mismatches": [
            {
                "what": one.what,
                "of": one.of,
                "line": one.expectation.span.line,
                "at": one.expectation.at,
                "expected": one.expected,
                "found": one.found,
                "evidence": [] if one.evidence is None else list(evidence_lines(one.evidence)),
            }
            for one in outcome.mismatches
        ],
    }


# --- JUnit ------------------------------------------------------------------------------------


def as_junit(reports: Sequence[FileReport]) -> Iterator[str]:
    """JUnit XML, which CI systems read: a suite for each file, a case for each test and hole."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<testsuites>"
    for report in reports:
        cases = list(_cases(report))
        failures = sum("<failure" in case for case in cases)
        skipped = sum("<skipped" in case for case in cases)
        yield (
            f'  <testsuite name={quoteattr(report.file)} tests="{len(cases)}" '
            f'failures="{failures}" skipped="{skipped}">'
        )
        yield from cases
        yield "  </testsuite>"
    yield "</testsuites>"


def _cases(report: FileReport) -> Iterator[str]:
    for outcome in report.outcomes:
        inner = ""
        if not outcome.agrees:
            first = outcome.mismatches[0]
            message = f"{first.what}: expected {first.expected}, found {first.found}"
            text = "\n".join(line for one in outcome.mismatches for line in _mismatch(one))
            tag = "skipped" if outcome.test.todo else "failure"
            inner = f"<{tag} message={quoteattr(_clean(message))}>{escape(_clean(text))}</{tag}>"
        yield _case(report.file, outcome.test.name, inner)
    survivors = () if report.mutation is None else report.mutation.survivors
    for mutant in survivors:
        inner = f"<failure message={quoteattr(_clean(f'no test notices it at {mutant.span}'))}/>"
        yield _case(report.file, mutant.title, inner)
    for line in report.untested:
        yield _case(report.file, line, '<failure message="untested"/>')


def _case(file: str, name: str, inner: str) -> str:
    head = f"    <testcase classname={quoteattr(file)} name={quoteattr(_clean(name))}"
    return f"{head}>{inner}</testcase>" if inner else f"{head}/>"


def _clean(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(char for char in text if char >= " " or char in "\n\t")
