"""Loads and checks rules: ``hang.yaml``, what it includes, and the packs that ship with whyhang."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from whyhang.rules.assemble import Assembly, assemble
from whyhang.rules.build import build
from whyhang.rules.findings import (
    BrokenPack,
    Finding,
    RuleErrors,
    format_findings,
    sorted_findings,
    with_sources,
)
from whyhang.rules.ruleset import Ruleset
from whyhang.rules.sources import DEFAULT, Source, included, is_builtin, read_source


def load_ruleset(
    path: Path | None = None, *, overrides: Mapping[str, str] | None = None
) -> Ruleset:
    """The checked rules of a ``hang.yaml``; without one those of the built-in pack.

    ``overrides`` are the values of ``--set``, by variable. Raises RuleErrors with all findings,
    UsageError for a file that cannot be read or an unknown variable, BrokenPack if a pack that
    ships with whyhang is itself at fault.
    """
    source = included(DEFAULT, None) if path is None else read_source(path)
    ruleset, findings = load_source(source, overrides or {})
    if _has_errors(findings):
        _refuse_broken_packs(findings)
        raise RuleErrors(findings)
    return ruleset


def check_files(
    paths: Iterable[Path], *, overrides: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """All findings in the files and in what they include, lints among them.

    Raises UsageError for unreadable files.
    """
    findings: list[Finding] = []
    for source in [read_source(path) for path in paths]:
        found = load_source(source, overrides or {}, lints=True)[1]
        _refuse_broken_packs(found)
        findings.extend(found)
    return sorted_findings(findings)


def load_source(
    source: Source, overrides: Mapping[str, str], *, lints: bool = False
) -> tuple[Ruleset, tuple[Finding, ...]]:
    """The rules of a source and all findings; with errors among them the rules are a part only.

    ``lints`` asks for warnings about what is allowed and yet probably not meant.
    """
    assembly = assemble(source)
    ruleset, findings = build(assembly, overrides, lints=lints)
    lines = {document.file: document.lines for document in assembly.documents}
    digest = _digest(assembly, overrides)
    given = tuple(f"{name}={value}" for name, value in sorted(overrides.items()))
    ruleset = replace(ruleset, digest=digest, overrides=given)
    return ruleset, sorted_findings(with_sources(findings, lines))


def _has_errors(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _refuse_broken_packs(findings: Iterable[Finding]) -> None:
    """Raise BrokenPack if a built-in pack has errors even by itself.

    Errors in a pack's text may as well be the doing of the file that changes its definitions.
    """
    blamed = {
        finding.span.file
        for finding in findings
        if finding.severity == "error" and is_builtin(finding.span.file)
    }
    for name in sorted(blamed):
        found = load_source(included(name, None), {})[1]
        if _has_errors(found):
            raise BrokenPack(
                f"internal error: the pack {name} is broken:\n" + "\n".join(format_findings(found)),
                "this is a fault of whyhang, please report it",
            )


def _digest(assembly: Assembly, overrides: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for document in assembly.documents:
        content = "\n".join(document.lines).encode()
        digest.update(f"file {len(content)}\n".encode() + content)
    for name, value in sorted(overrides.items()):
        digest.update(f"set {name}={value}\n".encode())
    return f"sha256:{digest.hexdigest()}"
