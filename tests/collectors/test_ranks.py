"""Rank and job from the environment."""

from __future__ import annotations

import os

import pytest

from whyhang.collectors.ranks import as_rank, job_environment, parse_job_environment


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, (3, 1, 8)),
        ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16"}, (5, 1, 16)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, None, 4)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, None, 2)),
        ({"PMIX_RANK": "3", "PMIX_NAMESPACE": "prterun-7@1"}, (3, None, None)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_LOCAL_RANK": "1"}, (1, 1, None)),
        ({"RANK": "9", "SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"},
         (9, None, None)),
        ({"RANK": "1", "SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"}, (1, 0, 2)),
        ({"RANK": "zero", "SLURM_PROCID": "1"}, (None, None, None)),
        ({"RANK": "", "SLURM_PROCID": "1"}, (1, None, None)),
        ({"HOME": "/"}, (None, None, None)),
    ],
)  # fmt: skip
def test_numbers_come_from_the_launcher_that_gave_the_rank(
    environ: dict[str, str], expected: tuple[int | None, ...]
) -> None:
    """Another launcher's numbers fill in only where it counts the same rank."""
    job = parse_job_environment(environ)
    assert (job.rank, job.local_rank, job.world_size) == expected


@pytest.mark.parametrize("text", ["", "-1", "1.0", "0x1", "²", "٣", "1 2", None])
def test_only_a_count_is_a_rank(text: str | None) -> None:
    """What is no plain decimal number is no rank."""
    assert as_rank(text) is None


def test_jobs_on_one_host_are_told_apart() -> None:
    """Rendezvous and run make a job; without any there is no job to compare."""
    base = {"RANK": "0", "MASTER_ADDR": "a", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "r"}
    job = parse_job_environment(base)
    assert job.master == "a:1"
    assert job.run_id == "r"
    assert job.job == parse_job_environment({**base, "RANK": "1"}).job
    assert job.job != parse_job_environment({**base, "MASTER_PORT": "2"}).job
    assert parse_job_environment({"RANK": "0"}).job is None
    assert job.names == ("r", "a:1")
    mpi = {"OMPI_COMM_WORLD_RANK": "0", "PMIX_NAMESPACE": "prterun-a-7@1"}
    other = parse_job_environment({**mpi, "PMIX_NAMESPACE": "prterun-a-9@1"})
    assert None is not parse_job_environment(mpi).job != other.job


def test_a_process_that_does_not_exist_has_no_rank() -> None:
    """What cannot be read is unknown."""
    assert job_environment(2**22 + os.getpid()).rank is None
