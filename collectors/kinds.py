"""What a process is to the job, told by evidence: environment, name, command line, ancestors.

Children inherit the trainer's environment, and a forked one its command line and even its older
frames. So the trainer is the Python process with a rank none of whose ancestors has one; what a
child is for shows in its thread name or, after a dump, in the frames of its own.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whyhang.collectors.ranks import JobEnvironment
from whyhang.collectors.titles import ENGINE, PLACED, RAY_TRAINER, title_of
from whyhang.schemas.environment import INTERNAL
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.words import ProcessKind

WORKER_NAME = "pt_data_worker"
_SHELL = re.compile(r"(?:ba|da|z|k|mk|a|fi|c|tc)?sh|busybox")
_LAUNCHER = re.compile(
    r"pt_elastic|torchrun|mpirun|mpiexec(?:\.hydra)?|orterun|prterun|orted|prted|hydra_pmi_proxy"
    r"|srun|horovodrun|accelerate|deepspeed"
)
# The frames of an agent, where no command line tells what it is.
_AGENT_FILES = (
    "torch/distributed/launcher/api.py",
    "torch/distributed/elastic/agent/server/api.py",
)
_LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic",
    "accelerate.commands",
    "deepspeed.launcher",
)
_COMPILER = re.compile(
    r"nvcc|cicc|ptxas|cudafe\+\+|fatbinary|nvlink|gcc|g\+\+|cc|c\+\+|cc1|cc1plus|clang|clang\+\+"
    r"|ld|ld\.lld|lld|as|collect2|ninja"
)
_HELPERS = re.compile(
    r"multiprocessing\.(?:resource_tracker|forkserver|semaphore_tracker)\b|torch_shm_manager"
)
_HELPER_NAME = re.compile(
    r"wandb_internal|wandb-core|wandb-service|gpu_stats|tensorboard|torch_shm_manage"
)
MULTIPROCESSING = re.compile(r"multiprocessing\.(?:spawn|forkserver|resource_tracker)\b")
_FORKSERVER = "multiprocessing.forkserver"
COMPILE_WORKER = "torch/_inductor/compile_worker"
_SCRIPT_OPTIONS_WITH_VALUE = frozenset(("-W", "-X", "--check-hash-based-pycs"))

_CHECKPOINT_FILES = (
    "torch/distributed/checkpoint/_async_process_executor.py",
    "dist_checkpointing/strategies/async_utils.py",
    "dist_checkpointing/strategies/filesystem_async.py",
    "nvidia_resiliency_ext/checkpointing/async_ckpt/core.py",
    "nvidia_resiliency_ext/checkpointing/async_ckpt/filesystem_async.py",
)
# What the children of `torch.multiprocessing.spawn` run in, and what only a rank calls.
_SPAWNED_RANK = ("torch/multiprocessing/spawn.py",)
_OF_RANKS = re.compile(r"torch/(?:distributed/(?!checkpoint/|elastic/)|nn/parallel/distributed)")
_POOLS = ("concurrent/futures/process.py", "multiprocessing/pool.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells who a process is. ``is_python`` is None where the binary could not be read."""

    pid: int
    ppid: int
    name: str
    state: str
    session: int = 0
    cpu_seconds: float = 0.0
    exe: str | None = None
    is_python: bool | None = False
    cmdline: tuple[str, ...] | None = None
    environ: Mapping[str, str] | None = None
    job: JobEnvironment = JobEnvironment()

    @property
    def is_shell(self) -> bool:
        """Whether a shell runs here, whatever its script is called."""
        program = self.exe or (self.cmdline[0].lstrip("-") if self.cmdline else self.name)
        return _SHELL.fullmatch(Path(program).name) is not None

    @property
    def carries_rank(self) -> bool:
        """Whether its environment names a rank, its own or an inherited one."""
        return self.job.source is not None


