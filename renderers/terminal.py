"""The diagnosis as a short text for standard output."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from whyhang.renderers.brief import Brief, Clause, Row, brief
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.truth import Truth

_RESET = "\x1b[0m"
_COLOURS = {"bold": "\x1b[1m", "dim": "\x1b[2m", "red": "\x1b[1;31m", "green": "\x1b[32m"}
_MARK_COLOURS = {Truth.TRUE: "green", Truth.FALSE: "red", Truth.UNKNOWN: "dim"}


def render_terminal(
    diagnosis: Diagnosis,
    *,
    color: bool = False,
    files: Sequence[str] = (),
    command: str | None = None,
    width: int = 100,
) -> Iterator[str]:
    """The lines, without line ends; escape sequences only with ``color``.

    Long sentences wrap at ``width`` columns, paths and clauses stay whole.
    """
    return _Writer(color=color, width=width).write(brief(diagnosis, files=files, command=command))


class _Writer:
    def __init__(self, *, color: bool, width: int) -> None:
        self._color = color
        self._width = max(width, 40)

    def write(self, facts: Brief) -> Iterator[str]:
        for line in self._wrap(facts.headline):
            yield self._paint(line, "red" if facts.is_hang else "bold")
        rule = f", rule {facts.rule}" if facts.rule else ""
        changed = f", with {', '.join(facts.overrides)}" if facts.overrides else ""
        yield from self._wrap(
            f"verdict {facts.verdict}, category {facts.category}, "
            f"confidence {facts.confidence}{rule}{changed}"
        )
        for line in self._wrap(", ".join(facts.job)):
            yield self._paint(line, "dim")
        if facts.summary:
            yield ""
            yield from self._wrap(facts.summary)
        yield from self._section("Suspects", _suspects(facts))
        if facts.nobody:
            yield ""
            yield from self._wrap(facts.nobody)
        yield from self._section("Sharing", facts.suspect_groups)
        yield from self._section("Where everybody stands", self._groups(facts))
        yield from self._section("Machines", facts.machines)
        yield from self._section("Contradictions", facts.contradictions)
        yield from self._section("Evidence", map(self._clause, facts.evidence))
        yield from self._section("Not decided", map(self._clause, facts.open))
        yield from self._section("Not seen", facts.not_seen)
        yield from self._section("Confidence lowered", facts.lowered)
        yield from self._section("Other rules", _other_rules(facts))
        yield from self._section("Training log", _log(facts))
        yield from self._section("Next steps", facts.next_steps)
        yield from self._section("Reports", facts.files)

    def _section(self, title: str, lines: Iterable[str]) -> Iterator[str]:
        body = list(lines)
        if not body:
            return
        yield ""
        yield self._paint(title, "bold")
        for line in body:
            yield from self._wrap(line, "  ", "    ")

    def _wrap(self, text: str, first: str = "", others: str = "") -> list[str]:
        return textwrap.wrap(
            text,
            self._width,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _groups(self, facts: Brief) -> Iterator[str]:
        for row in facts.groups:
            state = f", {row.state}" if row.state else ""
            role = f" [{row.role}]" if row.role else ""
            yield f"{_whose(row)}, {row.kind}: {row.position or 'position not known'}{state}{role}"
        if facts.groups_left:
            yield f"and {facts.groups_left} more groups"

    def _clause(self, clause: Clause) -> str:
        about = f"; {clause.about}" if clause.about else ""
        place = f" ({clause.place})" if clause.place else ""
        mark = self._paint(clause.mark, _MARK_COLOURS[clause.value])
        return f"{mark}: {clause.text}{about}{place}"

    def _paint(self, text: str, colour: str) -> str:
        return f"{_COLOURS[colour]}{text}{_RESET}" if self._color else text


def _suspects(facts: Brief) -> Iterator[str]:
    yield from map(_suspect, facts.suspects)
    if facts.suspects_left:
        yield f"{facts.suspects_left} more places are in verdict.json"


def _suspect(row: Row) -> str:
    where = f" on {row.nodes}" if row.nodes else ""
    kind = f", {row.kind}" if row.kind else ""
    position = f": {row.position}" if row.position else ""
    state = f", {row.state}" if row.state else ""
    return f"{_whose(row)}{where}{kind}{position}{state}"


def _whose(row: Row) -> str:
    if not row.number:
        return "no rank known"
    return f"rank {row.ranks}" if row.number == 1 else f"ranks {row.ranks} ({row.number})"


def _other_rules(facts: Brief) -> Iterator[str]:
    for rule in facts.also:
        yield f"also fired: {rule}"
    for name, summary in facts.suppressed:
        yield f"suppressed by {name}: {summary}" if summary else f"suppressed by {name}"
    for rules, because in facts.undecided:
        names = ", ".join(rules)
        yield f"undecided: {names}; missing: {because}" if because else f"undecided: {names}"


def _log(facts: Brief) -> Iterator[str]:
    yield from facts.log
    if facts.last_line:
        yield f"last line: {facts.last_line}"
