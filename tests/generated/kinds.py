"""The kinds of incidents: each plants its fault in a job and tells what is right to say of it.

What is right follows from what the verdict words mean, not from what the rules find.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tests.accuracy.answers import Answer
from tests.generated.faults import (
    block_data,
    data_act,
    disk_act,
    lock_act,
    save_act,
    teardown_act,
    user_act,
    user_frames,
)
from tests.generated.job import FRAMEWORKS, Act, Child, Job, make_job, stalled
from tests.generated.surround import lay_pipelines, stage_of, surround

TRAINING = tuple(name for name in FRAMEWORKS if name != "sglang")
# Where call paths of healthy ranks differ by their place in a pipeline, one call tells nothing.
ALIKE = tuple(name for name in TRAINING if name != "megatron")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What may be said of an incident. Nobody in ``innocent`` may ever be named."""

    answers: tuple[Answer, ...]
    innocent: frozenset[int] = frozenset()


Plant = Callable[[random.Random], tuple[Job, Truth]]
KINDS: dict[str, Plant] = {}


def kind(plant: Plant) -> Plant:
    """Register a kind under its function's name."""
    KINDS[plant.__name__] = plant
    return plant


def local(ranks: Iterable[int]) -> Truth:
    """These ranks hang and nobody else."""
    return Truth(answers=(Answer(verdict="local_hang", suspects=frozenset(ranks)),))


def together(suspects: Iterable[int] = ()) -> Truth:
    """All hang together; in a desync the minority is named."""
    return Truth(answers=(Answer(verdict="global_hang", suspects=frozenset(suspects)),))


def quiet(*verdicts: str) -> Truth:
    """Nobody is to be named."""
    return Truth(answers=tuple(Answer(verdict=verdict) for verdict in verdicts))


def without_log(job: Job) -> None:
    """Now and then nobody has a log; then only waiters that are at rest tell anything."""
    if not job.spinning and job.rng.random() < 0.1:
        job.has_log, job.trigger = False, "manual"


def pick(job: Job) -> int:
    """Any rank."""
    return job.rng.randrange(job.world)


def alone(rng: random.Random, act: Callable[[Job], Act], *, log: bool = True) -> tuple[Job, Truth]:
    """One rank does this and all others wait for it."""
    job = make_job(rng)
    odd = pick(job)
    job.acts[odd] = act(job)
    surround(job, {odd})
    if not log:
        without_log(job)
    return job, local({odd})


@kind
def user_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank stands in user code."""
    return alone(rng, user_act, log=False)


def with_workers(rng: random.Random) -> Job:
    """A job with dataloader workers."""
    job = make_job(rng, frameworks=TRAINING)
    while not job.workers:
        job = make_job(rng, frameworks=TRAINING)
    return job


@kind
def worker_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank waits for a dataloader worker that is blocked or dead."""
    job = with_workers(rng)
    odd = pick(job)
    fate = rng.random()
    block_data(job, odd, storage=fate < 0.25, zombie=fate > 0.85)
    surround(job, {odd})
    return job, local({odd})


@kind
def disk_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank sleeps in the kernel for storage; its stack may be unread, its state is not."""
    job, truth = alone(rng, disk_act)
    (odd,) = truth.answers[0].suspects
    if job.acts[odd].state == "D" and rng.random() < 0.2:
        job.unread({odd}, "py-spy: no answer in 20 s")
    return job, truth


@kind
def stopped_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank is stopped by a signal, wherever it was, even in the collective."""

    def stop(job: Job) -> Act:
        place = user_act(job).stack
        if rng.random() < 0.4:
            place = job.stack(rng.choice(job.sections("wait.")))
        return Act(stack=place, state="T", wchan="do_signal_stop", syscall=None, cpu=0.0)

    return alone(rng, stop)


