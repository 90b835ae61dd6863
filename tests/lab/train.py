"""A small real training job, data parallel over gloo, with faults that can be planted in it.

Start it with ``python -m torch.distributed.run --nproc-per-node 4 train.py --workdir DIR``. Every
rank writes its pid to ``DIR/rank<N>.pid``. Faults that come from outside (SIGSTOP, SIGKILL, a
frozen file system) are the business of whoever started the job.
"""

# PyTorch need not be installed where types are checked.
# mypy: disable-error-code="import-not-found,no-any-return"
# mypy: allow-subclassing-any, no-warn-unused-ignores

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FAULTS = (
    "none",
    "worker_block",  # a dataloader worker of one rank waits for a shard that never comes
    "all_data_block",  # the same on every rank
    "user_sleep",  # one rank sleeps in a function of the training script
    "d_state",  # one rank writes its checkpoint to --checkpoint-dir, which is frozen meanwhile
    "mismatch",  # one rank calls a barrier that nobody else calls
    "slow",  # from some step on every rank takes --slow-seconds a step
)
WIDTH = 64
BATCH = 4
# Gloo would end a hung job by itself when this is over.
COLLECTIVE_TIMEOUT = timedelta(hours=2)
FREEZE_SECONDS = 60.0
# The file that tells the outside world that the fault's step has come.
MET_FAULT = "met-fault"


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--fault-rank", type=int, default=2)
    parser.add_argument("--fault-step", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100_000, help="steps of an epoch")
    parser.add_argument("--step-seconds", type=float, default=0.25)
    parser.add_argument("--slow-seconds", type=float, default=25.0)
    parser.add_argument("--workers", type=int, default=2, help="dataloader workers of a rank")
    parser.add_argument("--checkpoint-dir", type=Path)
    parser.add_argument("--report", choices=("megatron", "bar"), default="megatron")
    return parser.parse_args()


