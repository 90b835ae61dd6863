"""The typed sections of ``hang.yaml`` that are not rules. Durations are seconds, sizes bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whyhang.schemas.topology import RankOrder
from whyhang.schemas.words import ProcessKind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """``job:``; a leading ``$`` names an environment variable, resolved when the job starts."""

    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """``progress.checkpoint:``; where checkpoints are written and how old the newest may get."""

    path: str | None = None
    max_age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressConfig:
    """``progress:``; ``log`` holds globs, ``pattern`` a regex with named groups (``step``, …)."""

    log: tuple[str, ...] = ()
    preset: str = "auto"
    pattern: str | None = None
    checkpoint: CheckpointConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectConfig:
    """``detect:``; ``stall`` and ``confirm`` are None for ``auto``."""

    mode: Literal["advanced", "log"] = "advanced"
    stall: float | None = None
    floor: float = 120.0
    ceiling: float = 3600.0
    first_step: float = 3600.0
    warmup: float = 1800.0
    confirm: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectConfig:
    """``collect:``."""

    native: Literal["auto", "always", "never"] = "auto"
    timeout: float = 20.0
    kinds: tuple[ProcessKind, ...] = ("trainer", "dataloader", "checkpoint", "compile_worker")
    ras: Literal["auto", "never", "force"] = "auto"
    gpu: Literal["auto", "never"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyConfig:
    """``topology:``; None where nothing is said. ``place`` is where it stands, for messages."""

    tensor: int | None = None
    context: int | None = None
    expert: int | None = None
    data: int | None = None
    pipeline: int | None = None
    order: RankOrder | None = None
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHangConfig:
    """``on_hang:``; ``action`` is what is done to the job, nothing by default."""

    action: Literal["none", "stop"] = "none"
    grace: float = 120.0
    notify_run: str | None = None
    notify_post: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """``store:``; where incidents are kept, how long and how much."""

    path: str = ".whyhang"
    keep: float = 30 * 86400.0
    max_size: int = 5 * 10**9
    exchange: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of ``hang.yaml`` but the rules."""

    job: JobConfig = JobConfig()
    progress: ProgressConfig = ProgressConfig()
    detect: DetectConfig = field(default_factory=DetectConfig)
    collect: CollectConfig = CollectConfig()
    on_hang: OnHangConfig = OnHangConfig()
    store: StoreConfig = StoreConfig()
    topology: TopologyConfig = TopologyConfig()
    report: Mapping[str, object] = field(default_factory=dict)
