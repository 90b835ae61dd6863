"""Rank and job of a process, from the environment its launcher gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from whyhang.collectors.procfs import read_environ


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnvironment:
    """What a launcher tells a process; None where it does not, or where we may not read it.

    ``source`` is the variable the rank came from. ``master`` is ``address:port``. ``group_rank``
    is the node's number. ``batch`` and ``step`` are the scheduler's numbers of job and job step,
    ``launch`` is MPI's name of one call of its launcher.
    """

    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    group_rank: int | None = None
    master: str | None = None
    run_id: str | None = None
    batch: str | None = None
    step: str | None = None
    launch: str | None = None
    source: str | None = None

    @property
    def job(self) -> tuple[str | None, ...] | None:
        """What tells jobs on one host apart; None where nothing does."""
        if self.master is None and self.step is None and self.launch is None:
            return None
        return self.run_id, self.master, self.batch, self.step, self.launch

    @property
    def names(self) -> tuple[str, ...]:
        """What people may call the job by."""
        return tuple(name for name in (self.run_id, self.master, self.batch, self.launch) if name)


@dataclass(frozen=True, slots=True)
class _Family:
    """The variables of one launcher, in the order they are tried."""

    rank: str
    local_rank: tuple[str, ...]
    world_size: tuple[str, ...]
    group_rank: tuple[str, ...] = ()


# The first of these that is set names the rank. Slurm's stand in the environment of every step,
# so they come after what torchrun and its like set below it.
_FAMILIES = (
    _Family("RANK", ("LOCAL_RANK",), ("WORLD_SIZE",), ("GROUP_RANK", "NODE_RANK")),
    _Family("SLURM_PROCID", ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
            ("SLURM_NODEID",)),
    _Family("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_SIZE",),
            ("OMPI_COMM_WORLD_NODE_RANK",)),
    _Family("MV2_COMM_WORLD_RANK", ("MV2_COMM_WORLD_LOCAL_RANK",), ("MV2_COMM_WORLD_SIZE",)),
    _Family("PMI_RANK", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), ("PMI_SIZE",)),
    _Family("PMIX_RANK", ("PMIX_LOCAL_RANK",), ("PMIX_SIZE",)),
)  # fmt: skip


_LAUNCHES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID")


def parse_job_environment(environ: Mapping[str, str]) -> JobEnvironment:
    """The rank and job that an environment tells.

    Local rank and world size come from the launcher that gave the rank; another launcher fills
    in what is missing only where it counts the same rank (``RANK=$SLURM_PROCID`` in a script),
    else an agent's numbers would pass for a trainer's.
    """
    named = [family for family in _FAMILIES if environ.get(family.rank)]
    job = JobEnvironment(
        master=_master(environ),
        run_id=environ.get("TORCHELASTIC_RUN_ID") or None,
        batch=environ.get("SLURM_JOB_ID") or None,
        step=environ.get("SLURM_STEP_ID") or None,
        launch=next((environ[name] for name in _LAUNCHES if environ.get(name)), None),
    )
    if not named:
        return job
    rank = as_rank(environ.get(named[0].rank))
    agreeing = [x for x in named if x is named[0] or as_rank(environ.get(x.rank)) == rank]
    return replace(
        job,
        rank=rank,
        local_rank=_first(environ, [name for x in agreeing for name in x.local_rank]),
        world_size=_first(environ, [name for x in agreeing for name in x.world_size]),
        group_rank=_first(environ, [name for x in agreeing for name in x.group_rank]),
        source=named[0].rank,
    )


def job_environment(pid: int) -> JobEnvironment:
    """The rank and job of a process; all None where its environment cannot be read."""
    environ = read_environ(pid)
    return JobEnvironment() if environ is None else parse_job_environment(environ)


def as_rank(text: str | None) -> int | None:
    """A count of ASCII digits as a number, anything else as None."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() else None


def _first(environ: Mapping[str, str], names: list[str]) -> int | None:
    values = (as_rank(environ.get(name)) for name in names)
    return next((value for value in values if value is not None), None)


def _master(environ: Mapping[str, str]) -> str | None:
    address, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT")
    return f"{address or ''}:{port}" if port else None