class Shards(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that are made up, but read in shards as if they came from storage."""

    def __init__(self, options: argparse.Namespace, rank: int, world_size: int) -> None:
        self.rank = rank
        self.samples_per_step = BATCH * world_size
        self.length: int = options.steps * self.samples_per_step
        self.blocks = options.fault == "all_data_block" or (
            options.fault == "worker_block" and rank == options.fault_rank
        )
        self.fault_step: int = options.fault_step
        self.workdir: Path = options.workdir

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        seed = self.read_shard(index)
        generator = torch.Generator().manual_seed(seed)
        sample = torch.randn(WIDTH, generator=generator)
        return sample, sample.mean().reshape(1)

    def read_shard(self, index: int) -> int:
        """What a shard says about a sample; blocks from the fault's step on."""
        step = index // self.samples_per_step + 1
        if self.blocks and step >= self.fault_step:
            (self.workdir / MET_FAULT).touch()
            # A pipe that is never written to: a real read(2) that never returns.
            reader, _writer = os.pipe()
            os.read(reader, 1)
        return index


class Trainer:
    """The loop of one rank."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank = distributed.get_rank()
        self.world_size = distributed.get_world_size()
        self.is_faulty = self.rank == options.fault_rank
        # Megatron's iteration lines come from the last rank, bars from the first.
        self.reports = self.rank == (0 if options.report == "bar" else self.world_size - 1)
        network = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)
        )
        self.model = DistributedDataParallel(network)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        dataset = Shards(options, self.rank, self.world_size)
        # In order, so that a sample's index tells its step.
        self.sampler: DistributedSampler[tuple[torch.Tensor, torch.Tensor]] = DistributedSampler(
            dataset, self.world_size, self.rank, shuffle=False
        )
        self.loader = DataLoader(
            dataset, batch_size=BATCH, sampler=self.sampler, num_workers=options.workers
        )

    def train(self) -> None:
        """All epochs."""
        for epoch in range(self.options.epochs):
            self.sampler.set_epoch(epoch)
            self.train_epoch()

    def train_epoch(self) -> None:
        """One epoch, reported as the options say."""
        batches: Iterable[list[torch.Tensor]] = self.loader
        if self.reports and self.options.report == "bar":
            batches = bar(self.loader, len(self.loader))
        for step, (samples, targets) in enumerate(batches, start=1):
            began = time.monotonic()
            loss = self.train_step(step, samples, targets)
            self.meet_fault(step)
            if self.reports and self.options.report == "megatron":
                self.log_iteration(step, loss, time.monotonic() - began)

    def train_step(self, step: int, samples: torch.Tensor, targets: torch.Tensor) -> float:
        """Forward, backward, and the mean loss of all ranks."""
        self.compute(step)
        loss = torch.nn.functional.mse_loss(self.model(samples), targets)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        mean = loss.detach().clone()
        distributed.all_reduce(mean)
        return float(mean.item()) / self.world_size

    def compute(self, step: int) -> None:
        """Stands for the time that a larger model would take."""
        slow = self.options.fault == "slow" and step >= self.options.fault_step
        if slow:
            (self.options.workdir / MET_FAULT).touch()
        time.sleep(self.options.slow_seconds if slow else self.options.step_seconds)

    def meet_fault(self, step: int) -> None:
        """Run into the planted fault when its step has come."""
        if step != self.options.fault_step or self.options.fault == "none":
            return
        if self.is_faulty:
            (self.options.workdir / MET_FAULT).touch()
        if self.options.fault == "user_sleep" and self.is_faulty:
            publish_metrics()
        elif self.options.fault == "mismatch" and self.is_faulty:
            synchronise_once_more()
        elif self.options.fault == "d_state":
            self.save_checkpoint(step)

    def save_checkpoint(self, step: int) -> None:
        """Every rank writes its part; the faulty one to the directory that will be frozen."""
        directory: Path = self.options.workdir
        if self.is_faulty and self.options.checkpoint_dir is not None:
            directory = self.options.checkpoint_dir
        state = {"model": self.model.module.state_dict(), "step": step}
        with (directory / f"step{step}-rank{self.rank}.pt").open("wb") as file:
            if self.is_faulty:
                wait_for_freeze(self.options.workdir)
            write_part(state, file)
        distributed.barrier()

    def log_iteration(self, step: int, loss: float, seconds: float) -> None:
        """One line as Megatron-LM prints them."""
        size = BATCH * self.world_size
        print(
            f" [{time.strftime('%Y-%m-%d %H:%M:%S')}] iteration {step:8d}/{self.options.steps:8d} |"
            f" consumed samples: {step * size:12d} |"
            f" elapsed time per iteration (ms): {seconds * 1000:.1f} |"
            f" learning rate: 1.000000E-03 | global batch size: {size:5d} |"
            f" lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 0.100 |",
            flush=True,
        )


def publish_metrics() -> None:
    """A callback of the user's that never comes back."""
    time.sleep(1_000_000)


def synchronise_once_more() -> None:
    """A collective that only one rank calls."""
    distributed.barrier()


def wait_for_freeze(workdir: Path) -> None:
    """Ask for the file system to be frozen, and wait until it is."""
    (workdir / "please-freeze").touch()
    deadline = time.monotonic() + FREEZE_SECONDS
    while not (workdir / "frozen").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody froze the file system")
        time.sleep(0.05)


def write_part(state: dict[str, object], file: BinaryIO) -> None:
    """Write a checkpoint and wait until it is on disk."""
    torch.save(state, file)
    file.flush()
    os.fsync(file.fileno())


def bar(batches: Iterable[list[torch.Tensor]], total: int) -> Iterator[list[torch.Tensor]]:
    """A bare tqdm bar on stderr; without tqdm one that looks the same."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return imitated_bar(batches, total)
    return iter(tqdm(batches, total=total))


def imitated_bar(batches: Iterable[list[torch.Tensor]], total: int) -> Iterator[list[torch.Tensor]]:
    """What tqdm draws: one line an epoch, drawn again and again behind carriage returns."""
    began = time.monotonic()
    _draw(0, total, 0.0)
    for done, batch in enumerate(batches, start=1):
        yield batch
        _draw(done, total, time.monotonic() - began)
    print(file=sys.stderr, flush=True)


def _draw(done: int, total: int, seconds: float) -> None:
    filled = 10 * done // total
    blocks = "█" * filled + " " * (10 - filled)
    left = _clock(seconds / done * (total - done)) if done else "?"
    pace = f"{done / seconds:5.2f}" if done and seconds else "?"
    print(
        f"\r{100 * done // total:3d}%|{blocks}| {done}/{total}"
        f" [{_clock(seconds)}<{left}, {pace}it/s]",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def main() -> None:
    """Train, and leave as a healthy job does."""
    options = parse_options()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=COLLECTIVE_TIMEOUT)
    pid_file: Path = options.workdir / f"rank{distributed.get_rank()}.pid"
    partial = pid_file.with_suffix(".part")
    partial.write_text(str(os.getpid()))
    partial.rename(pid_file)
    Trainer(options).train()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
