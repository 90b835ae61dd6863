"""The scenarios of the lab, by name: a job, what happens to it, and what must be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.lab.expectations import FUTEX, PIPE_READ, SOCKET, Expected, Fact
from tests.lab.machine import Need, why_not
from tests.lab.mounts import MountKind

WORLD_SIZE = 3
# Not 0, which leads, nor the last one, which writes Megatron's lines.
FAULT_RANK = 1
Act = Literal["none", "sigstop", "sigstop_worker", "kill9", "freeze"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A job and what happens to it.

    ``options`` are those of train.py. ``under`` is who starts it; ``collect`` is called to a job
    that was started plainly: at once where its log goes on (``is_silent`` is false); with
    ``killed_collect`` it is killed while it reads. ``act`` is done to the ``victim`` from
    outside. A job that ``ends`` is waited for, of the others whyhang's verdict is.
    """

    summary: str
    fault: str = "none"
    options: tuple[str, ...] = ()
    fault_ranks: tuple[int, ...] = (FAULT_RANK,)
    world_size: int = WORLD_SIZE
    launcher: Literal["torchrun", "bare"] = "torchrun"
    under: Literal["run", "collect", "killed_collect", "nothing"] = "collect"
    output: Literal["file", "pipe", "null"] = "file"
    act: Act = "none"
    victim: int = FAULT_RANK
    mount: MountKind | None = None
    needs: tuple[Need, ...] = ()
    is_silent: bool = True
    ends: bool = False
    expected: Expected | None = None

    @property
    def left_out(self) -> str | None:
        """Why it cannot be played here; None if it can."""
        return why_not(("torch", *self.needs))


def _local(*categories: str, facts: tuple[Fact, ...] = ()) -> Expected:
    return Expected(
        verdicts=("local_hang",), categories=categories, suspects=(FAULT_RANK,), facts=facts
    )


def _worker(function: str, state: str, wchan: str | None = None) -> Fact:
    """Workers are never stopped."""
    return Fact(
        kind="dataloader",
        rank=FAULT_RANK,
        function=function,
        state=state,
        wchan=wchan,
        mode="nonblocking",
    )


def _trainer(
    function: str, *, state: str = "S", wchan: str | None = None, stoppable: bool = True
) -> Fact:
    """The rank that stands in a function; native frames are read where a stop is safe."""
    return Fact(
        kind="trainer",
        rank=FAULT_RANK,
        function=function,
        state=state,
        wchan=wchan,
        mode="native" if stoppable else "nonblocking",
    )


def _healthy(*facts: Fact, category: str = "other") -> Expected:
    return Expected(verdicts=("no_hang",), categories=(category,), facts=facts)


_OTHERS_WAIT = Fact(kind="trainer", rank=0, state="S", wchan=FUTEX, mode="native")
_ALL_WAIT = Expected(
    verdicts=("global_hang", "local_hang"),
    categories=("collective_wait", "barrier"),
    suspects=(FAULT_RANK,),
    facts=(_OTHERS_WAIT,),
)
_DATA = _local("dataloader", facts=(_worker("wait_for_shard", "S", PIPE_READ), _OTHERS_WAIT))
_LOST = Expected(verdicts=("no_hang",), categories=("exited_rank",), suspects=(FAULT_RANK,))