def program(cmdline: Sequence[str] | None) -> str:
    """What an interpreter's command line runs: script, ``-m`` module or ``-c`` text.

    The first word where no interpreter is named.
    """
    if not cmdline:
        return ""
    if not re.match(r"(?:python|pypy)[\d.]*$", Path(cmdline[0]).name):
        return cmdline[0]
    words = iter(cmdline[1:])
    for word in words:
        if word in ("-m", "-c"):
            return next(words, "")
        if word in _SCRIPT_OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return cmdline[0]


def is_whyhang(identity: Identity) -> bool:
    """Whether this is a process of ours: watcher, relay, guard or a py-spy we started."""
    if (identity.environ or {}).get(INTERNAL) == "1" or identity.name == "py-spy":
        return True  # nobody's py-spy is a part of the job
    runs = program(identity.cmdline)
    # With `python script`, the second word is the console script; `-m` gives the module.
    return Path(runs).name == "whyhang" or runs.startswith("whyhang.")


def is_launcher(identity: Identity) -> bool:
    """Whether it is a known program that starts ranks and has none itself."""
    if _LAUNCHER.fullmatch(identity.name):
        return True
    runs = program(identity.cmdline)
    return bool(_LAUNCHER.fullmatch(Path(runs).name)) or runs.startswith(_LAUNCHER_MODULES)


def ancestors(pid: int, table: Mapping[int, Identity]) -> Iterator[Identity]:
    """Parent, grandparent and so on, as far as the table knows them."""
    seen = {pid}
    current = table.get(pid)
    while current is not None and current.ppid not in seen:
        seen.add(current.ppid)
        current = table.get(current.ppid)
        if current is not None:
            yield current


def find_trainers(
    table: Mapping[int, Identity],
    *,
    ignored: Iterable[int] = (),
    preferred: Container[int] = (),
) -> frozenset[int]:
    """The processes that are ranks; ``ignored`` (our own) count neither as ranks nor as ancestors.

    Where several claim one rank of one job (an orphaned child looks like its dead parent), a
    ``preferred`` one is believed, then the one below a launcher, then a session leader, then the
    one that has worked most.
    """
    skipped = frozenset(ignored)
    carriers = {
        pid: identity
        for pid, identity in table.items()
        if pid not in skipped and _may_be_rank(identity)
    }
    agents = _agents(carriers, table)
    ranks = carriers.keys() - agents
    tops = [
        carriers[pid]
        for pid in ranks
        if not any(above.pid in ranks for above in ancestors(pid, table))
        and not _is_child_by_nature(carriers[pid], table)
    ]

    def standing(identity: Identity) -> tuple[object, ...]:
        return identity.pid in preferred, *_standing(identity, table)

    best: dict[object, Identity] = {}
    for identity in _without_bystanders(tops):
        job, rank = identity.job, identity.job.rank
        claim = (job.job, job.source, rank) if rank is not None else identity.pid
        rival = best.get(claim)
        if rival is None or standing(identity) > standing(rival):
            best[claim] = identity
    return frozenset(x.pid for x in best.values()) | _hidden_trainers(table, skipped)


def find_starters(
    trainers: Iterable[int], table: Mapping[int, Identity]
) -> Mapping[int, frozenset[int]]:
    """Everything above a trainer, with the trainers below it."""
    below: dict[int, set[int]] = {}
    for pid in trainers:
        for above in ancestors(pid, table):
            below.setdefault(above.pid, set()).add(pid)
    return {pid: frozenset(pids) for pid, pids in below.items()}


def kind_of(
    identity: Identity,
    table: Mapping[int, Identity],
    *,
    trainers: frozenset[int],
    starters: Mapping[int, frozenset[int]],
) -> ProcessKind:
    """The kind of one process of the job, as far as it shows without its stacks."""
    if identity.pid in trainers:
        return "trainer"
    if identity.name == WORKER_NAME:
        return "dataloader"
    line = " ".join(identity.cmdline or ())
    if COMPILE_WORKER in line or _COMPILER.fullmatch(identity.name):
        return "compile_worker"
    if _HELPER_NAME.fullmatch(identity.name) or _is_helper(identity, line, table):
        return "helper"
    if is_launcher(identity) or (identity.is_python and identity.pid in starters):
        return "launcher"
    return "other"


