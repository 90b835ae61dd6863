"""What a single rank does when it is the one that others wait for."""

from __future__ import annotations

from dataclasses import replace

from tests.generated.job import Act, Child, Job, Stack
from tests.generated.notation import Line

FILES = (
    "callbacks", "losses", "augment", "reward", "curriculum", "monitoring", "postprocess",
    "sampler", "boxes", "vocab", "schedule", "features",
)  # fmt: skip
FOLDERS = ("", "", "src/", "project/", "lib/core/")
VERBS = ("update", "refresh", "compute", "merge", "resolve", "build", "rank", "filter", "poll")
NOUNS = ("table", "boxes", "weights_map", "scores", "flags", "window", "pairs", "targets", "cache")
CLASSES = ("Tracker", "Matcher", "Builder", "Pipeline", "Mixer")
# What user code may be caught in: frames below it, state, wait channel, system call, CPU.
DEEDS: tuple[tuple[tuple[str, ...], str, str | None, int | None, float], ...] = (
    (("! libpython3.so.1.0 time_sleep",), "S", "hrtimer_nanosleep", 230, 0.0),
    ((), "R", None, None, 0.99),
    (("json/decoder.py:355 JSONDecoder.raw_decode", "json/decoder.py:340 JSONDecoder.decode",
      "json/__init__.py:346 loads"), "R", None, None, 0.98),
    (("subprocess.py:2011 Popen._try_wait", "subprocess.py:2053 Popen._wait",
      "subprocess.py:1264 Popen.wait", "subprocess.py:391 call"), "S", "do_wait", 61, 0.0),
    (("threading.py:331 Condition.wait", "threading.py:629 Event.wait"),
     "S", "futex_do_wait", 202, 0.0),
    (("threading.py:327 Condition.wait", "queue.py:171 Queue.get"), "S", "futex_do_wait", 202, 0.0),
    (("socket.py:720 SocketIO.readinto",), "S", "wait_woken", 45, 0.0),
    (("numpy/linalg/_linalg.py:1790 svd",), "R", None, None, 1.0),
    (("selectors.py:468 EpollSelector.select",), "S", "do_epoll_wait", 232, 0.0),
)  # fmt: skip
STORAGE = (
    ("percpu_rwsem_wait", 1), ("folio_wait_bit_common", 0), ("rpc_wait_bit_killable", 0),
    ("nfs_wait_on_request", 74), ("cl_sync_io_wait", 0), ("jbd2_log_wait_commit", 74),
)  # fmt: skip


def user_frames(job: Job) -> Stack:
    """One to three frames of the job's own code, of random names."""
    rng = job.rng
    frames = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        path = f"@{rng.choice(FOLDERS)}{rng.choice(FILES)}.py"
        name = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
        shape = rng.random()
        if shape < 0.4:
            name = f"{rng.choice(CLASSES)}.{name}"
        elif shape < 0.5:
            name = f"make_{rng.choice(NOUNS)}.<locals>.{name}"
        frames.append(Line(path, rng.randrange(8, 700), name))
    return tuple(frames)


def user_act(job: Job) -> Act:
    """Standing somewhere in user code, called from one of the places that call it."""
    below, state, wchan, syscall, cpu = job.rng.choice(DEEDS)
    leaf = job.parse(*below)
    where = job.rng.choice([name for name in ("hook", "forward", "hook") if job.has(name)])
    stack = leaf + user_frames(job) + job.stack(where)
    return Act(stack=stack, state=state, wchan=wchan, syscall=syscall, cpu=cpu)


def data_act(job: Job) -> Act:
    """A trainer that waits for its dataloader's workers."""
    if job.pinned:
        return Act(stack=job.stack("loader.pinned", "data"))
    stack = job.stack("loader.workers", "data")
    return Act(stack=stack, wchan="poll_schedule_timeout.constprop.0", syscall=7)


