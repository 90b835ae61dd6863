"""How the others wait while some ranks do not arrive."""

from __future__ import annotations

from collections.abc import Collection

from tests.generated.job import Job


def surround(job: Job, odd: Collection[int]) -> None:
    """Let all ranks but the odd ones wait where their framework makes them wait."""
    if job.framework == "megatron":
        _pipelines(job, odd)
        return
    rng = job.rng
    first, *others = rng.sample(job.sections("wait."), len(job.sections("wait.")))
    act = job.wait(first)
    second = job.wait(others[0]) if others and rng.random() < 0.2 else act
    for rank in job.ranks:
        if rank not in odd:
            job.acts[rank] = second if rng.random() < 0.3 else act


def lay_pipelines(job: Job) -> None:
    """Choose how many ranks share a layer and how many stages there are."""
    choices = [
        (tensor, stages)
        for tensor in (1, 2, 4)
        for stages in (2, 4, 8)
        if job.world % (tensor * stages) == 0
    ]
    job.tensor, job.pipeline = job.rng.choice(choices)


def stage_of(job: Job, rank: int) -> tuple[int, int]:
    """Replica and stage of a rank, in Megatron's order: tensor, data, pipeline."""
    replicas = job.world // job.tensor // job.pipeline
    return rank // job.tensor % replicas, rank // (job.tensor * replicas)


def _pipelines(job: Job, odd: Collection[int]) -> None:
    if job.pipeline == 1:
        lay_pipelines(job)
    stages: dict[int, set[int]] = {}
    for rank in odd:
        replica, stage = stage_of(job, rank)
        stages.setdefault(replica, set()).add(stage)
    waits = {
        name: job.wait(name)
        for name in ("wait.layer", "pp.upstream", "pp.steady", "pp.downstream", "wait.grads")
    }
    upstream = job.rng.choice(("pp.upstream", "pp.steady"))
    for rank in job.ranks:
        if rank in odd:
            continue
        replica, stage = stage_of(job, rank)
        stuck = stages.get(replica)
        if not stuck:
            where = "wait.grads"
        elif stage in stuck:
            where = "wait.layer"
        else:
            where = upstream if stage < min(stuck) else "pp.downstream"
        job.acts[rank] = waits[where]