def refine_kind(process: Process) -> ProcessKind:
    """The kind again, now that the stacks are known.

    A child that no name gives away is a dataloader worker where its own frames say so; frames
    below its bootstrap are what a fork copied from its parent. A generic child stays ``other``.
    """
    if process.kind not in ("trainer", "other", "helper") or isinstance(process.threads, Missing):
        return process.kind
    main = next((x for x in process.threads if x.name == "MainThread"), None)
    if main is None:
        # Forked from another thread: its only Python thread is the main one.
        main = process.threads[0] if len(process.threads) == 1 else None
    if main is None:
        return process.kind
    if process.rank is None and _is_spawned(process):
        return _spawned_kind(process, main.stack.python)
    for frame in _own_frames(main.stack.python):
        path = frame.filename or frame.short_filename or ""
        if frame.function == "_worker_loop" and path.endswith("worker.py"):
            return "dataloader"
        if path.endswith(_CHECKPOINT_FILES) and process.kind != "trainer":
            return "checkpoint"
        if path.endswith(_AGENT_FILES) and process.kind == "other" and process.rank is None:
            return "launcher"
    return process.kind


def is_spawned(cmdline: Sequence[str] | None) -> bool:
    """Whether this is a child that multiprocessing started as a new interpreter."""
    return "multiprocessing.spawn" in " ".join(cmdline or ())


def _is_spawned(process: Process) -> bool:
    return process.kind in ("trainer", "other") and is_spawned(process.cmdline)


def _spawned_kind(process: Process, frames: Sequence[Frame]) -> ProcessKind:
    """A spawned child without a rank: a rank by an argument that nobody sees, or a worker."""
    paths = [frame.filename or frame.short_filename or "" for frame in frames]
    for frame, path in zip(frames, paths, strict=True):
        if frame.function == "_worker_loop" and path.endswith("worker.py"):
            return "dataloader"
    if any(path.endswith(_CHECKPOINT_FILES) for path in paths):
        return "checkpoint"
    if any(path.endswith(_POOLS) for path in paths):
        return "other"
    if any(path.endswith(_SPAWNED_RANK) or _OF_RANKS.search(path) for path in paths):
        return "trainer"
    return process.kind


