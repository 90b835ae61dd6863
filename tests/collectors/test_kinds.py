"""Who is who, from evidence alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from whyhang.collectors.kinds import (
    Identity,
    find_starters,
    find_trainers,
    is_launcher,
    is_whyhang,
    kind_of,
    number_workers,
    program,
    refine_kind,
)
from whyhang.collectors.ranks import parse_job_environment
from whyhang.schemas.frame import Frame
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.words import ProcessKind

TRAIN = ("python3", "-u", "train.py")
TORCHRUN = ("/usr/bin/python3", "/usr/bin/torchrun", "--nproc-per-node=2", "train.py")
SPAWN = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)")
FORKSERVER = ("python", "-c", "from multiprocessing.forkserver import main; main(7, 8)")
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(4)")
COMPILE = ("python", "/x/torch/_inductor/compile_worker/__main__.py", "--kind=fork")
RANK0, RANK1 = {"RANK": "0"}, {"RANK": "1"}


def _identity(
    pid: int,
    ppid: int,
    cmdline: Sequence[str] = TRAIN,
    environ: Mapping[str, str] | None = None,
    *,
    name: str = "python3",
    exe: str | None = "/usr/bin/python3",
    state: str = "S",
) -> Identity:
    environ = {} if environ is None else environ
    return Identity(
        pid=pid,
        ppid=ppid,
        name=name,
        state=state,
        session=pid,
        exe=exe,
        is_python=None if exe is None else "python" in exe,
        cmdline=tuple(cmdline),
        environ=environ,
        job=parse_job_environment(environ),
    )


def _kinds(*identities: Identity) -> dict[int, ProcessKind]:
    table = {identity.pid: identity for identity in identities}
    trainers = find_trainers(table)
    starters = find_starters(trainers, table)
    return {
        pid: kind_of(identity, table, trainers=trainers, starters=starters)
        for pid, identity in table.items()
    }


def test_a_torchrun_tree() -> None:
    """Agent, ranks and each kind of child are told apart though all children carry RANK."""
    kinds = _kinds(
        _identity(10, 1, TORCHRUN, name="pt_elastic"),
        _identity(11, 10, environ=RANK0),
        _identity(12, 10, environ=RANK1),
        _identity(13, 11, environ=RANK0, name="pt_data_worker"),
        _identity(14, 11, FORKSERVER, RANK0),
        _identity(15, 14, FORKSERVER, RANK0, name="pt_data_worker"),
        _identity(16, 14, FORKSERVER, RANK0),
        _identity(17, 11, TRACKER, RANK0),
        _identity(18, 12, COMPILE, RANK1),
        _identity(19, 12, SPAWN, RANK1),
        _identity(20, 12, environ=RANK1),
        _identity(21, 18, ("ptxas", "a.ptx"), RANK1, name="ptxas", exe="/c/ptxas"),
        _identity(22, 12, ("wandb-core",), RANK1, name="wandb-core", exe="/x/wandb-core"),
    )
    assert kinds == {
        10: "launcher",
        11: "trainer",
        12: "trainer",
        13: "dataloader",
        14: "helper",
        15: "dataloader",
        16: "other",
        17: "helper",
        18: "compile_worker",
        19: "other",
        20: "other",
        21: "compile_worker",
        22: "helper",
    }


def test_a_shell_that_carries_the_rank_is_no_rank() -> None:
    """Below `srun bash -c …`, and below a script with a name of its own, Python is the rank."""
    kinds = _kinds(
        _identity(10, 1, ("bash", "-c", "python train.py"), RANK0, exe="/bin/bash", name="bash"),
        _identity(11, 10, environ=RANK0),
        _identity(20, 1, ("/bin/sh", "./run.sh"), RANK1, exe="/bin/dash", name="run.sh"),
        _identity(21, 20, environ=RANK1),
    )
    assert (kinds[11], kinds[21]) == ("trainer", "trainer")
    assert (kinds[10], kinds[20]) == ("other", "other")


def test_an_agent_that_slurm_numbered_is_no_rank() -> None:
    """torchrun under srun carries SLURM_PROCID, and so does an unknown launcher's agent."""
    slurm = {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "4"}
    kinds = _kinds(
        _identity(10, 1, TORCHRUN, slurm),
        _identity(11, 10, environ={**slurm, **RANK0}),
        _identity(20, 1, ("python", "launch.py"), {**slurm, "SLURM_JOB_ID": "5"}),
        _identity(21, 20, environ={**slurm, **RANK0, "SLURM_JOB_ID": "5"}),
        _identity(22, 20, environ={**slurm, **RANK1, "SLURM_JOB_ID": "5"}),
    )
    assert kinds == {10: "launcher", 11: "trainer", 20: "launcher", 21: "trainer", 22: "trainer"}