@kind
def exited_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank has ended: its trainer is gone, or is a zombie that nobody reaped."""
    job = make_job(rng)
    odd = pick(job)
    if rng.random() < 0.5:
        job.acts[odd] = Act(gone=True)
        job.children[odd] = []
    else:
        reason = "Failed to get process executable name. Check that the process is running."
        job.acts[odd] = Act(state="Z", wchan=None, syscall=None, cpu=0.0, unread=reason)
        job.children[odd] = []
        job.unread({odd}, f"py-spy: {reason}")
    surround(job, {odd})
    return job, local({odd})


@kind
def node_odd(rng: random.Random) -> tuple[Job, Truth]:
    """All ranks of one node do not arrive: user code, data or storage."""
    job = make_job(rng, frameworks=TRAINING)
    machine = rng.choice(job.machines)
    how = rng.choice(("user", "data", "disk"))
    act = disk_act(job) if how == "disk" else user_act(job)
    asleep = rng.choice((0.0, 0.5, 1.0))  # a stuck disk holds all its readers, or some of them
    for rank in machine.ranks:
        if how == "data" and job.workers:
            block_data(job, rank, storage=rng.random() < asleep)
        else:
            job.acts[rank] = act
    surround(job, machine.ranks)
    return job, local(machine.ranks)


@kind
def node_silent(rng: random.Random) -> tuple[Job, Truth]:
    """A node that had answered is silent while all others wait: that is evidence."""
    job = make_job(rng)
    machine = rng.choice(job.machines)
    machine.status, machine.reason = "missing", "no answer in 60 s"
    job.everyone(Act(), machine.ranks)
    surround(job, machine.ranks)
    return job, local(machine.ranks)


@kind
def stage_odd(rng: random.Random) -> tuple[Job, Truth]:
    """One pipeline stage of one replica, or of all, does not go on."""
    job = make_job(rng, frameworks=("megatron",))
    lay_pipelines(job)
    stage = rng.randrange(job.pipeline)
    replica = stage_of(job, pick(job))[0]
    every = rng.random() < 0.5
    odd = [
        rank
        for rank in job.ranks
        if stage_of(job, rank)[1] == stage and (every or stage_of(job, rank)[0] == replica)
    ]
    job.everyone(user_act(job), odd)
    surround(job, odd)
    return job, local(odd)


@kind
def stage_rank(rng: random.Random) -> tuple[Job, Truth]:
    """One rank of a pipeline stands in user code; stages wait for each other on both sides."""
    job = make_job(rng, frameworks=("megatron",))
    odd = pick(job)
    job.acts[odd] = user_act(job)
    surround(job, {odd})
    return job, local({odd})


def calls(job: Job) -> tuple[Act, Act]:
    """The same or another collective, called from two places of the job's own code."""
    rng = job.rng
    names = ("all_reduce", "barrier", "broadcast", "all_gather", "all_gather_object")
    first = rng.choice(names)
    second = first if rng.random() < 0.5 else rng.choice(names)
    caller = user_frames(job)
    if rng.random() < 0.3:
        other = (replace(caller[0], number=caller[0].number + rng.randrange(3, 90)), *caller[1:])
    else:
        other = user_frames(job)
    hook = job.stack("hook")
    inner = job.stack(first, outer=False), job.stack(second, outer=False)
    return job.waiting(inner[0] + caller + hook), job.waiting(inner[1] + other + hook)


@kind
def desync_one(rng: random.Random) -> tuple[Job, Truth]:
    """One rank is in another collective call: all communicate, the minority is named."""
    job = make_job(rng, frameworks=ALIKE)
    most, one = calls(job)
    odd = pick(job)
    job.everyone(most)
    job.acts[odd] = one
    return job, together({odd})


