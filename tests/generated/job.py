"""A job: how large, on which machines, by which framework, and what each of its ranks does."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.generated.notation import Line, expand, parse_line, read_sections

FRAMEWORKS = (
    "ddp", "fsdp", "fsdp2", "deepspeed", "megatron", "hf", "lightning", "ray", "sglang",
)  # fmt: skip
WORLDS = (8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 64, 64, 128, 256)
HUGE = 1024
SITES = (
    "/opt/venv/lib/python{}/site-packages/",
    "/usr/local/lib/python{}/dist-packages/",
    "/opt/conda/envs/train/lib/python{}/site-packages/",
    "/home/mia/.venv/lib/python{}/site-packages/",
)
LIBRARIES = (
    "/usr/lib/python{}/",
    "/opt/conda/envs/train/lib/python{}/",
    "/usr/local/lib/python{}/",
)
PROJECTS = ("/workspace/project/", "/home/mia/vision/", "/mnt/code/llm/", "/app/", "/data/src/rl/")
SCRIPTS = ("train.py", "main.py", "run_pretrain.py", "finetune.py", "tools/train.py")

Stack = tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a process does. Rates are per second between the samples; ``unread`` is why no stack."""

    stack: Stack = ()
    then: Stack | None = None
    state: str = "S"
    wchan: str | None = "futex_do_wait"
    syscall: int | None = 202
    cpu: float = 0.003
    reads: float = 0.0
    writes: float = 0.0
    traffic: float = 0.0
    unread: str | None = None
    gone: bool = False
    threads: tuple[tuple[str | None, Stack], ...] = ()
    thread_states: tuple[tuple[str, str, str], ...] = ()
    gil: bool = False
    no_native: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A child of a trainer."""

    kind: str
    act: Act
    name: str


@dataclass(slots=True, kw_only=True)
class Machine:
    """A node and what was heard of it."""

    name: str
    ranks: range
    status: str = "ok"
    reason: str | None = None
    unread: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Job:
    """Everything an incident is written from. Kinds plant their fault in it."""

    rng: random.Random
    framework: str
    backend: str
    python: str
    tool: str
    native: bool
    site: str
    library: str
    project: str
    script: str
    interval: float
    spinning: bool
    machines: list[Machine]
    acts: dict[int, Act] = field(default_factory=dict)
    children: dict[int, list[Child]] = field(default_factory=dict)
    progress: dict[str, Any] = field(default_factory=dict)
    trigger: str = "stall"
    has_log: bool = True
    workers: int = 0
    pinned: bool = False
    idle: tuple[str, ...] = ()
    compile_workers: int = 0
    tensor: int = 1
    pipeline: int = 1

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.machines[-1].ranks.stop

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(self.world)

    @property
    def qualified(self) -> bool:
        """Whether py-spy gives qualified names."""
        return self.tool.endswith("0.4.3") and int(self.python.split(".")[1]) >= 11

    def has(self, section: str) -> bool:
        """Whether the framework has such a section."""
        return section in read_sections(self.framework)

    def sections(self, prefix: str) -> list[str]:
        """The sections of the framework whose name starts so."""
        return [name for name in read_sections(self.framework) if name.startswith(prefix)]

    def stack(self, *sections: str, outer: bool = True) -> Stack:
        """The frames of these sections, innermost first, inside the job's own loop."""
        names = [*sections, "loop"] if outer else sections
        return tuple(line for name in names for line in expand(self.framework, name, self.backend))

    def parse(self, *lines: str) -> Stack:
        """Frames given in full."""
        return tuple(parse_line(line) for line in lines)

    def waiting(self, stack: Stack) -> Act:
        """Waiting in communication: asleep, or spinning as CUDA does by default."""
        if self.spinning:
            return Act(stack=stack, state="R", wchan=None, syscall=None, cpu=0.97)
        return Act(stack=stack)

    def wait(self, *sections: str) -> Act:
        """Waiting in one of the places of the framework."""
        return self.waiting(self.stack(*sections))

    def computing(self, *sections: str, then: Sequence[str] | None = None) -> Act:
        """Busy there, and busy elsewhere in the second sample where ``then`` is given."""
        return Act(
            stack=self.stack(*sections),
            then=self.stack(*then) if then else None,
            state="R",
            wchan=None,
            syscall=None,
            cpu=0.9,
            traffic=self.rng.uniform(2e4, 3e6),
        )

    def everyone(self, act: Act, ranks: Iterable[int] | None = None) -> None:
        """Let these ranks, or all, do this."""
        for rank in self.ranks if ranks is None else ranks:
            self.acts[rank] = act

    def machine_of(self, rank: int) -> Machine:
        """The node of a rank."""
        return next(one for one in self.machines if rank in one.ranks)

    def unread(self, ranks: Iterable[int], reason: str) -> None:
        """Let our own fault hide these ranks."""
        for rank in ranks:
            machine = self.machine_of(rank)
            machine.unread.add(rank)
            machine.status, machine.reason = "partial", reason


