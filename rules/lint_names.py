"""Lints about names and patterns: H301 unused, H308 unknown functions, H312 regexes."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.rules import ast
from whyhang.rules.assemble import Item
from whyhang.rules.catalogue import catalogue, claims_to_be_known
from whyhang.rules.cycles import walk
from whyhang.rules.findings import Finding
from whyhang.rules.lint_input import LintInput, lint_finding
from whyhang.rules.patterns import is_regex
from whyhang.rules.regexes import as_globs, is_explosive
from whyhang.rules.suggest import did_you_mean
from whyhang.schemas.evidence import Span

# Lists that the engine itself asks for.
ENGINE_LISTS = ("transparent", "main_threads")


def lint_unused(given: LintInput) -> Iterator[Finding]:
    """H301: lists, definitions and sets that no rule needs."""
    used = set(_used(given))
    homes: list[tuple[str, str, Span]] = []
    homes += [("list", name, raw.span) for name, raw in given.assembly.lists.items()]
    homes += [("def", name, item.key_span) for name, item in given.assembly.defs.items()]
    homes += [("set", name, item.key_span) for name, item in given.assembly.sets.items()]
    packs = given.packs()
    for what, name, span in homes:
        if f"{what} {name}" in used or (what == "list" and name in ENGINE_LISTS):
            continue
        # A pack's names are also there for those who include it.
        yield lint_finding(
            "H301",
            f"no rule uses the {what} `{name}`",
            span,
            "use it or delete it",
            "info" if span.file in packs else "warning",
        )


def _used(given: LintInput) -> Iterator[str]:
    """What rules, suppressions and ignored groups lead to, as ``def x``."""
    rules = given.ruleset
    waiting: list[ast.Node] = [
        *rules.ignore,
        *given.whens(),
        *(rule.suspects for rule in rules.rules if rule.suspects is not None),
        *given.disabled,
    ]
    seen: set[str] = set()
    while waiting:
        for node in walk(waiting.pop()):
            key, body = _named(node, given)
            if key and key not in seen:
                seen.add(key)
                yield key
                if body is not None:
                    waiting.append(body)


def _named(node: ast.Node, given: LintInput) -> tuple[str, ast.Node | None]:
    if isinstance(node, ast.Ref) and node.name in given.ruleset.defs:
        return f"def {node.name}", given.ruleset.defs[node.name]
    if isinstance(node, ast.Named):
        return f"set {node.name}", given.ruleset.sets.get(node.name)
    if isinstance(node, ast.ListRef):
        return f"list {node.name}", None
    return "", None


def lint_patterns(given: LintInput) -> Iterator[Finding]:
    """H308 and H312 in the patterns of lists."""
    for name, raw in given.assembly.lists.items():
        frames = given.ruleset.lists[name].frames
        for item in raw.patterns:
            if not given.is_own(item.span):
                continue
            if is_regex(item.text):
                yield from _regex(item.text[1:-1], item.span, frames=frames)
            elif frames and claims_to_be_known(item.text):
                yield from _unknown_function(item)


def _unknown_function(item: Item) -> Iterator[Finding]:
    known = catalogue()
    if not known.has_match(item.text):
        yield lint_finding(
            "H308",
            f"`{item.text}` matches no function of torch or nccl that whyhang knows",
            item.span,
            did_you_mean(item.text, _near(item.text, known.functions)),
        )


def _near(pattern: str, functions: tuple[str, ...]) -> list[str]:
    """Functions of the same module, else of the same last name: comparing all takes too long."""
    module, _, last = pattern.rpartition(".")
    near = [name for name in functions if name.rpartition(".")[0] == module]
    return near or [name for name in functions if name.rpartition(".")[2] == last]


def lint_regexes(given: LintInput) -> Iterator[Finding]:
    """H312 in conditions."""
    for condition, _ in given.conditions():
        for node in walk(condition):
            if isinstance(node, ast.Has) and isinstance(node.pattern, ast.Regex):
                yield from _regex(node.pattern.pattern, node.pattern.span, frames=True, one=True)
            elif isinstance(node, ast.Matches):
                yield from _regex(node.pattern.pattern, node.pattern.span, frames=False)


def _regex(pattern: str, span: Span, *, frames: bool, one: bool = False) -> Iterator[Finding]:
    if is_explosive(pattern):
        yield lint_finding(
            "H312",
            "a repetition inside a repetition: this pattern can take for ever",
            span,
            "write it with one repetition",
        )
        return
    globs = as_globs(pattern) if frames else ()
    if globs and not (one and len(globs) > 1):
        shown = ", ".join(f'"{glob}"' for glob in globs)
        yield lint_finding("H312", "a glob says the same", span, f"write {shown}")
