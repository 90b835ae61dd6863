"""The jobs of one host: two of them must never be judged as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from whyhang.collectors.ranks import JobEnvironment, job_environment
from whyhang.schemas.process import Process
from whyhang.schemas.rankset import RankSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The trainers of one job here. ``root`` is what started them all, None where nothing did."""

    root: int | None
    ranks: RankSet
    pids: tuple[int, ...]

    def __str__(self) -> str:
        if self.root is None:
            return f"processes {', '.join(map(str, self.pids[:4]))} (ranks {self.ranks})"
        return f"--pid {self.root} (ranks {self.ranks})"


def find_jobs(
    processes: Iterable[Process],
    environment: Callable[[int], JobEnvironment] = job_environment,
) -> tuple[Job, ...]:
    """The jobs that these processes belong to, by what their launchers told them.

    Where launchers tell nothing, processes that claim one rank twice belong to the jobs of their
    parents.
    """
    trainers = [p for p in processes if p.kind == "trainer" and p.rank is not None]
    by_job: dict[object, list[Process]] = {}
    for trainer in trainers:
        by_job.setdefault(environment(trainer.pid).job, []).append(trainer)
    jobs = []
    for members in by_job.values():
        if len({member.rank for member in members}) == len(members):
            jobs.append(_job(members))
            continue
        by_parent: dict[int | None, list[Process]] = {}
        for member in members:
            by_parent.setdefault(member.ppid, []).append(member)
        jobs += map(_job, by_parent.values())
    return tuple(jobs)


def _job(members: list[Process]) -> Job:
    parents = {member.ppid for member in members}
    root = next(iter(parents)) if len(parents) == 1 and len(members) > 1 else None
    if len(members) == 1:
        root = members[0].pid
    return Job(
        root=root if root is not None and root > 1 else None,
        ranks=RankSet(member.rank for member in members if member.rank is not None),
        pids=tuple(member.pid for member in members),
    )