def blocked_worker(job: Job, *, storage: bool = False, zombie: bool = False) -> Child:
    """A dataloader worker that stands in the dataset's code, sleeps in the kernel or is dead."""
    if zombie:
        act = Act(
            state="Z", wchan=None, syscall=None, unread="Failed to get process executable name"
        )
        return Child(kind="dataloader", act=act, name="pt_data_worker")
    stack = user_frames(job) + job.stack("worker.fetch")
    below, state, wchan, syscall, _ = job.rng.choice([deed for deed in DEEDS if deed[1] == "S"])
    if storage:
        state, (wchan, syscall) = "D", job.rng.choice(STORAGE)
    else:
        stack = job.parse(*below) + stack
    act = Act(stack=stack, state=state, wchan=wchan, syscall=syscall, cpu=0.0)
    return Child(kind="dataloader", act=act, name="pt_data_worker")


def block_data(job: Job, rank: int, *, storage: bool = False, zombie: bool = False) -> None:
    """Let a rank wait for a worker of its own that is blocked."""
    job.acts[rank] = data_act(job)
    children = job.children[rank] = list(job.children[rank])
    which = job.rng.randrange(job.workers)
    children[which] = blocked_worker(job, storage=storage, zombie=zombie)


def disk_act(job: Job) -> Act:
    """Asleep in the kernel for storage: the main thread, or a thread that it may wait for."""
    rng = job.rng
    wchan, syscall = rng.choice(STORAGE)
    base = Act(stack=user_frames(job) + job.stack("hook"))
    if job.has("save") and rng.random() < 0.3:
        base = save_act(job)
    if rng.random() < 0.25:
        states = (("ckpt-writer", "D", wchan),)
        writer = job.stack("torch.save", outer=False) + job.stack("thread", outer=False)
        lock = job.parse("threading.py:1119 Thread.join")
        stack = lock + user_frames(job) + job.stack("hook")
        return Act(stack=stack, threads=(("Thread-9 (write)", writer),), thread_states=states)
    return replace(base, state="D", wchan=wchan, syscall=syscall, cpu=0.0)


def save_act(job: Job, *, writes: float = 0.0) -> Act:
    """Writing a checkpoint."""
    writer = "dcp.write" if job.framework == "fsdp2" else "torch.save"
    return Act(
        stack=job.stack(writer, "save") if writer == "torch.save" else dcp_stack(job),
        state="S",
        wchan="folio_wait_writeback" if writes else "request_wait_answer",
        syscall=1,
        cpu=0.05 if writes else 0.0,
        writes=writes,
    )


def dcp_stack(job: Job) -> Stack:
    """Writing the shards of a distributed checkpoint."""
    above = job.stack("save")
    return job.stack("dcp.write", outer=False) + above[len(job.stack("dcp.outer", outer=False)) :]


def lock_act(job: Job) -> Act:
    """The main thread waits for a lock or the GIL that another of its threads never gives back."""
    rng = job.rng
    user = user_frames(job)
    hook = job.stack("hook")
    holder = user_frames(job)[:1] + job.stack("thread", outer=False)
    if rng.random() < 0.5:
        native = job.stack("native.lock", outer=False)
        through = job.parse(*rng.choice((
            (),
            ("threading.py:327 Condition.wait", "queue.py:171 Queue.get"),
            ("logging/__init__.py:957 Handler.acquire", "logging/__init__.py:978 Handler.handle",
             "logging/__init__.py:1708 Logger.callHandlers"),
        )))  # fmt: skip
        stack = native + through + user + hook
        return Act(stack=stack, threads=(("Thread-7 (flush)", holder),), cpu=0.0)
    stack = job.stack("native.gil", outer=False) + user + hook
    return Act(stack=stack, threads=(("prefetch_0", holder),), gil=True, cpu=0.0)


def teardown_act(job: Job) -> Act:
    """A rank that has left the loop and ends."""
    end = job.rng.choice(("end.shutdown", "end.executor", "end.exit_function", "end.destroy"))
    if end != "end.destroy":
        return Act(stack=job.stack(end, outer=False))
    script = job.parse("@@:301 main", "@@:305 <module>")
    return Act(stack=job.stack(end, outer=False) + script)
