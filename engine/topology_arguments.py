"""The parallel groups that a command line asks for: Megatron, DeepSpeed, NeMo, torchtitan, vLLM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from whyhang.engine.topology_claim import Claim
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.topology import RANK_ORDERS, RankOrder

Reading: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[RankOrder, ...]]

SOURCE = "the command line"
_DATA_INSIDE, _PIPELINE_INSIDE = RANK_ORDERS

# Options by the last part of their name. Those of training frameworks come with an order of ranks,
# which is the same in all of them; the others are used by trainers and servers alike.
_TRAINING = {
    "tensor_model_parallel_size": "tensor",
    "pipeline_model_parallel_size": "pipeline",
    "context_parallel_size": "context",
    "ds_sequence_parallel_size": "context",
    "expert_model_parallel_size": "expert",
    "expert_tensor_parallel_size": "expert_tensor",
    "model_parallel_size": "tensor",
    "pipe_parallel_size": "pipeline",
    "tensor_parallel_degree": "tensor",
    "pipeline_parallel_degree": "pipeline",
    "context_parallel_degree": "context",
    "expert_parallel_degree": "expert",
    "expert_tensor_parallel_degree": "expert_tensor",
    "parallelism_config_tp_size": "tensor",
    "parallelism_config_cp_size": "context",
}
_COMMON = {
    "tensor_parallel_size": "tensor",
    "pipeline_parallel_size": "pipeline",
    "tp_size": "tensor",
    "pp_size": "pipeline",
}
_SERVING = {"tp": "tensor", "pp": "pipeline"}
_OTHER_ORDER = "use_tp_pp_dp_mapping"
_KNOWN = frozenset((*_TRAINING, *_COMMON, *_SERVING, _OTHER_ORDER))

_SERVER = re.compile(r"(?:^|[/.])(?:vllm|sglang)(?:$|[/.])")
_DEEPSPEED = re.compile(r"deepspeed")
# A trainer that also generates has an engine with groups of its own for that.
_ELSEWHERE = frozenset(("rollout", "generation", "inference", "vllm", "sglang"))


def claim_of_arguments(incident: Incident) -> Claim | Missing | None:
    """What the trainers' command lines say, else the launchers'; None if they do not tell."""
    for kind in ("trainer", "launcher"):
        lines = {
            process.cmdline
            for sample in incident.samples[-1:]
            for process in sample.processes
            if process.kind == kind and process.cmdline
        }
        found = _agreed({claim for line in lines if (claim := read_arguments(line)) is not None})
        if found is not None:
            return found
    return None


def _agreed(readings: Iterable[Reading]) -> Claim | Missing | None:
    """One claim of several command lines."""
    sizes: dict[str, int] = {}
    orders = set(RANK_ORDERS)
    for reading in sorted(readings):
        orders &= set(reading[1])
        for name, size in reading[0]:
            if sizes.setdefault(name, size) != size:
                return Missing(f"{SOURCE} says {name} {sizes[name]} and {name} {size}")
    if not sizes:
        return None
    if not orders:
        return Missing(f"{SOURCE} says two orders of ranks")
    return Claim(
        source=SOURCE, sizes=sizes, orders=tuple(each for each in RANK_ORDERS if each in orders)
    )


@lru_cache(maxsize=256)
def read_arguments(words: tuple[str, ...]) -> Reading | None:
    """The sizes and the orders of ranks that one command line allows; None if it says nothing.

    Of an option that is given twice the last counts; options of different sections that differ
    both stand.
    """
    given = dict(_options(words))
    serving = any(map(_SERVER.search, words))
    names = {**_TRAINING, **_COMMON, **(_SERVING if serving else {})}
    sizes: set[tuple[str, int]] = set()
    used: set[str] = set()
    other_order = False
    for path, value in given.items():
        last = path[-1]
        if last == _OTHER_ORDER:
            other_order = value.lower() != "false"
        elif last in names and re.fullmatch(r"[1-9]\d{0,6}", value):
            sizes.add((names[last], int(value)))
            used.add(last)
    if not sizes:
        return None
    if "expert_parallel_degree" in used and "expert_tensor" not in dict(sizes):
        # Releases differ in whether experts are cut by the common tensor groups as well.
        sizes = {(name, size) for name, size in sizes if name != "expert"}
    if other_order:
        return tuple(sorted(sizes)), (_PIPELINE_INSIDE,)
    if used & _TRAINING.keys() or any(map(_DEEPSPEED.search, words)):
        return tuple(sorted(sizes)), (_DATA_INSIDE,)
    return tuple(sorted(sizes)), (_PIPELINE_INSIDE,) if serving else RANK_ORDERS


def _options(words: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The options that may tell: ``--name value``, ``--name=value`` and ``section.name=value``."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        path = tuple(name.lstrip("-+").replace("-", "_").lower().split("."))
        if path[-1] not in _KNOWN or _ELSEWHERE & set(path):
            continue
        if not equals:
            if not word.startswith("-"):
                continue
            value = words[number + 1] if number + 1 < len(words) else ""
        yield path, value
