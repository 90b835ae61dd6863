"""Jobs of one host are told apart, so that nobody is accused of holding up another job."""

from __future__ import annotations

from whyhang.collectors.ranks import JobEnvironment
from whyhang.engine.jobs import find_jobs
from whyhang.schemas.process import Process


def trainer(pid: int, rank: int, parent: int) -> Process:
    """A rank below a launcher."""
    return Process(pid=pid, node="a", kind="trainer", rank=rank, ppid=parent)


def test_two_launchers_are_two_jobs() -> None:
    """Ranks with another master address belong to another job, whatever their numbers."""
    processes = [trainer(10 + n, n % 2, 1 + n // 2 * 7 + 1) for n in range(4)]

    def environment(pid: int) -> JobEnvironment:
        return JobEnvironment(rank=pid % 2, master=f"host:{pid // 12}", source="RANK")

    jobs = find_jobs(processes, environment)
    assert [(job.root, str(job.ranks)) for job in jobs] == [(2, "0-1"), (9, "0-1")]
    assert [str(job) for job in jobs] == ["--pid 2 (ranks 0-1)", "--pid 9 (ranks 0-1)"]


def test_ranks_that_occur_twice_belong_to_their_parents() -> None:
    """Where the environment tells nothing, no job has the same rank twice."""
    processes = [trainer(10, 0, 2), trainer(11, 1, 2), trainer(12, 0, 3), trainer(13, 1, 3)]
    jobs = find_jobs(processes, lambda pid: JobEnvironment())
    assert [job.root for job in jobs] == [2, 3]


def test_one_job_is_one() -> None:
    """Ranks of one job, also such as were started one by one, are not parted."""
    processes = [trainer(10 + n, n, n + 2) for n in range(4)]
    jobs = find_jobs(processes, lambda pid: JobEnvironment(master="host:1"))
    assert [(job.root, str(job.ranks)) for job in jobs] == [(None, "0-3")]
    assert find_jobs([]) == ()