@kind
def desync_split(rng: random.Random) -> tuple[Job, Truth]:
    """Half of the ranks are in another collective call: no minority, so nobody is named."""
    job = make_job(rng, frameworks=ALIKE)
    one, other = calls(job)
    half = set(rng.sample(job.ranks, job.world // 2))
    for rank in job.ranks:
        job.acts[rank] = one if rank in half else other
    return job, together()


@kind
def same_function(rng: random.Random) -> tuple[Job, Truth]:
    """All ranks stand in the same user function."""
    job = make_job(rng)
    act = user_act(job)
    while act.state == "R":  # all of them computing is no hang that samples could tell from work
        act = user_act(job)
    job.everyone(act)
    return job, together()


@kind
def data_everywhere(rng: random.Random) -> tuple[Job, Truth]:
    """All ranks wait for blocked workers, or stand in the dataset themselves."""
    job = with_workers(rng)
    if rng.random() < 0.3:
        act = Act(
            stack=user_frames(job) + job.stack("loader.single", "data"),
            wchan="wait_woken", syscall=45, cpu=0.0,
        )  # fmt: skip
        job.everyone(act)
        job.workers, job.children = 0, {}
    else:
        block_data(job, 0)
        job.everyone(data_act(job))
        for rank in job.ranks:
            job.children[rank] = list(job.children[0])
    return job, together()


@kind
def one_collective(rng: random.Random) -> tuple[Job, Truth]:
    """All ranks wait in one collective: nobody can be singled out."""
    job = make_job(rng)
    places = [name for name in job.sections("wait.") if name != "wait.layer"]
    if job.framework == "sglang":
        places = ["wait.requests", "wait.layer"]
    job.everyone(job.wait(rng.choice(places)))
    without_log(job)
    return job, together()


def saving(rng: random.Random) -> Job:
    """A job in the middle of a checkpoint."""
    job = make_job(rng, frameworks=TRAINING)
    stalled(job, phase=rng.choice(("checkpoint", "checkpoint", "train")))
    job.everyone(job.wait("save.wait"))
    return job


@kind
def checkpoint_slow(rng: random.Random) -> tuple[Job, Truth]:
    """Writers write, slowly: work that is visible and bound to its phase is no hang."""
    job = saving(rng)
    writers = rng.choice(([0], [one.ranks.start for one in job.machines], list(job.ranks)))
    for rank in writers:
        job.acts[rank] = save_act(job, writes=rng.uniform(15e6, 4e8))
    return job, quiet("no_hang", "slow")


@kind
def checkpoint_stuck(rng: random.Random) -> tuple[Job, Truth]:
    """A writer does not write any more, asleep in the kernel or not; the others wait for it."""
    job = saving(rng)
    writer = rng.choice((0, 0, pick(job)))
    act = save_act(job)
    if rng.random() < 0.5:
        act = replace(act, state="D", wchan="percpu_rwsem_wait")
    job.acts[writer] = act
    return job, local({writer})


@kind
def evaluation_moving(rng: random.Random) -> tuple[Job, Truth]:
    """A silent evaluation: stacks move and data is read, so it is no hang."""
    job = make_job(rng, frameworks=TRAINING)
    stalled(job, phase=rng.choice(("eval", "eval", "train")))
    places = job.sections("eval.")
    for rank in job.ranks:
        now = rng.choice(places)
        then = rng.choice([name for name in places if name != now])
        job.acts[rank] = job.computing(now, then=[then])
    return job, quiet("no_hang", "slow")


@kind
def first_compile(rng: random.Random) -> tuple[Job, Truth]:
    """Before the first step all compile, and their workers burn CPU; some may be done and wait."""
    job = make_job(rng, frameworks=TRAINING)
    median = None
    job.progress |= {
        "step": None, "median_interval_seconds": median, "phase": rng.choice(("compile", "init")),
        "state": rng.choice(("unknown", "unknown", "stalled")), "threshold_seconds": 3600.0,
        "last_line": None,
    }  # fmt: skip
    job.progress["stalled_seconds"] = 3700.0 if job.progress["state"] == "stalled" else 900.0
    busy = Act(
        stack=job.stack("compile_worker.busy", outer=False),
        state="R", wchan=None, syscall=None, cpu=0.95, traffic=4e5,
    )  # fmt: skip
    done = set(rng.sample(job.ranks, job.world // 4)) if rng.random() < 0.3 else set()
    waits = replace(
        job.computing("compile.1", "forward"), state="S", wchan="futex_do_wait", cpu=0.01
    )
    for rank in job.ranks:
        acts = (waits, waits, job.computing("compile.2", "forward", then=["compile.3", "forward"]))
        job.acts[rank] = rng.choice(acts)
        workers = [Child(kind="compile_worker", act=busy, name="python3") for _ in range(2)]
        others = [one for one in job.children[rank] if one.kind != "compile_worker"]
        job.children[rank] = [*others, *workers]
    for rank in done:
        job.acts[rank] = job.wait(job.sections("wait.")[0])
        job.children[rank] = []
    return job, quiet("no_hang")


def moving(job: Job) -> None:
    """All ranks work and move on."""
    places = job.sections("compute.")
    for rank in job.ranks:
        now = job.rng.choice(places)
        job.acts[rank] = job.computing(now, then=[job.rng.choice(places)])


@kind
def helpers_only(rng: random.Random) -> tuple[Job, Truth]:
    """Steps advance; what idles are helpers by nature."""
    job = make_job(rng)
    median = float(job.progress["median_interval_seconds"])
    job.progress |= {"state": "advancing", "stalled_seconds": round(median * rng.random(), 2)}
    job.trigger = "manual"
    job.idle = ("tqdm", "inductor", "wandb", "pool")
    if rng.random() < 0.5:
        moving(job)
    else:
        job.everyone(job.computing(rng.choice(job.sections("compute."))))
    return job, quiet("no_hang")


@kind
def slow_job(rng: random.Random) -> tuple[Job, Truth]:
    """Steps advance far below the job's own pace."""
    job = make_job(rng, frameworks=TRAINING)
    threshold = float(job.progress["threshold_seconds"])
    job.progress |= {
        "state": "slow",
        "stalled_seconds": round(threshold * rng.uniform(0.1, 0.8), 1),
    }
    job.trigger = "manual"
    moving(job)
    return job, quiet("slow")


def hide(job: Job, ranks: Sequence[int]) -> frozenset[int]:
    """Let 1 to 30 % of these ranks be unread, and say which."""
    count = max(1, round(job.world * job.rng.uniform(0.01, 0.3)))
    hidden = frozenset(job.rng.sample(ranks, min(count, len(ranks))))
    job.unread(hidden, "py-spy: permission denied")
    return hidden


@kind
def partly_seen(rng: random.Random) -> tuple[Job, Truth]:
    """Some ranks are unread by our own fault, and the odd one is among those that were read."""
    job, truth = alone(rng, user_act)
    (odd,) = truth.answers[0].suspects
    hidden = hide(job, [rank for rank in job.ranks if rank != odd])
    return job, replace(truth, innocent=hidden)


@kind
def partly_blind(rng: random.Random) -> tuple[Job, Truth]:
    """The odd rank is unread by our own fault: all that were read wait, which decides nothing."""
    job, truth = alone(rng, user_act)
    (odd,) = truth.answers[0].suspects
    hidden = hide(job, [rank for rank in job.ranks if rank != odd]) if rng.random() < 0.7 else ()
    job.unread({odd}, "py-spy: permission denied")
    return job, replace(quiet("inconclusive"), innocent=frozenset({odd, *hidden}))


@kind
def watcher_lost(rng: random.Random) -> tuple[Job, Truth]:
    """A node was never asked: outside the groups, never accused; an evident rank still is."""
    job = make_job(rng)
    machine = rng.choice(job.machines)
    machine.status = "not_collected"
    machine.reason = rng.choice(("its watcher is gone", "never asked", "the exchange is stuck"))
    job.everyone(Act(), machine.ranks)
    innocent = frozenset(machine.ranks)
    rest = [rank for rank in job.ranks if rank not in innocent]
    if rng.random() < 0.5:
        odd = rng.choice(rest)
        surround(job, {odd})
        job.acts[odd] = user_act(job)
        return job, replace(local({odd}), innocent=innocent)
    places = [name for name in job.sections("wait.") if name != "wait.layer"]
    job.everyone(job.wait(places[0]), rest)
    # Groups range over asked nodes, which all wait; but the one not seen may be why.
    return job, replace(quiet("inconclusive", "global_hang"), innocent=innocent)


@kind
def lock_single(rng: random.Random) -> tuple[Job, Truth]:
    """One rank's main thread waits for a lock or the GIL that another of its threads keeps."""
    return alone(rng, lock_act)


@kind
def left_the_loop(rng: random.Random) -> tuple[Job, Truth]:
    """One rank has left the loop and ends, while the others wait for it."""
    return alone(rng, teardown_act)
