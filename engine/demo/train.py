"""One rank of the job: takes a batch, computes, meets the others at a barrier, prints the step."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
from multiprocessing.queues import Queue
from pathlib import Path

import worker  # type: ignore[import-not-found]  # it stands beside this file where the job runs

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
HUB = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "0")))
STEPS = 1000
STEP_SECONDS = 0.25


def main() -> None:
    """Train, or rather behave as if."""
    hang_rank, hang_step = int(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("fork")
    queue: Queue[list[float]] = context.Queue(maxsize=1)
    reader = context.Process(
        target=worker._worker_loop,
        args=(queue, Path(__file__).parent, hang_step if hang_rank == RANK else None),
        daemon=True,
    )
    reader.start()

    def stop(_number: int, _frame: object) -> None:
        reader.kill()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    train(queue, connect())


def train(queue: Queue[list[float]], peers: list[socket.socket]) -> None:
    """The training loop."""
    for step in range(1, STEPS + 1):
        loss = forward(next_batch(queue)) / step
        barrier_over_sockets(peers)
        if RANK == 0:
            print(f"step {step}/{STEPS} loss {loss:.4f}", flush=True)


def next_batch(queue: Queue[list[float]]) -> list[float]:
    """Wait for the reader."""
    return queue.get()


def forward(batch: list[float]) -> float:
    """Compute something that takes a moment."""
    time.sleep(STEP_SECONDS)
    return 1 + sum(batch)


def connect() -> list[socket.socket]:
    """Rank 0 is the hub: it has a connection to each of the others, they have one to it."""
    if RANK == 0:
        with socket.create_server(HUB, backlog=WORLD_SIZE) as server:
            return [server.accept()[0] for _ in range(WORLD_SIZE - 1)]
    while True:
        try:
            return [socket.create_connection(HUB)]
        except ConnectionRefusedError:
            time.sleep(0.05)


def barrier_over_sockets(peers: list[socket.socket]) -> None:
    """Return once all ranks are here: they tell the hub, and the hub tells them."""
    if RANK != 0:
        peers[0].sendall(b"+")
    for peer in peers:
        if not peer.recv(1):
            sys.exit(f"rank {RANK}: a peer has gone")
    if RANK == 0:
        for peer in peers:
            peer.sendall(b"+")


if __name__ == "__main__":
    main()
