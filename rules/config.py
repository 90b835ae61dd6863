"""The sections of hang.yaml that are not rules, as typed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from whyhang.rules.assemble import Item
from whyhang.rules.quantities import parse_duration, parse_size
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
from whyhang.schemas.topology import DIMENSIONS
from whyhang.schemas.words import ProcessKind

T = TypeVar("T")
Convert = Callable[[Item], Any]


def build_config(top: Mapping[str, Item]) -> Config:
    """The sections of a document that has no errors; what is not given has its default."""
    return Config(
        job=_section(JobConfig, top.get("job"), {"id": _text, "name": _text}),
        progress=_progress(top.get("progress")),
        detect=_detect(top.get("detect")),
        collect=_section(
            CollectConfig,
            top.get("collect"),
            {"native": _text, "timeout": _seconds, "kinds": _kinds, "ras": _text, "gpu": _text},
        ),
        on_hang=_on_hang(top.get("on_hang")),
        store=_section(
            StoreConfig,
            top.get("store"),
            {"path": _text, "keep": _seconds, "max_size": _bytes, "exchange": _optional_text},
        ),
        topology=topology_of(top.get("topology")),
        report={name: item.value for name, item in _parts(top.get("report")).items()},
    )


def _section(make: Callable[..., T], item: Item | None, convert: Mapping[str, Convert]) -> T:
    parts = _parts(item)
    return make(**{name: read(parts[name]) for name, read in convert.items() if name in parts})


def _progress(item: Item | None) -> ProgressConfig:
    return _section(
        ProgressConfig,
        item,
        {"log": _texts, "preset": _text, "pattern": _optional_text, "checkpoint": _checkpoint},
    )


def _checkpoint(item: Item) -> CheckpointConfig | None:
    if item.value is None:
        return None
    return _section(CheckpointConfig, item, {"path": _text, "max_age": _seconds})


def _detect(item: Item | None) -> DetectConfig:
    times = ("floor", "ceiling", "first_step", "warmup")
    return _section(
        DetectConfig,
        item,
        {
            "mode": _text,
            "stall": _seconds_or_auto,
            "confirm": _seconds_or_auto,
            "phases": _phases,
            **dict.fromkeys(times, _seconds),
        },
    )


def _on_hang(item: Item | None) -> OnHangConfig:
    notify = _parts(_parts(item).get("notify"))
    return _section(
        lambda **given: OnHangConfig(
            **given,
            notify_run=notify["run"].text if "run" in notify else None,
            notify_post=notify["post"].text if "post" in notify else None,
        ),
        item,
        {"action": _text, "grace": _seconds},
    )


def topology_of(item: Item | None) -> TopologyConfig:
    """The sizes of parallel groups that a mapping states."""
    if item is None or not _parts(item):
        return TopologyConfig()
    place = f"{item.key_span.file}:{item.key_span.line}"
    return _section(
        lambda **given: TopologyConfig(**given, place=place),
        item,
        {**dict.fromkeys(DIMENSIONS, lambda part: cast("int", part.value)), "order": _text},
    )


def _parts(item: Item | None) -> dict[str, Item]:
    return {} if item is None else item.mapping()


def _text(item: Item) -> str:
    return item.text


def _optional_text(item: Item) -> str | None:
    return None if item.value is None else item.text


def _texts(item: Item) -> tuple[str, ...]:
    return tuple(one.text for one in item.sequence())


def _kinds(item: Item) -> tuple[ProcessKind, ...]:
    return cast("tuple[ProcessKind, ...]", _texts(item))


def _seconds(item: Item) -> float:
    return parse_duration(item.text)


def _seconds_or_auto(item: Item) -> float | None:
    return None if item.text == "auto" else parse_duration(item.text)


def _bytes(item: Item) -> int:
    return parse_size(item.text)


def _phases(item: Item) -> dict[str, float]:
    return {name: parse_duration(one.text) for name, one in item.mapping().items()}
