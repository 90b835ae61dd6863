"""What a healthy job does that may look like a hang from outside, one function a situation.

Every rank runs the same function; all of them end within a minute or so.
"""

# PyTorch need not be installed where types are checked.
# mypy: disable-error-code="import-not-found,no-any-return,no-untyped-call"
# mypy: no-warn-unused-ignores

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import distributed

from tests.lab.train import BATCH, WIDTH, Trainer, write_part

# Not the one that reports.
STRAGGLER = 1
SECONDS = 14.0
SLOW_STEP_SECONDS = 15.0
_MIB = 1 << 20


class Busy:
    """A trainer and what its situations need to remember."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.rank = trainer.rank
        self.directory: Path = trainer.options.workdir
        self.step = 0
        self.round = 0

    def batches(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The first batches of an epoch, from workers that are started for it."""
        for number, (samples, targets) in enumerate(self.trainer.loader):
            if number == count:
                return
            yield samples, targets

    def train_step(self, samples: torch.Tensor, targets: torch.Tensor) -> None:
        """A step, and the line of the rank that reports."""
        self.step += 1
        began = time.monotonic()
        loss = self.trainer.train_step(self.step, samples, targets)
        if self.trainer.reports:
            self.trainer.log_iteration(self.step, loss, time.monotonic() - began)


def until(seconds: float) -> Iterator[int]:
    """Count as long as the time lasts."""
    deadline, number = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        yield number
        number += 1


def train(busy: Busy) -> None:
    """Steady training with dataloader workers."""
    for samples, targets in busy.batches(80):
        busy.train_step(samples, targets)


def change_epochs(busy: Busy) -> None:
    """Short epochs, each of which starts its workers anew."""
    for epoch in range(3):
        busy.trainer.sampler.set_epoch(epoch)
        for samples, targets in busy.batches(4):
            busy.train_step(samples, targets)


def accumulate(busy: Busy) -> None:
    """Many micro-batches a step, so that lines and gradients are exchanged rarely."""
    model, samples = busy.trainer.model, torch.randn(BATCH, WIDTH)
    for _ in range(2):
        for number in range(40):
            with model.no_sync() if number < 39 else nullcontext():
                model(samples).mean().backward()
            time.sleep(0.15)
        busy.train_step(samples, torch.randn(BATCH, 1))


def evaluate(busy: Busy) -> None:
    """A pass over the validation set that prints nothing."""
    samples = torch.randn(BATCH, WIDTH)
    deadline = time.monotonic() + SECONDS
    over = torch.zeros(1)
    while not over.item():
        for _ in range(5):
            with torch.no_grad():
                busy.trainer.model.module(samples)
            time.sleep(0.02)
        # All ranks must agree on the end.
        over = torch.tensor([float(time.monotonic() > deadline)])
        distributed.all_reduce(over)


def save_checkpoint(busy: Busy) -> None:
    """Rank 0 writes one part after another; the others wait in a barrier."""
    if busy.rank == 0:
        state: dict[str, object] = {"experts": torch.zeros(_MIB)}
        for number in until(SECONDS):
            with (busy.directory / f"part{number % 4}.pt").open("wb") as file:
                write_part(state, file)
            time.sleep(0.2)
    distributed.barrier()


def write_in_background(_name: str, path: Path, seconds: float) -> None:
    """What the process of an asynchronous checkpoint does."""
    for _ in until(seconds):
        with path.open("wb") as file:
            write_part({"experts": torch.zeros(_MIB)}, file)
        time.sleep(0.2)


def save_in_background(busy: Busy) -> None:
    """A process of rank 0 writes the checkpoint while all ranks train on."""
    writer = None
    if busy.rank == 0:
        arguments = ("checkpoint", busy.directory / "background.pt", SECONDS)
        writer = get_context("spawn").Process(target=write_in_background, args=arguments)
        writer.start()
    for samples, targets in busy.batches(80):
        busy.train_step(samples, targets)
    if writer is not None:
        writer.join()


def build_index(busy: Busy) -> None:
    """Rank 0 builds an index of the dataset; the others wait in a barrier."""
    if busy.rank == 0:
        path = busy.directory / "corpus.bin"
        for number in until(SECONDS):
            with path.open("ab" if number % 50 else "wb") as file:
                file.write(os.urandom(_MIB))
            sum(path.read_bytes()[::4096])
            time.sleep(0.02)
    distributed.barrier()


class ShardGone(OSError):
    """What a store answers that is busy."""


def read_shard(attempt: int) -> None:
    """Fails twice."""
    if attempt < 2:
        raise ShardGone


def retry(busy: Busy) -> None:
    """A rank catches an exception, waits and tries again, while the others wait for it."""
    for samples, targets in busy.batches(4):
        for attempt in range(3) if busy.rank == STRAGGLER else ():
            try:
                read_shard(attempt)
            except ShardGone:
                time.sleep(1.5 * 2**attempt)
        busy.train_step(samples, targets)


def straggle(busy: Busy) -> None:
    """A rank is much slower than the others in every step."""
    for samples, targets in busy.batches(7):
        if busy.rank == STRAGGLER:
            time.sleep(2.0)
        busy.train_step(samples, targets)


def take_long_steps(busy: Busy) -> None:
    """Steps of a quarter of a minute."""
    usual = busy.trainer.options.step_seconds
    busy.trainer.options.step_seconds = SLOW_STEP_SECONDS
    try:
        for samples, targets in busy.batches(2):
            busy.train_step(samples, targets)
    finally:
        busy.trainer.options.step_seconds = usual


def compile_step(busy: Busy) -> None:
    """``torch.compile`` warms up: every rank compiles functions that no cache holds."""
    torch._dynamo.reset()
    for number in range(2):
        # Constants of their own: else the second round would find it all compiled.
        factor = 1.0 + busy.round + 0.1 * number + 0.01 * busy.rank

        def function(values: torch.Tensor, factor: float = factor) -> torch.Tensor:
            return (torch.sin(values * factor) + torch.cos(values)).relu().sum()

        torch.compile(function, dynamic=False)(torch.randn(WIDTH, WIDTH + number))
    distributed.barrier()


SITUATIONS: dict[str, Callable[[Busy], None]] = {
    "steady training": train,
    "epoch change": change_epochs,
    "evaluation": evaluate,
    "checkpoint": save_checkpoint,
    "retried exception": retry,
    "straggler": straggle,
    "compilation": compile_step,
    "long steps": take_long_steps,
    "index building": build_index,
    "background checkpoint": save_in_background,
    "gradient accumulation": accumulate,
}
