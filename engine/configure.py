"""Reads hang.yaml in a process of its own, so that no mistake in it can delay or end the job.

The supervisor stays small that way, too: the language's libraries never enter it. Run as a
module's ``main(path)`` it prints one JSON object: ``config`` and ``findings`` (text for people).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from whyhang.collectors.own_module import module_command
from whyhang.schemas.config import (
    CheckpointConfig,
    CollectConfig,
    Config,
    DetectConfig,
    JobConfig,
    OnHangConfig,
    ProgressConfig,
    StoreConfig,
    TopologyConfig,
)

DEFAULT_PATH = "hang.yaml"
LOAD_SECONDS = 30.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The sections to use, and why they are only the defaults (``trouble``, text for people)."""

    config: Config
    trouble: str = ""


def configure(path: Path) -> Configured:
    """Read the sections of a hang.yaml; the defaults and the trouble where it is not usable."""
    command = module_command("whyhang.engine.configure", str(path))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOAD_SECONDS
        )
        answer = json.loads(done.stdout)
        if "config" in answer:
            return Configured(config=config_from(answer["config"]))
        trouble = str(answer["findings"])
    except subprocess.TimeoutExpired:
        trouble = f"{path}: not read within {LOAD_SECONDS:.0f} s"
    except (OSError, ValueError, TypeError, KeyError) as error:
        trouble = f"{path}: cannot be read ({error})"
    return Configured(config=Config(), trouble=trouble)


def config_to(config: Config) -> dict[str, Any]:
    """The sections as a JSON object, without the report's."""
    return {**asdict(config), "report": {}}


def config_from(data: Mapping[str, Any]) -> Config:
    """The sections from what :func:`config_to` made."""
    progress = dict(data["progress"])
    checkpoint = progress.pop("checkpoint", None)
    return Config(
        job=_section(JobConfig, data["job"]),
        progress=_section(
            ProgressConfig,
            {**progress, "checkpoint": CheckpointConfig(**checkpoint) if checkpoint else None},
        ),
        detect=_section(DetectConfig, data["detect"]),
        collect=_section(CollectConfig, data["collect"]),
        on_hang=_section(OnHangConfig, data["on_hang"]),
        store=_section(StoreConfig, data["store"]),
        topology=_section(TopologyConfig, data["topology"]),
    )


def _section(kind: type[T], data: Mapping[str, Any]) -> T:
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name in names
    }
    return kind(**values)


def main(arguments: list[str]) -> int:
    """Print the sections of a hang.yaml, or the findings in it."""
    from whyhang.rules.load import load_ruleset
    from whyhang.schemas.errors import WhyhangError

    try:
        answer: dict[str, object] = {"config": config_to(load_ruleset(Path(arguments[0])).config)}
    except WhyhangError as error:
        hint = f"\n  help: {error.hint}" if error.hint else ""
        answer = {"findings": f"{error.message}{hint}"}
    sys.stdout.write(json.dumps(answer))
    return 0
