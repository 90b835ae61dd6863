"""A small real training job, data parallel over gloo, with faults that can be planted in it.

``python -m torch.distributed.run --nproc-per-node 4 -m tests.lab.train --workdir DIR``. Every rank
writes its pid to ``DIR/rank<N>.pid``, and a rank that runs into the fault ``DIR/met-fault-<N>``.
Faults that come from outside (SIGSTOP, SIGKILL, a frozen file system) are the business of whoever
started the job.
"""

# PyTorch need not be installed where types are checked.
# mypy: disable-error-code="import-not-found,no-any-return"
# mypy: allow-subclassing-any, no-warn-unused-ignores

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from tests.lab.faults import CACHE_LOCK, SHARD_FAULTS, STEP_FAULTS, taken_by_a_thread

WIDTH = 64
BATCH = 4
# Gloo would end a hung job by itself when this is over.
COLLECTIVE_TIMEOUT = timedelta(hours=2)
FREEZE_SECONDS = 60.0
# Longer than any look at the job.
PHASE_SECONDS = 1_000_000.0
# The start of the file that tells the outside world that a rank's fault has come.
MET_FAULT = "met-fault"


def ranks(text: str) -> frozenset[int]:
    """``1,2`` as a set; ``all`` is the empty one, as is the default."""
    return frozenset() if text == "all" else frozenset(map(int, text.split(",")))


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=Path, required=True)
    faults = ("none", *PHASE_FAULTS, *STEP_FAULTS, *SHARD_FAULTS)
    parser.add_argument("--fault", choices=faults, default="none")
    parser.add_argument("--fault-ranks", type=ranks, default=frozenset())
    parser.add_argument("--fault-step", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100_000, help="steps of an epoch")
    parser.add_argument("--step-seconds", type=float, default=0.1)
    parser.add_argument("--slow-seconds", type=float, default=25.0)
    parser.add_argument("--workers", type=int, default=1, help="dataloader workers of a rank")
    parser.add_argument("--start-method", choices=("fork", "spawn", "forkserver"), default="fork")
    parser.add_argument("--compile-workers", action="store_true", help="start Inductor's")
    parser.add_argument("--mount", type=Path, help="storage that may stop answering")
    parser.add_argument("--native-library", type=Path)
    parser.add_argument("--report", choices=("megatron", "bar"), default="megatron")
    return parser.parse_args()


def is_faulty(options: argparse.Namespace, rank: int) -> bool:
    """Whether the fault is planted in this rank."""
    return not options.fault_ranks or rank in options.fault_ranks


def meet(options: argparse.Namespace, rank: int) -> None:
    """Tell the outside world that this rank runs into its fault now."""
    (options.workdir / f"{MET_FAULT}-{rank}").touch()


