"""Starts one process per rank and waits for them, as torchrun does."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Start the ranks; the exit status is that of the first one that fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--hang-rank", type=int, default=3)
    parser.add_argument("--hang-step", type=int, default=10)
    options = parser.parse_args()

    port = free_port()
    script = Path(__file__).with_name("train.py")
    children = [
        subprocess.Popen(
            [sys.executable, str(script), str(options.hang_rank), str(options.hang_step)],
            env=environment(rank, options.ranks, port),
        )
        for rank in range(options.ranks)
    ]

    def stop(number: int, _frame: object) -> None:
        for child in children:
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    codes = [child.wait() for child in children]
    return next((abs(code) for code in codes if code), 0)


def environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    """What tells a process which part of the job it is."""
    own = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