def test_a_rank_that_copies_its_number_for_its_helpers_stays_a_rank() -> None:
    """RANK in the children alone, equal to the parent's SLURM_PROCID, makes no child a rank."""
    slurm = {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "4"}
    kinds = _kinds(
        _identity(10, 1, environ=slurm),
        _identity(11, 10, COMPILE, {**slurm, "RANK": "3"}),
        _identity(12, 10, SPAWN, {**slurm, "RANK": "3"}),
    )
    assert kinds == {10: "trainer", 11: "compile_worker", 12: "other"}


def test_a_monitor_in_the_batch_script_is_no_rank() -> None:
    """Slurm numbers the batch script's programs too; the job step holds the ranks."""
    batch = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "4"}
    step = {**batch, "SLURM_STEP_ID": "0"}
    kinds = _kinds(
        _identity(10, 1, ("python", "monitor.py"), batch),
        _identity(20, 2, environ=step),
        _identity(21, 2, environ={**step, "SLURM_PROCID": "1"}),
    )
    assert kinds == {10: "other", 20: "trainer", 21: "trainer"}


def test_orphans_do_not_take_their_dead_parents_place() -> None:
    """Workers whose trainer died are no ranks, and one that looks like a rank yields to it."""
    kinds = _kinds(
        _identity(10, 2, TORCHRUN),
        _identity(11, 10, environ=RANK0),
        _identity(12, 1, environ=RANK0),
        _identity(13, 1, environ=RANK1, name="pt_data_worker"),
        _identity(14, 1, SPAWN, RANK1),
        _identity(15, 1, COMPILE, RANK1),
    )
    assert kinds == {
        10: "launcher",
        11: "trainer",
        12: "other",
        13: "dataloader",
        14: "other",
        15: "compile_worker",
    }


def test_a_process_spawned_as_a_rank_is_one() -> None:
    """Where a Python parent without a rank gave one, the spawned child is the rank."""
    kinds = _kinds(
        _identity(10, 1, ("python", "main.py")),
        _identity(11, 10, SPAWN, RANK0),
        _identity(12, 10, SPAWN, RANK1),
    )
    assert kinds == {10: "launcher", 11: "trainer", 12: "trainer"}


def test_a_rank_that_cannot_be_read_is_still_a_trainer() -> None:
    """Zombies and other users' processes below an agent are trainers of unknown rank."""
    zombie = replace(_identity(11, 10, exe=None, state="Z"), cmdline=None, environ=None)
    closed = replace(_identity(12, 10, exe=None), environ=None)
    shell = replace(_identity(13, 10, ("bash", "x"), exe=None, name="bash"), environ=None)
    kinds = _kinds(_identity(10, 1, TORCHRUN), zombie, closed, shell)
    assert kinds == {10: "launcher", 11: "trainer", 12: "trainer", 13: "other"}


def test_a_process_title_names_a_trainer() -> None:
    """Ray's workers have a title in place of a command line."""
    kinds = _kinds(_identity(10, 1, ("ray::RayTrainWorker.execute",), name="ray::RayTrain"))
    assert kinds == {10: "trainer"}


def test_a_server_s_titles_tell_engine_and_workers_apart() -> None:
    """An engine with workers starts them; one without runs the model itself."""
    kinds = _kinds(
        _identity(10, 1, ("VLLM::EngineCore_DP0",)),
        _identity(11, 10, ("VLLM::Worker_TP0",)),
        _identity(12, 10, ("VLLM::Worker_TP1",)),
        _identity(20, 1, ("VLLM::EngineCore_DP1",)),
        _identity(30, 1, ("python", "-m", "sglang.launch_server")),
        _identity(31, 30, ("sglang::scheduler_TP0",)),
        _identity(32, 30, ("sglang::detokenizer",)),
    )
    assert kinds == {
        10: "launcher",
        11: "trainer",
        12: "trainer",
        20: "trainer",
        30: "launcher",
        31: "trainer",
        32: "other",
    }


@pytest.mark.parametrize(
    ("cmdline", "expected"),
    [
        (("python3", "-u", "-X", "dev", "train.py", "-m"), "train.py"),
        (("/a/python3.11", "-m", "torch.distributed.run", "x"), "torch.distributed.run"),
        (("python", "-c", "x = 1"), "x = 1"),
        (("srun", "whyhang", "run"), "srun"),
        (("python",), "python"),
        ((), ""),
    ],
)
def test_what_an_interpreter_runs(cmdline: tuple[str, ...], expected: str) -> None:
    """Script, module or text, whatever options stand before."""
    assert program(cmdline) == expected


@pytest.mark.parametrize(
    "cmdline",
    [
        TORCHRUN,
        ("python", "-m", "torch.distributed.run", "train.py"),
        ("python", "/opt/bin/accelerate", "launch", "train.py"),
        ("python", "-u", "-m", "torch.distributed.launch", "train.py"),
    ],
)
def test_launchers_are_known(cmdline: tuple[str, ...]) -> None:
    """By script or by module; the trainer's script is none."""
    assert is_launcher(_identity(1, 0, cmdline))
    assert not is_launcher(_identity(1, 0, TRAIN))