class Shards(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that are made up, but read in shards as if they came from storage."""

    def __init__(self, options: argparse.Namespace, rank: int, world_size: int) -> None:
        self.options = options
        self.rank = rank
        self.samples_per_step = BATCH * world_size
        self.blocks = options.fault in SHARD_FAULTS and is_faulty(options, rank)
        # The lock is held while the second epoch's workers are forked.
        self.fault_step: int = 1 if options.fault == "wait_for_cache" else options.fault_step

    def __len__(self) -> int:
        length: int = self.options.steps * self.samples_per_step
        return length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        seed = self.read_shard(index)
        generator = torch.Generator().manual_seed(seed)
        sample = torch.randn(WIDTH, generator=generator)
        return sample, sample.mean().reshape(1)

    def read_shard(self, index: int) -> int:
        """What a shard says about a sample; blocks from the fault's step on."""
        step = index // self.samples_per_step + 1
        if self.blocks and step >= self.fault_step:
            # In the first epoch nobody holds the lock of the shards' cache.
            if self.options.fault != "wait_for_cache" or CACHE_LOCK.locked():
                meet(self.options, self.rank)
            SHARD_FAULTS[self.options.fault](self.options)
        return index


class Trainer:
    """The loop of one rank."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank = distributed.get_rank()
        self.world_size = distributed.get_world_size()
        self.is_faulty = is_faulty(options, self.rank)
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
            dataset,
            batch_size=BATCH,
            sampler=self.sampler,
            num_workers=options.workers,
            multiprocessing_context=options.start_method if options.workers else None,
        )

    def train(self) -> None:
        """All epochs."""
        for epoch in range(self.options.epochs):
            self.sampler.set_epoch(epoch)
            self.train_epoch(epoch)

    def train_epoch(self, epoch: int) -> None:
        """One epoch, reported as the options say."""
        batches: Iterable[list[torch.Tensor]] = self.loader
        if self.reports and self.options.report == "bar":
            batches = bar(self.loader, len(self.loader))
        with self.workers_forked_badly(epoch):
            batches = iter(batches)
        for step, (samples, targets) in enumerate(batches, start=1):
            began = time.monotonic()
            loss = self.train_step(step, samples, targets)
            self.run_into_fault(step)
            if self.reports and self.options.report == "megatron":
                self.log_iteration(step, loss, time.monotonic() - began)
            if self.options.fault == "early_finish" and self.is_faulty and self.is_time(step):
                break

    def workers_forked_badly(self, epoch: int) -> contextlib.AbstractContextManager[None]:
        """From the second epoch on, a lock of the dataset is held while workers are forked."""
        if self.options.fault == "wait_for_cache" and self.is_faulty and epoch >= 1:
            return taken_by_a_thread(CACHE_LOCK)
        return contextlib.nullcontext()

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
            meet(self.options, self.rank)
        time.sleep(self.options.slow_seconds if slow else self.options.step_seconds)

    def is_time(self, step: int) -> bool:
        """Whether the fault's step has come."""
        return step == self.options.fault_step

    def run_into_fault(self, step: int) -> None:
        """Meet the planted fault when its step has come."""
        fault = self.options.fault
        if not self.is_time(step) or fault in ("none", "slow", *SHARD_FAULTS):
            return
        if self.is_faulty:
            meet(self.options, self.rank)
        if fault in PHASE_FAULTS:
            PHASE_FAULTS[fault](self, step)
        elif self.is_faulty:
            STEP_FAULTS[fault](self.options)

    def save_checkpoint(self, step: int) -> None:
        """Every rank writes its part; the faulty one to the storage that will be frozen."""
        directory: Path = self.options.workdir
        if self.is_faulty and self.options.mount is not None:
            directory = self.options.mount
        state = {"model": self.model.module.state_dict(), "step": step}
        with (directory / f"step{step}-rank{self.rank}.pt").open("wb") as file:
            if self.is_faulty and self.options.mount is not None:
                wait_for_freeze(self.options.workdir)
            write_part(state, file)
        if self.options.fault == "long_checkpoint" and self.is_faulty:
            self.write_all_experts(state)
        distributed.barrier()

    def write_all_experts(self, state: dict[str, object]) -> None:
        """The rank that has most to save: for long it writes one part after another.

        Into the page cache, so that a busy disk does not decide how much is seen to be written.
        """
        deadline = time.monotonic() + PHASE_SECONDS
        experts = {**state, "experts": torch.zeros(1 << 20)}
        while time.monotonic() < deadline:
            with (self.options.workdir / "experts.pt").open("wb") as file:
                torch.save(experts, file)
            time.sleep(0.3)

    def evaluate(self, _step: int) -> None:
        """A pass over the validation set that tells nothing until it is over."""
        deadline = time.monotonic() + PHASE_SECONDS
        samples = torch.randn(BATCH, WIDTH)
        while time.monotonic() < deadline:
            for _ in range(5):
                with torch.no_grad():
                    self.model.module(samples)
                time.sleep(0.02)
            distributed.all_reduce(torch.zeros(WIDTH))

    def synchronise_once_more(self, _step: int) -> None:
        """A collective that only the faulty rank calls."""
        if self.is_faulty:
            distributed.barrier()

    def run_out_of_data(self, _step: int) -> None:
        """Uneven inputs: the epoch of this rank is over, see `train_epoch`."""

    def log_iteration(self, step: int, loss: float, seconds: float) -> None:
        """One line as Megatron-LM prints them."""
        size = BATCH * self.world_size
        print(
            f" [{stamp()}] iteration {step:8d}/{self.options.steps:8d} |"
            f" consumed samples: {step * size:12d} |"
            f" elapsed time per iteration (ms): {seconds * 1000:.1f} |"
            f" learning rate: 1.000000E-03 | global batch size: {size:5d} |"
            f" lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 0.100 |",
            flush=True,
        )


PHASE_FAULTS: dict[str, Callable[[Trainer, int], None]] = {
    "slow": lambda trainer, step: None,  # see `compute`
    "early_finish": Trainer.run_out_of_data,
    "mismatch": Trainer.synchronise_once_more,
    "frozen_checkpoint": Trainer.save_checkpoint,
    "long_checkpoint": Trainer.save_checkpoint,
    "evaluation": Trainer.evaluate,
}


def stamp() -> str:
    """The time as a log shows it, to a millisecond."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))}.{int(now * 1000) % 1000:03d}"


def start_compile_workers() -> None:
    """Start Inductor's compile workers, as the first `torch.compile` for a GPU does.

    Compiling for a CPU would do without them, and takes half a minute of C++ compiler a rank.
    """
    from torch._inductor.async_compile import AsyncCompile

    AsyncCompile.warm_pool()
    AsyncCompile.wait_pool_ready()


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


def main(loop: Callable[[Trainer], None] = Trainer.train) -> None:
    """Train, and leave as a healthy job does."""
    options = parse_options()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=COLLECTIVE_TIMEOUT)
    pid_file: Path = options.workdir / f"rank{distributed.get_rank()}.pid"
    partial = pid_file.with_suffix(".part")
    partial.write_text(str(os.getpid()))
    partial.rename(pid_file)
    if options.compile_workers:
        start_compile_workers()
    loop(Trainer(options))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
