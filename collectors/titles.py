"""Ranks that stand in no environment: in process titles and in arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from whyhang.collectors.text_dump_headers import labels_in

# Ray's workers train in an actor; vLLM's and SGLang's processes name their place in the model.
RAY_TRAINER = re.compile(r"ray::(?:\w*TrainWorker|\w*WorkerDict|\w*RolloutWorker)")
PLACED = re.compile(r"(?:VLLM|vllm)::Worker|sglang::scheduler")
# Runs the model itself where it has no workers below it.
ENGINE = re.compile(r"(?:VLLM|vllm)::EngineCore")
_LOCAL_RANK = re.compile(r"--local[-_]rank(?:=(\d{1,7}))?\Z")
# The outermost first: with two stages of four, PP1 TP2 is rank 6.
_AXES = ("DP", "PP", "TP")


def title_of(cmdline: Sequence[str] | None, name: str = "") -> str:
    """The title that a process gave itself: the first word of its command line."""
    return cmdline[0] if cmdline else name


def local_rank_in(cmdline: Sequence[str] | None) -> int | None:
    """The number after ``--local_rank``, as DeepSpeed's and older launchers give it."""
    words = tuple(cmdline or ())
    for place, word in enumerate(words):
        match = _LOCAL_RANK.match(word)
        if match is None:
            continue
        value = match[1] or (words[place + 1] if place + 1 < len(words) else "")
        if value.isascii() and value.isdigit() and len(value) < 8:
            return int(value)
    return None


def ranks_by_title(titles: Mapping[int, str]) -> Mapping[int, int]:
    """The rank of each process of one engine, by pid, where its titles tell them all apart.

    ``sglang::scheduler_PP1_TP2`` beside its peers; nothing where two would be the same, or where
    an axis is not told whole.
    """
    places = {pid: dict(labels_in(title)) for pid, title in titles.items()}
    if len(places) == 1:
        (pid,) = places
        return {pid: 0} if not any(places[pid].values()) else {}
    sizes = [
        1 + max((place.get(axis, 0) for place in places.values()), default=0) for axis in _AXES
    ]
    ranks = {}
    for pid, place in places.items():
        rank = 0
        for axis, size in zip(_AXES, sizes, strict=True):
            rank = rank * size + place.get(axis, 0)
        ranks[pid] = rank
    return ranks if sorted(ranks.values()) == list(range(len(ranks))) else {}