@pytest.mark.parametrize(
    ("identity", "ours"),
    [
        (_identity(1, 0, ("/v/bin/python", "/v/bin/whyhang", "run", "--", "x")), True),
        (_identity(1, 0, ("python", "-m", "whyhang.engine", "watch")), True),
        (_identity(1, 0, environ={"WHYHANG_INTERNAL": "1"}), True),
        (_identity(1, 0, ("py-spy", "dump"), name="py-spy", exe="/x/py-spy"), True),
        (_identity(1, 0, ("srun", "whyhang", "run"), name="srun", exe="/bin/srun"), False),
        (_identity(1, 0, ("python", "train.py", "--out", "whyhang")), False),
    ],
)
def test_our_own_processes_are_known(identity: Identity, ours: bool) -> None:
    """By mark, module or console script; never by an argument of the job's."""
    assert is_whyhang(identity) is ours


def test_a_rank_below_whyhang_is_found() -> None:
    """`srun whyhang run -- python train.py`: whyhang carries the rank, the child is it."""
    ours = _identity(10, 1, ("python", "/b/whyhang", "run", "--", "python", "train.py"), RANK0)
    assert find_trainers({10: ours, 11: _identity(11, 10, environ=RANK0)}) == {11}


def _process(*frames: tuple[str, str], kind: ProcessKind = "other", name: str = "MainThread",
             **changes: int) -> Process:  # fmt: skip
    stack = Stack(tuple(Frame(function, path, path) for function, path in frames))
    process = Process(pid=1, node="n", kind=kind, threads=(Thread(name=name, stack=stack),))
    return replace(process, **changes)  # type: ignore[arg-type]


LOOP = ("_worker_loop", "/s/site-packages/torch/utils/data/_utils/worker.py")
BOOTSTRAP = ("BaseProcess._bootstrap", "/lib/python3.11/multiprocessing/process.py")
SAVE = ("X.async_loop", "/s/megatron/core/dist_checkpointing/strategies/async_utils.py")


@pytest.mark.parametrize(
    ("process", "kind"),
    [
        (_process(("get", "q.py"), LOOP, BOOTSTRAP, ("train", "train.py")), "dataloader"),
        (_process(("get", "q.py"), LOOP, kind="trainer"), "dataloader"),
        (_process(("f", "pool.py"), BOOTSTRAP, LOOP, BOOTSTRAP), "other"),
        (_process(SAVE, BOOTSTRAP), "checkpoint"),
        (_process(("f", "x.py"), BOOTSTRAP, SAVE), "other"),
        (_process(SAVE, kind="trainer"), "trainer"),
        (_process(LOOP, name="Thread-7"), "dataloader"),
        (_process(("f", "x.py"), kind="trainer"), "trainer"),
        (Process(pid=1, node="n", kind="other"), "other"),
    ],
)
def test_own_frames_tell_what_a_child_is_for(process: Process, kind: ProcessKind) -> None:
    """Frames that a fork copied from the parent, below the bootstrap, tell nothing."""
    assert refine_kind(process) == kind


def test_workers_are_numbered_by_pid_within_a_rank() -> None:
    """Each rank counts its own dataloader workers; other kinds have no number."""
    numbered = number_workers(
        [
            _process(kind="dataloader", pid=9, rank=0),
            _process(kind="dataloader", pid=5, rank=0),
            _process(kind="dataloader", pid=7, rank=1),
            _process(kind="trainer", pid=1, rank=0, worker=4),
        ]
    )
    assert [(x.pid, x.worker) for x in numbered] == [(9, 1), (5, 0), (7, 0), (1, None)]


SPAWNED = {"kind": "other", "cmdline": SPAWN}


@pytest.mark.parametrize(
    ("frame", "changes", "kind"),
    [
        (("_wrap", "/s/torch/multiprocessing/spawn.py"), SPAWNED, "trainer"),
        (("barrier", "/s/torch/distributed/distributed_c10d.py"), SPAWNED, "trainer"),
        (("f", "train.py"), SPAWNED, "other"),
        (("f", "train.py"), {**SPAWNED, "kind": "trainer"}, "trainer"),
        (("_process_worker", "/l/concurrent/futures/process.py"), {**SPAWNED, "kind": "trainer"},
         "other"),
        (LOOP, {**SPAWNED, "kind": "trainer"}, "dataloader"),
        (SAVE, SPAWNED, "checkpoint"),
        (("_wrap", "/s/torch/multiprocessing/spawn.py"), {**SPAWNED, "rank": 3}, "other"),
    ],
)  # fmt: skip
def test_spawned_children_without_a_rank_are_told_by_their_frames(
    frame: tuple[str, str], changes: dict[str, object], kind: ProcessKind
) -> None:
    """`mp.spawn` gives ranks by an argument: process-group frames make a rank, a pool's do not."""
    process = replace(_process(frame, BOOTSTRAP), **changes)  # type: ignore[arg-type]
    assert refine_kind(process) == kind
