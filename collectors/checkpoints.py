"""The newest checkpoint below a directory.

Run as a process of its own (:func:`main`): the file system that it looks at may be the one that
hangs. What it does is bounded, however many checkpoints there are.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.missing import Missing

# Of a directory so many entries are looked at, of each checkpoint so many files.
_MOST_ENTRIES = 4096
_MOST_FILES = 64
# Below the configured directory: `ckpt/`, `ckpt/run-7/`.
_DEPTH = 2
# `global_step100`, `checkpoint-100`, `iter_0000100`, `epoch=3-step=900.ckpt`, `model_0004999.pth`;
# an epoch is no step.
_STEP = re.compile(
    r"(?i)(?:global[-_]?step|step|iter(?:ation)?|checkpoint|ckpt|model)[-_=]?(\d{1,15})(?!\d)"
)
_BARE_STEP = re.compile(r"(\d{1,15})")
_NAMED = re.compile(
    r"(?i)checkpoint|ckpt|epoch|\.(?:pt|pth|bin|safetensors)$|^(?:last|latest|best)\b"
)
_UNFINISHED = re.compile(r"(?i)^\.|tmp|temp|partial|incomplete")


def newest_checkpoint(directory: Path, now: float) -> Checkpoint | Missing:
    """The checkpoint that was written last; ``now`` is in seconds since 1970."""
    try:
        found = list(islice(_candidates(directory, _DEPTH), _MOST_ENTRIES))
    except OSError as error:
        return Missing(f"{directory}: {error.strerror}")
    if not found:
        return Missing(f"{directory}: no checkpoint was found")
    written, name, step = max(found, key=lambda one: (one[0], -1 if one[2] is None else one[2]))
    return Checkpoint(name=name, step=step, age_seconds=round(max(0.0, now - written), 1))


def step_in(name: str) -> int | None:
    """The step that a checkpoint's name tells."""
    match = _BARE_STEP.fullmatch(name) or _STEP.search(name)
    return None if match is None else int(match[1])


def _candidates(directory: Path, depth: int) -> Iterator[tuple[float, str, int | None]]:
    """When each was written last, its name and its step."""
    below: list[Path] = []
    with os.scandir(directory) as entries:
        for entry in islice(entries, _MOST_ENTRIES):
            if _UNFINISHED.search(entry.name):
                continue
            step = step_in(entry.name)
            if step is not None or _NAMED.search(entry.name):
                yield _written(entry), entry.name, step
            elif entry.is_dir(follow_symlinks=False):
                below.append(Path(entry.path))
    if depth > 1:
        for path in below:
            yield from _candidates(path, depth - 1)


def _written(entry: os.DirEntry[str]) -> float:
    """When it was written last: of a directory its own time is that of its first file."""
    times = [entry.stat().st_mtime]
    if entry.is_dir():
        with os.scandir(entry.path) as files:
            times += [file.stat().st_mtime for file in islice(files, _MOST_FILES)]
    return max(times)


def main(arguments: Sequence[str]) -> int:
    """Print what was found below the given directory as JSON."""
    found = newest_checkpoint(Path(arguments[0]), time.time())
    if isinstance(found, Missing):
        answer: dict[str, object] = {"reason": found.reason}
    else:
        answer = {"name": found.name, "step": found.step, "age_seconds": found.age_seconds}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0
