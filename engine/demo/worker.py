"""The reader of one rank: a process that hands batches to the trainer through a queue."""

from __future__ import annotations

import os
from multiprocessing.queues import Queue
from pathlib import Path


def _worker_loop(queue: Queue[list[float]], shards: Path, hang_step: int | None) -> None:
    """Read one shard per step, for ever."""
    step = 0
    while True:
        step += 1
        path = shards / ("stuck.fifo" if step == hang_step else "data.bin")
        queue.put(read_shard(path))


def read_shard(path: Path) -> list[float]:
    """Read a batch from storage. A named pipe stands for a server that never answers."""
    with open(path, "rb", buffering=0) as shard:  # noqa: PTH123 (the stack shall stay short)
        data = os.read(shard.fileno(), 256)
    return [byte / 255 for byte in data]