SCENARIOS = {
    # --- data
    "worker_fork": Scenario(
        summary="a dataloader worker blocks (fork)",
        fault="wait_for_shard",
        expected=_DATA,
    ),
    "worker_spawn": Scenario(
        summary="a dataloader worker blocks (spawn)",
        fault="wait_for_shard",
        options=("--start-method", "spawn"),
        expected=_DATA,
    ),
    "worker_forkserver": Scenario(
        summary="a dataloader worker blocks (forkserver)",
        fault="wait_for_shard",
        options=("--start-method", "forkserver"),
        expected=_DATA,
    ),
    "main_process_data": Scenario(
        summary="the dataset blocks in the trainer itself (workers 0)",
        fault="wait_for_shard",
        options=("--workers", "0"),
        expected=_local(
            "dataloader", facts=(_trainer("wait_for_shard", wchan=PIPE_READ), _OTHERS_WAIT)
        ),
    ),
    "all_data": Scenario(
        summary="a dataloader worker of every rank blocks",
        fault="wait_for_shard",
        fault_ranks=(),
        expected=Expected(
            verdicts=("global_hang",),
            categories=("dataloader",),
            facts=(_worker("wait_for_shard", "S", PIPE_READ),),
        ),
    ),
    "fork_after_thread": Scenario(
        summary="a worker waits for a lock that a thread held when it was forked",
        fault="wait_for_cache",
        options=("--epochs", "2", "--steps", "10"),
        expected=_local(
            "lock_deadlock",
            "dataloader",
            facts=(_worker("wait_for_cache", "S", FUTEX), _OTHERS_WAIT),
        ),
    ),
    "sigstop_worker": Scenario(
        summary="a dataloader worker is stopped by a signal",
        act="sigstop_worker",
        expected=_local(
            "stopped_process",
            facts=(
                Fact(kind="dataloader", rank=FAULT_RANK, state="T", mode="nonblocking"),
                _OTHERS_WAIT,
            ),
        ),
    ),
    # --- code of the user's
    "user_sleep": Scenario(
        summary="a rank sleeps in user code",
        fault="publish_metrics",
        expected=_local("user_code", facts=(_trainer("publish_metrics", wchan="nanosleep"),)),
    ),
    "lock_deadlock": Scenario(
        summary="two threads of a rank take two locks in opposite order",
        fault="flush_logger",
        expected=_local("lock_deadlock", facts=(_trainer("flush_logger", wchan=FUTEX),)),
    ),
    "busy_python": Scenario(
        summary="a rank loops for ever in Python",
        fault="count_for_ever",
        expected=_local("user_code", facts=(_trainer("count_for_ever", state="R"),)),
    ),
    "busy_native": Scenario(
        summary="a rank loops for ever in C",
        fault="spin_in_c",
        needs=("compiler",),
        expected=_local("user_code", "other", facts=(_trainer("spin_in_c", state="R"),)),
    ),
    "native_pause": Scenario(
        summary="a C call never returns",
        fault="wait_in_c",
        expected=_local("user_code", "other", facts=(_trainer("wait_in_c", wchan="pause"),)),
    ),
    "native_gil": Scenario(
        summary="a C call never returns and keeps Python's global lock",
        fault="wait_in_c_with_gil",
        expected=_local(
            "user_code", "other", facts=(_trainer("wait_in_c_with_gil", wchan="pause"),)
        ),
    ),
    "fifo_read": Scenario(
        summary="a rank reads a named pipe that nobody writes to",
        fault="read_command",
        expected=_local("user_code", "other", facts=(_trainer("read_command", wchan=PIPE_READ),)),
    ),
    "socket_read": Scenario(
        summary="a rank reads a socket whose peer is silent",
        fault="ask_service",
        expected=_local(
            "user_code", "network", "other", facts=(_trainer("ask_service", wchan=SOCKET),)
        ),
    ),
    # --- storage and the kernel
    "fuse_trainer": Scenario(
        summary="a rank reads a file of a dead FUSE mount (S)",
        fault="read_settings",
        mount="fuse_direct",
        needs=("fuse",),
        expected=_local(
            "disk_io",
            facts=(_trainer("read_settings", wchan="request_wait_answer", stoppable=False),),
        ),
    ),
    "fuse_worker": Scenario(
        summary="a dataloader worker reads a file of a dead FUSE mount (D)",
        fault="read_remote_shard",
        mount="fuse_cached",
        needs=("fuse",),
        expected=_local("disk_io", facts=(_worker("read_remote_shard", "D", "folio"),)),
    ),
    "freeze": Scenario(
        summary="a rank writes a checkpoint to a frozen file system (D)",
        fault="frozen_checkpoint",
        act="freeze",
        mount="ext4",
        needs=("freeze",),
        expected=_local(
            "disk_io",
            "checkpoint_io",
            facts=(Fact(kind="trainer", rank=FAULT_RANK, state="D", mode="nonblocking"),),
        ),
    ),
    "vfork": Scenario(
        summary="a rank waits for a vforked child (D, no storage)",
        fault="run_tool",
        needs=("compiler",),
        expected=_local(
            "other", "user_code", facts=(_trainer("run_tool", state="D", stoppable=False),)
        ),
    ),
    "sigstop": Scenario(
        summary="a rank is stopped by a signal",
        act="sigstop",
        expected=_local(
            "stopped_process",
            facts=(
                Fact(kind="trainer", rank=FAULT_RANK, state="T", mode="nonblocking"),
                _OTHERS_WAIT,
            ),
        ),
    ),
    "three_down": Scenario(
        summary="two ranks sleep uninterruptibly and one is stopped",
        fault="run_tool",
        fault_ranks=(1, 2),
        world_size=4,
        act="sigstop",
        victim=0,
        needs=("compiler",),
        expected=Expected(
            verdicts=("local_hang",),
            categories=("stopped_process",),
            suspects=(0, 1, 2),
            facts=(
                Fact(kind="trainer", rank=0, state="T", mode="nonblocking"),
                Fact(kind="trainer", rank=1, state="D", mode="nonblocking"),
                Fact(kind="trainer", rank=2, state="D", mode="nonblocking"),
                Fact(kind="trainer", rank=3, state="S", mode="native"),
            ),
        ),
    ),
    # --- collectives
    "mismatch": Scenario(
        summary="one rank calls a collective that nobody else calls",
        fault="mismatch",
        expected=_ALL_WAIT,
    ),
    "early_finish": Scenario(
        summary="one rank runs out of data before the others",
        fault="early_finish",
        expected=_ALL_WAIT,
    ),
    # --- no hang
    "healthy": Scenario(
        summary="a healthy job",
        world_size=2,
        is_silent=False,
        expected=_healthy(
            Fact(kind="launcher"), Fact(kind="trainer", rank=0), Fact(kind="dataloader", rank=1)
        ),
    ),
    "compile_workers": Scenario(
        summary="a healthy job whose compile workers are idle",
        options=("--compile-workers",),
        world_size=2,
        is_silent=False,
        expected=_healthy(
            Fact(kind="compile_worker", rank=0, state="S"),
            Fact(kind="compile_worker", rank=1, state="S"),
        ),
    ),
    "long_checkpoint": Scenario(
        summary="a rank writes a long checkpoint, the others wait in a barrier",
        fault="long_checkpoint",
        expected=_healthy(
            Fact(kind="trainer", rank=0, function="barrier", state="S"), category="checkpoint_io"
        ),
    ),
    "evaluation": Scenario(
        summary="every rank evaluates and prints nothing",
        fault="evaluation",
        fault_ranks=(),
        expected=_healthy(Fact(kind="trainer", rank=0)),
    ),
    # --- ways to look at a job
    "without_log": Scenario(
        summary="a blocked worker in a job whose output goes nowhere",
        fault="wait_for_shard",
        output="null",
        expected=_DATA,
    ),
    "killed_collector": Scenario(
        summary="a healthy job whose collector is killed while it holds a rank",
        under="killed_collect",
        world_size=2,
    ),
    "watched_worker": Scenario(
        summary="a blocked worker under `whyhang run`",
        fault="wait_for_shard",
        under="run",
        expected=_DATA,
    ),
    "watched_sleep": Scenario(
        summary="a rank that sleeps under `whyhang run`, with a pipe for its output",
        fault="publish_metrics",
        under="run",
        output="pipe",
        expected=_local("user_code", facts=(_trainer("publish_metrics", wchan="nanosleep"),)),
    ),
    "killed": Scenario(
        summary="a rank is killed under torchrun",
        act="kill9",
        under="run",
        ends=True,
        expected=_LOST,
    ),
    "killed_bare": Scenario(
        summary="a rank is killed where no agent started it",
        act="kill9",
        launcher="bare",
        under="run",
        ends=True,
        # Nobody reports who it was, and the others end as fast.
        expected=Expected(verdicts=("no_hang",), categories=("exited_rank",)),
    ),
    "killed_unwatched": Scenario(
        summary="a rank is killed under torchrun, without whyhang",
        act="kill9",
        under="nothing",
        ends=True,
    ),
    # Two epochs together are longer than the stall time.
    "three_epochs": Scenario(
        summary="three epochs of a bare bar under `whyhang run`",
        options=("--report", "bar", "--epochs", "3", "--steps", "80"),
        under="run",
        output="pipe",
        ends=True,
    ),
    "slow_steps": Scenario(
        summary="steps that are longer than the stall time under `whyhang run`",
        fault="slow",
        options=("--steps", "13", "--fault-step", "12", "--slow-seconds", "20"),
        fault_ranks=(),
        under="run",
        ends=True,
    ),
}
