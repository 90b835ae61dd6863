"""A log as large jobs write it: all ranks in one file, through several layers, with few faults."""

from __future__ import annotations

import random
from collections.abc import Iterator

_RANKS = 8
# How often each kind of line comes; a fault comes once in so many lines.
_WEIGHTS = {"iteration": 30, "nccl": 35, "ray": 25, "warning": 10}
_LINES_A_FAULT = 5000
_FAULTS = (
    "gpu07:411:502 [3] transport/net_ib.cc:1405 NCCL WARN NET/IB: Got completion from peer"
    " 10.0.0.7<4791> with status=12 opcode=0 len=0 vendor err 129",
    "[rank5]:[E501 10:00:01.123456789 ProcessGroupNCCL.cpp:629] [Rank 5] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000)",
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 212, in main\n'
    "    batch = next(batches)\n"
    "ConnectionResetError: [Errno 104] Connection reset by peer",
)


def mixed_lines() -> Iterator[str]:
    """Lines without end, the same at each run; steps rise throughout."""
    chance = random.Random(7)
    kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    step = 0
    while True:
        for kind in chance.choices(kinds, weights, k=_LINES_A_FAULT):
            step += kind == "iteration"
            yield _line(kind, chance.randrange(_RANKS), chance.randrange(10**6), step)
        yield chance.choice(_FAULTS)


def _line(kind: str, rank: int, number: int, step: int) -> str:
    loss = 2 + number / 1e6
    if kind == "iteration":
        return (
            f" [2026-05-01 10:{step // 60 % 60:02}:{step % 60:02}] iteration {step:8}/ 9000000 |"
            f" consumed samples: {step * 512:12} |"
            f" elapsed time per iteration (ms): {500 + loss:.1f} |"
            f" learning rate: 1.500000E-04 | global batch size:   512 | lm loss: {loss:.6E} |"
            " loss scale: 1.0 | grad norm: 0.512 | number of skipped iterations:   0 |"
        )
    if kind == "nccl":
        return (
            f"gpu{rank:02}:{4000 + rank}:{number} [{rank}] NCCL INFO Channel {number % 32:02}/0 :"
            f" {rank}[{rank}] -> {(rank + 1) % _RANKS}[{(rank + 1) % _RANKS}] via P2P/CUMEM/read"
        )
    if kind == "ray":
        return (
            f"(WorkerDict pid={4000 + rank}, ip=10.0.0.{rank})"
            f" INFO:2026-05-01 10:00:00,{number % 1000:03}:actor/policy"
            f" loss {loss:.4f}, response length {number % 4096}"
        )
    return (
        f"/usr/lib/python3/site-packages/torch/utils/checkpoint.py:{number % 900}: FutureWarning:"
        " `torch.cpu.amp.autocast(args...)` is deprecated. Please use another form."
    )