def make_job(
    rng: random.Random, *, frameworks: Sequence[str] = FRAMEWORKS, huge: float = 0.01
) -> Job:
    """A healthy job in which nothing is planted yet."""
    framework = rng.choice(frameworks)
    python = rng.choice(("3.9", "3.10", "3.11", "3.12", "3.13"))
    world = HUGE if rng.random() < huge else rng.choice(WORLDS)
    per_node = rng.choice([n for n in (2, 4, 8) if n <= world // 2 and world // n <= 128])
    backend = rng.choice(("nccl", "nccl", "gloo"))
    style = rng.choice(("gpu{:03d}", "node{}", "worker-{}", "ip-10-0-7-{}", "dgx-{:02d}"))
    first = rng.randrange(1, 60)
    machines = [
        Machine(name=style.format(first + n), ranks=range(n * per_node, (n + 1) * per_node))
        for n in range(world // per_node)
    ]
    has_loader = framework != "sglang" and rng.random() < 0.7
    job = Job(
        rng=rng,
        framework=framework,
        backend=backend,
        python=python,
        tool=rng.choice(("py-spy 0.4.3", "py-spy 0.4.3", "py-spy 0.4.1", "py-spy 0.3.14")),
        native=rng.random() < 0.5,
        site=rng.choice(SITES).format(python),
        library=rng.choice(LIBRARIES).format(python),
        project=rng.choice(PROJECTS),
        script=rng.choice(SCRIPTS),
        interval=round(rng.uniform(10, 40), 1),
        spinning=backend == "nccl" and rng.random() < 0.5,
        machines=machines,
        workers=rng.choice((1, 2, 4)) if has_loader and world <= 64 else int(has_loader),
        pinned=has_loader and backend == "nccl" and rng.random() < 0.7,
        idle=tuple(rng.sample(("tqdm", "inductor", "wandb", "pool"), rng.randrange(4))),
        compile_workers=rng.choice((0, 0, 1, 2)) if world <= 64 else 0,
        trigger=rng.choice(("stall", "stall", "stall", "manual")),
    )
    stalled(job)
    healthy_children(job)
    return job


def stalled(job: Job, *, phase: str = "train") -> None:
    """The log has stood still for longer than the job's rhythm explains."""
    rng = job.rng
    median = round(rng.choice((0.4, 2.0, 7.5, 31.0)) * rng.uniform(0.8, 1.3), 2)
    threshold = round(max(120.0, 10 * median), 1)
    step = rng.randrange(40, 90_000)
    job.progress = {
        "preset": rng.choice(("megatron", "hf", "tqdm", "lightning", "lines")),
        "step": step,
        "total": step + rng.randrange(100, 50_000),
        "stalled_seconds": round(threshold * rng.uniform(1.05, 4.0), 1),
        "threshold_seconds": threshold,
        "median_interval_seconds": median,
        "phase": phase,
        "state": "stalled",
        "last_line": f"step {step} loss {rng.uniform(1, 4):.3f}",
    }


def healthy_children(job: Job) -> None:
    """Idle dataloader and compile workers beside every trainer."""
    idle = Act(
        stack=job.stack("worker.idle"),
        wchan="poll_schedule_timeout.constprop.0",
        syscall=7,
        threads=(("QueueFeederThread", job.stack("thread.feeder", outer=False)),),
    )
    reader = Act(
        stack=job.stack("compile_worker.reading", outer=False), wchan="pipe_read", syscall=0
    )
    sleeper = Act(stack=job.stack("compile_worker.idle", outer=False))
    for rank in job.ranks:
        job.children[rank] = [
            *(
                Child(kind="dataloader", act=idle, name="pt_data_worker")
                for _ in range(job.workers)
            ),
            *(
                Child(kind="compile_worker", act=sleeper if n else reader, name="python3")
                for n in range(job.compile_workers)
            ),
        ]