def number_workers(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Give every dataloader worker its index: per node and rank, in the order of pids."""
    listed = tuple(processes)
    numbers: dict[tuple[str, int], int] = {}
    counts: dict[tuple[str, int | None], int] = {}
    for process in sorted(listed, key=lambda process: process.key):
        if process.kind == "dataloader":
            place = (process.node, process.rank)
            numbers[process.key] = counts.get(place, 0)
            counts[place] = numbers[process.key] + 1
    return tuple(
        process
        if process.worker == numbers.get(process.key)
        else replace(process, worker=numbers.get(process.key))
        for process in listed
    )


def _own_frames(frames: Sequence[Frame]) -> Iterator[Frame]:
    for frame in frames:
        yield frame
        path = frame.filename or frame.short_filename or ""
        if frame.function == "_bootstrap" and path.endswith("multiprocessing/process.py"):
            return


def _may_be_rank(identity: Identity) -> bool:
    return bool(
        identity.carries_rank
        and identity.is_python
        and not identity.is_shell
        and not is_whyhang(identity)
        and not is_launcher(identity)
    )


def _agents(carriers: Mapping[int, Identity], table: Mapping[int, Identity]) -> frozenset[int]:
    """Carriers that a scheduler numbered and that number others: launchers, not ranks.

    `srun python launch.py` has SLURM_PROCID itself and gives its children RANK. A trainer that
    copies SLURM_PROCID to RANK for its helpers shows the same, but only ever one rank: its own.
    """
    given: dict[int, set[int]] = {}
    for pid, identity in carriers.items():
        if identity.job.source == "RANK" and identity.job.rank is not None:
            for above in ancestors(pid, table):
                if above.pid in carriers and above.job.source != "RANK":
                    given.setdefault(above.pid, set()).add(identity.job.rank)
    return frozenset(pid for pid, ranks in given.items() if ranks - {carriers[pid].job.rank})


def _without_bystanders(tops: Sequence[Identity]) -> list[Identity]:
    """Ranks without what merely runs in the same batch script.

    Slurm numbers the script itself: a monitor started there has SLURM_PROCID too. What a launcher
    or a job step numbered in the same job is the training.
    """

    def strength(identity: Identity) -> tuple[bool, bool]:
        return identity.job.source == "RANK", identity.job.step is not None

    strongest: dict[str | None, tuple[bool, bool]] = {}
    for identity in tops:
        batch = identity.job.batch
        strongest[batch] = max(strongest.get(batch, (False, False)), strength(identity))
    return [
        identity
        for identity in tops
        if identity.job.source == "RANK"
        or identity.job.batch is None
        or strength(identity) == strongest[identity.job.batch]
    ]


def _is_child_by_nature(identity: Identity, table: Mapping[int, Identity]) -> bool:
    """Whether it can only be some trainer's child, although no trainer is above it (any more)."""
    line = " ".join(identity.cmdline or ())
    if identity.name == WORKER_NAME or COMPILE_WORKER in line or _HELPERS.search(line):
        return True
    if not MULTIPROCESSING.search(line):
        return False
    # Spawned: a rank where a living Python parent without a rank gave it one, else an orphan.
    parent = table.get(identity.ppid)
    return parent is None or not parent.is_python


def _hidden_trainers(table: Mapping[int, Identity], skipped: frozenset[int]) -> frozenset[int]:
    """Ranks whose environment tells none: zombies, other users' processes, process titles."""
    hidden = set()
    for pid, identity in table.items():
        if pid in skipped or identity.carries_rank or identity.is_shell:
            continue
        if identity.is_python is not False and _is_titled_trainer(identity, table):
            hidden.add(pid)
        parent = table.get(identity.ppid)
        if parent is None or not is_launcher(parent) or is_launcher(identity):
            continue
        unread_python = identity.is_python is None and looks_like_python(identity)
        if identity.environ is None and (
            identity.state == "Z" or unread_python or identity.is_python
        ):
            hidden.add(pid)
    return frozenset(hidden)


def _is_titled_trainer(identity: Identity, table: Mapping[int, Identity]) -> bool:
    title = title_of(identity.cmdline, identity.name)
    if ENGINE.match(title):
        below = (x for x in table.values() if x.ppid == identity.pid)
        return not any(PLACED.match(title_of(x.cmdline, x.name)) for x in below)
    return bool(PLACED.match(title) or RAY_TRAINER.match(title))


def looks_like_python(identity: Identity) -> bool:
    """Whether its command line names an interpreter, for one whose binary we may not see."""
    word = (identity.cmdline or (identity.name,))[0]
    return re.match(r"(?:python|pypy)[\d.]*$", Path(word).name) is not None


def _is_helper(identity: Identity, line: str, table: Mapping[int, Identity]) -> bool:
    if _HELPERS.search(line) is None:
        return False
    # A worker of the forkserver has the forkserver's command line, and so has its parent.
    parent = table.get(identity.ppid)
    parent_line = " ".join((parent.cmdline if parent else None) or ())
    return not (_FORKSERVER in line and _FORKSERVER in parent_line)


def _standing(identity: Identity, table: Mapping[int, Identity]) -> tuple[bool, bool, float]:
    launched = any(is_launcher(above) for above in ancestors(identity.pid, table))
    return launched, identity.session == identity.pid, identity.cpu_seconds
