"""What is wrong in a ``hang.yaml``: findings with a position, and how they are printed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from whyhang.schemas.errors import WhyhangError
from whyhang.schemas.evidence import Span

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. ``code`` is stable (``H201``), ``help`` the remedy, ``source`` the line meant."""

    code: str
    message: str
    span: Span = Span()
    severity: Severity = "error"
    help: str = ""
    source: str | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Findings are listed by file, line and column."""
        return self.span.file, self.span.line, self.span.column, self.code, self.message


class RuleErrors(WhyhangError):
    """A ``hang.yaml`` cannot be used; ``findings`` holds all that is wrong, sorted."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted_findings(findings)
        super().__init__("\n".join(format_findings(self.findings)))


class BrokenPack(WhyhangError):
    """A pack that ships with whyhang is itself at fault: an internal error."""

    exit_status = 3


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, by file, line and column."""
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def with_sources(
    findings: Iterable[Finding], lines: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """The findings with the source lines they are about; ``lines`` is by file."""
    for finding in findings:
        here = lines.get(finding.span.file, ())
        if finding.source is None and 0 < finding.span.line <= len(here):
            yield replace(finding, source=here[finding.span.line - 1])
        else:
            yield finding


def format_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings as lines for people: position, message, source line, carets, help."""
    for finding in findings:
        yield from format_finding(finding)


def format_finding(finding: Finding) -> Iterator[str]:
    """One finding as lines for people."""
    span = finding.span
    place = span.file or "hang.yaml"
    if span.line:
        place += f":{span.line}:{span.column}"
    yield f"{place}: {finding.severity}[{finding.code}]: {finding.message}"
    if finding.source is not None and span.line:
        yield f"{span.line:>6} | {finding.source}"
        yield f"       | {carets(finding.source, span.column, span.length)}"
    # Every error leaves its reader with something to do.
    more = f"`whyhang explain {finding.code}` says more" if finding.severity == "error" else ""
    if finding.help or more:
        yield f"       = help: {finding.help or more}"


def carets(source: str, column: int, length: int) -> str:
    """The line of carets below ``source``; tabs stay tabs and wide characters count double."""
    before = source[: column - 1].ljust(column - 1)
    padding = "".join("\t" if char == "\t" else " " * _width(char) for char in before)
    marked = source[column - 1 : column - 1 + length]
    return padding + "^" * max(1, sum(map(_width, marked)))


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
