"""A checked set of rules: what the engine evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whyhang.rules.ast import Expr, Group
from whyhang.schemas.config import Config
from whyhang.schemas.evidence import Span
from whyhang.schemas.verdict import Category, Confidence, VerdictKind

VariableValue = bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameList:
    """An entry of ``lists:``: globs on ``module.function``, ``/regex/`` where marked by slashes.

    ``frames`` says whether the rules use it on frames (then its functions can be positions)
    rather than on strings such as phases.
    """

    name: str
    patterns: tuple[str, ...]
    why: str = ""
    frames: bool = True
    span: Span = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An entry of ``rules:``; ``when`` holds its ``for``, ``id`` starts with the pack's name."""

    id: str
    when: Expr
    verdict: VerdictKind
    category: Category = "other"
    confidence: Confidence = "high"
    suspects: Group | None = None
    refines: tuple[str, ...] = ()
    priority: int = 0
    summary: str = ""
    message: str = ""
    runbook: str = ""
    severity: str = ""
    keep: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    span: Span = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressRule:
    """An entry of ``suppress:``; when it is true, no hang is reported and it is listed.

    ``category`` is what the report says of the job then.
    """

    id: str
    when: Expr
    summary: str = ""
    category: Category = "other"
    span: Span = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """All that a ``hang.yaml`` and its packs say, resolved and free of errors.

    ``digest`` is ``sha256:…`` over the sources; equal sources give an equal digest. ``overrides``
    are the values of ``--set``, as ``name=value``.
    """

    config: Config = field(default_factory=Config)
    variables: Mapping[str, VariableValue] = field(default_factory=dict)
    lists: Mapping[str, FrameList] = field(default_factory=dict)
    defs: Mapping[str, Expr] = field(default_factory=dict)
    sets: Mapping[str, Group] = field(default_factory=dict)
    ignore: tuple[Group, ...] = ()
    suppress: tuple[SuppressRule, ...] = ()
    rules: tuple[Rule, ...] = ()
    digest: str = ""
    overrides: tuple[str, ...] = ()
