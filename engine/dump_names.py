"""What the names of dump files tell: ``rank3.json``, ``3.txt``, ``node1_rank3.txt``, …"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from whyhang.schemas.rankset import MAX_RANK

# No rank has more digits than this; an int() of thousands of them raises.
_NUMBER = r"(\d{1,18})"
_FLAGS = re.IGNORECASE | re.ASCII
_RANK_IN_NAME = (
    re.compile(rf"(?<!local)(?<!local[-_.])rank[-_.]?{_NUMBER}", _FLAGS),
    re.compile(rf"(?:gpu|rank)[-_.]?{_NUMBER}(?!.*gpu)", _FLAGS),
    re.compile(rf"{_NUMBER}\D*\Z", _FLAGS),
)
# The number of a machine and that of a GPU on it.
_MACHINE_AND_GPU = re.compile(
    rf"(?:worker|node|host|machine|pod)[-_.]?{_NUMBER}\D*?(?:gpu|local[-_.]?rank)[-_.]?{_NUMBER}",
    _FLAGS,
)
_NODE = re.compile(r"(?:\A|[-_.])((?:node|host)[-_]?\d{1,9})(?=[-_.])", _FLAGS)


def ranks_of(files: Iterable[Path]) -> Mapping[Path, int | None]:
    """The rank that each file's name carries, None where it carries none.

    Where names count machines and the GPUs of each, and GPU numbers occur more than once, the
    rank is counted through: GPU 3 of machine 1 with eight GPUs each is rank 11.
    """
    listed = tuple(files)
    plain = {file: rank_in(file.stem) for file in listed}
    pairs = {file: _machine_and_gpu(file.stem) for file in listed}
    known = [pair for pair in pairs.values() if pair is not None]
    gpus = {gpu for _, gpu in known}
    if len(known) < len(listed) or len(gpus) == len(known) or len(set(known)) < len(known):
        return plain
    size = max(gpus) + 1
    counted = {file: pair[0] * size + pair[1] for file, pair in pairs.items() if pair is not None}
    return plain if max(counted.values()) > MAX_RANK else counted


def rank_in(stem: str) -> int | None:
    """The rank that a file name carries: after ``rank``, after ``gpu``, else its last number."""
    for pattern in _RANK_IN_NAME:
        match = pattern.search(stem)
        if match is not None and int(match[1]) <= MAX_RANK:
            return int(match[1])
    return None


def node_in(stem: str) -> str | None:
    """The node before the rank: ``node1`` of ``node1_rank3``."""
    match = _NODE.search(stem)
    return None if match is None else match[1]


def _machine_and_gpu(stem: str) -> tuple[int, int] | None:
    match = _MACHINE_AND_GPU.search(stem)
    return None if match is None else (int(match[1]), int(match[2]))
