"""The process table, of real small process trees."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from whyhang.collectors import procfs
from whyhang.collectors.process_table import list_processes
from whyhang.schemas.process import Process
from whyhang.schemas.process_codec import encode_process

pytestmark = pytest.mark.integration

WAIT = "import os, sys; os.write(1, b'ready\\n'); sys.stdin.read()\n"
Start = Callable[..., "subprocess.Popen[str]"]


def _clean_environ(**extra: str) -> dict[str, str]:
    """This environment without what a launcher or scheduler put there."""
    prefixes = ("RANK", "SLURM", "OMPI", "PMI", "MASTER", "TORCHELASTIC", "WHYHANG")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return {**kept, **extra}


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts commands in sessions of their own, waits for `ready`, leaves nothing behind."""
    started: list[subprocess.Popen[str]] = []

    def run(*command: str, ready: int = 1, **environ: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_clean_environ(**environ),
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        for _ in range(ready):
            assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _by_kind(processes: Sequence[Process]) -> dict[str, list[Process]]:
    kinds: dict[str, list[Process]] = {}
    for process in processes:
        kinds.setdefault(process.kind, []).append(process)
    return kinds


def test_a_wrapped_rank_is_read_whole(start: Start, tmp_path: Path) -> None:
    """The shell around it does not count; every fact of /proc is there, secrets are not."""
    script = tmp_path / "träin 😀.py"
    script.write_text(WAIT)
    command = f"'{sys.executable}' '{script}' --token abc; true"
    shell = start("sh", "-c", command, RANK="3", LOCAL_RANK="1")
    (process,) = list_processes(node="n", root=shell.pid)
    assert (process.kind, process.rank, process.local_rank) == ("trainer", 3, 1)
    assert process.ppid == shell.pid
    assert process.node == "n"
    assert process.cmdline is not None
    assert process.cmdline[1:] == (str(script), "--token", "***")
    assert process.state == "S"
    assert process.tracer_pid == 0
    assert process.cpu_seconds is not None
    assert process.cpu_seconds >= 0
    assert process.io is not None
    assert process.io.rchar
    assert process.cpus_allowed
    assert process.os_threads is not None
    assert [thread.tid for thread in process.os_threads] == [process.pid]
    assert process.exit is None
    assert process.pid not in [x.pid for x in list_processes(node="n", exclude={process.pid})]
    assert process.pid in [x.pid for x in list_processes(node="n")]


def test_of_the_environment_only_the_device_list_is_told(start: Start) -> None:
    """The rank's GPU stands in its line; no other value of the environment does, nor a name."""
    root = start(
        sys.executable, "-c", WAIT, RANK="3", LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="4,GPU-77",
        API_TOKEN="s3cr3t-value",
    )  # fmt: skip
    (process,) = list_processes(node="n", root=root.pid)
    assert (process.gpu_index, process.gpu_uuid) == (None, "GPU-77")
    line = encode_process(process).decode()
    assert '"GPU-77"' in line
    assert not any(text in line for text in ("s3cr3t", "API_TOKEN", "CUDA_VISIBLE", "4,GPU"))


CHILDREN = """
import multiprocessing, os, pathlib, sys, time

def work(name):
    if name:
        pathlib.Path("/proc/self/comm").write_text(name)
    os.write(1, b"ready\\n")
    time.sleep(120)

if __name__ == "__main__":
    for method, name in (("fork", ""), ("spawn", ""), ("forkserver", "pt_data_worker"),
                         ("fork", "pt_data_worker")):
        context = multiprocessing.get_context(method)
        context.Process(target=work, args=(name,), daemon=True).start()
    os.write(1, b"ready\\n")
    sys.stdin.read()
"""


def test_children_of_a_rank_are_told_apart(start: Start, tmp_path: Path) -> None:
    """Forked, spawned and forkserver children inherit RANK, and none of them is the rank."""
    script = tmp_path / "train.py"
    script.write_text(CHILDREN)
    trainer = start(sys.executable, str(script), ready=5, RANK="2")
    processes = list_processes(node="n", root=trainer.pid)
    kinds = _by_kind(processes)
    assert [process.pid for process in kinds["trainer"]] == [trainer.pid]
    assert len(kinds["other"]) == 2
    workers = sorted(kinds["dataloader"], key=lambda process: process.pid)
    assert [process.worker for process in workers] == [0, 1]
    lines = sorted(" ".join(process.cmdline or ()) for process in kinds["helper"])
    assert len(lines) == 2
    assert "forkserver" in lines[0]
    assert "resource_tracker" in lines[1]
    assert {process.rank for process in processes} == {2}
    assert processes[0].kind == "trainer"


TORCHRUN = """
import os, subprocess, sys
for rank in (0, 1):
    environ = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
               "MASTER_PORT": sys.argv[1], "TORCHELASTIC_RUN_ID": "none"}
    subprocess.Popen([sys.executable, sys.argv[2]], env=environ, stdin=sys.stdin)
import time; time.sleep(120)
"""
ORPHAN_OR_EXIT = """
import os, sys, time
if os.environ["RANK"] == "1":
    os._exit(3)
if os.fork() == 0:
    if os.fork() == 0:
        open("/proc/self/comm", "w").write("pt_data_worker")
        os.write(1, b"ready\\n")
        time.sleep(120)
    os._exit(0)
os.wait()
os.write(1, b"ready\\n")
time.sleep(120)
"""


def _tree_with_losses(start: Start, folder: Path) -> subprocess.Popen[str]:
    (folder / "torchrun").write_text(TORCHRUN)
    (folder / "train.py").write_text(ORPHAN_OR_EXIT)
    # The port only has to be this test's own: nothing listens there.
    command = (
        sys.executable,
        str(folder / "torchrun"),
        f"x{os.getpid()}",
        str(folder / "train.py"),
    )
    return start(*command, ready=2)


def _until(
    found: Callable[[tuple[Process, ...]], bool], read: Callable[[], tuple[Process, ...]]
) -> tuple[Process, ...]:
    deadline = time.monotonic() + 20
    while not found(processes := read()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return processes


def test_orphans_and_zombies_are_not_lost(start: Start, tmp_path: Path) -> None:
    """A worker that init adopted is found by its environment, a dead rank by its parent."""
    agent = _tree_with_losses(start, tmp_path)
    processes = _until(
        lambda found: any(x.state == "Z" and x.kind == "trainer" and x.rank is None for x in found),
        lambda: list_processes(node="n", root=agent.pid),
    )
    kinds = _by_kind(processes)
    assert [(x.pid, x.rank) for x in kinds["launcher"]] == [(agent.pid, None)]
    assert [(x.state, x.rank, x.exit) for x in kinds["trainer"]] == [
        ("S", 0, None),
        ("Z", None, 3),
    ]
    (orphan,) = kinds["dataloader"]
    assert orphan.ppid not in {process.pid for process in processes}
    assert (orphan.rank, orphan.worker) == (0, 0)


def test_an_earlier_table_tells_who_a_zombie_was(start: Start, tmp_path: Path) -> None:
    """A zombie has no environment left; its rank comes from the table before."""
    agent = _tree_with_losses(start, tmp_path)
    table = _until(
        lambda found: any(x.state == "Z" and x.kind == "trainer" for x in found),
        lambda: list_processes(node="n", root=agent.pid),
    )
    (zombie,) = [x for x in table if x.state == "Z" and x.kind == "trainer"]
    before = Process(pid=zombie.pid, node="n", kind="trainer", rank=1, cmdline=("python", "x"))
    after = list_processes(node="n", root=agent.pid, known=(before,))
    (again,) = [x for x in after if x.pid == zombie.pid]
    assert (again.kind, again.rank, again.state, again.cmdline) == (
        "trainer", 1, "Z", ("python", "x"),
    )  # fmt: skip


def test_marked_processes_belong_to_the_job(start: Start) -> None:
    """The marker finds what the tree has lost; another job's marker does not."""
    # As its grandchild's parent ends at once, the sleeper is adopted by init.
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.write(1, b'ready\\n'); time.sleep(120)\n"
        "    os._exit(0)\n"
        "os.wait(); os.write(1, b'ready\\n'); time.sleep(120)\n"
    )
    marker = f"m{os.getpid()}"
    root = start(sys.executable, "-c", code, ready=2, WHYHANG_JOB=marker)
    with_marker = list_processes(node="n", root=root.pid, marker=marker)
    assert len(with_marker) == 2
    assert len(list_processes(node="n", root=root.pid, marker="another")) == 1


def test_our_own_processes_never_count(start: Start) -> None:
    """A helper of whyhang below the root, rank or not, is no part of the job."""
    ours = start(sys.executable, "-c", WAIT, RANK="0", WHYHANG_INTERNAL="1")
    assert list_processes(node="n", root=ours.pid) == ()
    assert ours.pid not in [process.pid for process in list_processes(node="n")]


def test_a_job_without_ranks_is_rank_0(start: Start) -> None:
    """One Python process started plainly is a job of one rank; a bare launcher is none yet."""
    process = start(sys.executable, "-c", WAIT)
    (alone,) = list_processes(node="n", root=process.pid)
    assert (alone.kind, alone.rank) == ("trainer", 0)
    known = Process(pid=1, node="n", kind="trainer", rank=5)
    (alone,) = list_processes(node="n", root=process.pid, known=(known,))
    assert (alone.kind, alone.rank) == ("other", None)


def test_a_job_without_ranks_stays_rank_0(start: Start) -> None:
    """Seen again it is the same rank, also once it has started workers; it has not exited."""
    code = (
        "import multiprocessing, os, sys, time\n"
        "if __name__ == '__main__':\n"
        "    os.write(1, b'ready\\n')\n"
        "    sys.stdin.readline()\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    sleeper = {'target': time.sleep, 'args': (100,), 'daemon': True}\n"
        "    for _ in range(2): spawn.Process(**sleeper).start()\n"
        "    os.write(1, b'ready\\n')\n"
        "    sys.stdin.read()\n"
    )
    process = start(sys.executable, "-c", code)
    known = list_processes(node="n", root=process.pid)
    assert [(p.kind, p.rank) for p in list_processes(node="n", root=process.pid, known=known)] == [
        ("trainer", 0)
    ]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    later = list_processes(node="n", root=process.pid, known=known)
    assert [p.pid for p in later if p.kind == "trainer"] == [process.pid]


def test_a_root_that_is_gone_leaves_an_empty_table() -> None:
    """No process, no error."""
    assert list_processes(node="n", root=2**22 + 5) == ()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)
def test_without_rights_the_rank_is_unknown_and_stays_listed(start: Start, tmp_path: Path) -> None:
    """Where the environment is closed to us the trainer stays in the table, unread."""
    (tmp_path / "torchrun").write_text(
        "import os, subprocess, sys, time\n"
        "environ = {**os.environ, 'RANK': '4'}\n"
        "subprocess.Popen([sys.executable, '-c', sys.argv[1]], env=environ)\n"
        "time.sleep(120)\n"
    )
    agent = start(sys.executable, str(tmp_path / "torchrun"), WAIT.replace("sys.stdin.read()",
                  "__import__('time').sleep(120)"))  # fmt: skip
    script = (
        "import json, sys\n"
        "from whyhang.collectors.collect import take_sample\n"
        "from whyhang.collectors.process_table import list_processes\n"
        "from whyhang.schemas.config import CollectConfig\n"
        "table = list_processes(node='n', root=int(sys.argv[1]))\n"
        "sample = take_sample(table, deep=True, config=CollectConfig(), deadline_seconds=30)\n"
        "print(json.dumps([(p.kind, p.rank, p.state, p.io, str(p.threads)) for p in sample]))\n"
    )
    drop = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
    done = subprocess.run(
        [*drop, sys.executable, "-c", script, str(agent.pid)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    trainer, launcher = json.loads(done.stdout)
    assert trainer[:4] == ["trainer", None, "S", None]
    assert "permission denied: it has capabilities that whyhang has not" in trainer[4]
    assert launcher[0] == "launcher"


CROWDED = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for rank in range(3):
    if os.fork() == 0:
        os.write(1, b"ready\\n")
        while True:
            pass
sys.stdin.read()
"""


def test_ranks_that_share_a_core_wait_for_it(start: Start) -> None:
    """One CPU is allowed, and the time in the run queue grows as fast as that of others' work."""
    parent = start(sys.executable, "-c", CROWDED, ready=3, RANK="0")
    first = list_processes(node="n", root=parent.pid)
    time.sleep(1.5)
    before = {process.pid: process.run_queue_seconds or 0.0 for process in first}
    after = [p for p in list_processes(node="n", root=parent.pid) if p.ppid == parent.pid]
    assert len(after) == 3
    assert all((process.cpus_allowed or "").isdigit() for process in after)
    assert sum((p.run_queue_seconds or 0.0) - before[p.pid] for p in after) > 1.0


TITLED = """
import subprocess, sys
for title in sys.argv[2:]:
    subprocess.Popen([title, "-c", sys.argv[1]], executable=sys.executable)
sys.stdin.read()
"""


def test_titles_tell_the_rank(start: Start) -> None:
    """Where no environment does: pipeline stage and tensor rank, counted through."""
    titles = [f"sglang::scheduler_PP{stage}_TP{rank}" for stage in (1, 0) for rank in (0, 1)]
    server = start(sys.executable, "-c", TITLED, WAIT, *titles, ready=4)
    found = list_processes(node="n", root=server.pid)
    ranks = {(p.cmdline or ("",))[0]: (p.kind, p.rank) for p in found}
    assert [ranks[title] for title in titles] == [("trainer", n) for n in (2, 3, 0, 1)]


def test_titles_that_do_not_tell_apart_keep_the_process(start: Start) -> None:
    """Two of one name are trainers of unknown rank: kept, and not numbered at will."""
    titles = ["ray::RayTrainWorker", "ray::RayTrainWorker", "VLLM::Worker_TP3"]
    server = start(sys.executable, "-c", TITLED, WAIT, *titles, ready=3)
    found = list_processes(node="n", root=server.pid)
    assert [(p.kind, p.rank) for p in found if p.kind == "trainer"] == [("trainer", None)] * 3


SPAWNING = """
import multiprocessing, os, sys

def train(rank):
    os.environ["RANK"] = str(rank)
    os.write(1, b"ready\\n")
    sys.stdin.read()
    import time; time.sleep(120)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for rank in range(2):
        context.Process(target=train, args=(rank,), daemon=True).start()
    import time; time.sleep(120)
"""


def test_ranks_that_python_gave_are_kept(start: Start, tmp_path: Path) -> None:
    """RANK set after the start stands in no environment: trainers of unknown rank."""
    script = tmp_path / "spawn.py"
    script.write_text(SPAWNING)
    parent = start(sys.executable, str(script), ready=2)
    kinds = _by_kind(list_processes(node="n", root=parent.pid))
    assert [(x.rank, x.ppid) for x in kinds["trainer"]] == [(None, parent.pid)] * 2
    assert [x.pid for x in kinds["launcher"]] == [parent.pid]
    assert "dataloader" not in kinds


def test_an_argument_tells_the_local_rank(start: Start) -> None:
    """DeepSpeed's launcher writes it, with `=` or as a word of its own."""
    for words in (("--local_rank=3",), ("--local-rank", "3")):
        # Both have the same rank of no job: the one that was asked for is meant.
        child = start(sys.executable, "-c", WAIT, *words, RANK="11")
        (process,) = list_processes(node="n", root=child.pid)
        assert (process.rank, process.local_rank) == (11, 3)


HOLD = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.prctl(15, sys.argv[2].encode(), 0, 0, 0)
seize, interrupt = 0x4206, 0x4207
if libc.ptrace(seize, int(sys.argv[1]), None, None):
    print("refused", flush=True)
    sys.exit()
libc.ptrace(interrupt, int(sys.argv[1]), None, None)
os.waitpid(int(sys.argv[1]), 0x40000000)
print("ready", flush=True)
if sys.argv[3] == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("name", "how", "counts"),
    [("gdb", "running", True), ("py-spy", "running", False), ("py-spy", "stopped", True)],
)
def test_a_sampler_that_passes_by_is_no_tracer(
    start: Start, name: str, how: str, counts: bool
) -> None:
    """Two looks at one job at a time accuse nobody; a debugger, or a sampler that is stuck, do."""
    held = start(sys.executable, "-c", WAIT, RANK="0", WORLD_SIZE="1")
    tracer = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(held.pid), name, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert tracer.stdout is not None
        if tracer.stdout.readline() == "refused\n":
            pytest.skip("needs the right to trace")
        while how == "stopped" and "(stopped)" not in procfs.read_status(tracer.pid)["State"]:
            time.sleep(0.01)
        (process,) = list_processes(node="n", root=held.pid)
        assert process.state == "t"
        assert process.tracer_pid == (tracer.pid if counts else 0)
    finally:
        tracer.kill()
        tracer.communicate()
