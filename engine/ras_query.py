"""The question to NCCL RAS: whether to ask, whom, and what the outcome means.

One process answers for the whole job, so one trainer of this node is enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from whyhang.collectors.process_table import list_processes
from whyhang.collectors.procfs import read_environ
from whyhang.collectors.ras_client import (
    RasAnswer,
    RasFailure,
    RasLimits,
    RasSettings,
    ask_ras,
    settings_of,
)
from whyhang.collectors.ras_safety import (
    TOO_EARLY,
    Policy,
    RasBudget,
    RasSituation,
    permit,
    refusal_meaning,
)
from whyhang.collectors.ras_version import LoadedNccl, detect_nccl
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

# By hand nobody knows whether steps were made: a job that runs for this long is past its start.
SETTLED_SECONDS = 600.0
_NOT_ALIVE = frozenset("TtZXx")
_CREATORS = frozenset(
    {
        "init_process_group",
        "_new_process_group_helper",
        "_new_group_with_tag",
        "new_group",
        "new_subgroups",
        "new_subgroups_by_enumeration",
        "split_group",
        "init_device_mesh",
        "init_distributed",
        "initialize_model_parallel",
        "ncclCommInitRank",
        "ncclCommInitRankConfig",
        "ncclCommSplit",
    }
)
_LEAVERS = frozenset({"destroy_process_group", "ncclCommDestroy", "ncclCommFinalize", "shutdown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RasRefusal:
    """No report, and what that means; it is never evidence."""

    reason: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RasTaken:
    """The bytes of a report; ``note`` is a caution about it."""

    data: bytes
    form: str
    address: str
    note: str | None = None


def situation_of(
    trainers: Sequence[Process], *, stepped: bool, world_size: int | None
) -> RasSituation:
    """What the last sample of all nodes says about the dangers of a question.

    ``all_alive`` needs every rank of the job in the sample, on whatever node.
    """
    dead = any(process.state in _NOT_ALIVE for process in trainers if process.state)
    unknown = any(process.state is None for process in trainers)
    whole = world_size is not None and len({p.rank for p in trainers}) == world_size
    return RasSituation(
        stepped=stepped,
        creating_communicator=_stands_in(trainers, _CREATORS),
        leaving=_stands_in(trainers, _LEAVERS),
        all_alive=False if dead else (True if whole and not unknown else None),
    )


def _stands_in(processes: Iterable[Process], names: frozenset[str]) -> bool | None:
    """Whether any thread has one of these functions on its stack; None if some are unread."""
    unread = False
    for process in processes:
        if isinstance(process.threads, Missing):
            unread = True
            continue
        for thread in process.threads:
            if any(frame.function in names for frame in thread.stack.frames):
                return True
    return None if unread else False


def ask(
    trainers: Sequence[Process],
    *,
    policy: Policy,
    situation: RasSituation,
    budget: RasBudget,
    address: str | None = None,
    limits: RasLimits | None = None,
) -> RasTaken | RasRefusal:
    """Ask once, if that is safe, through the first trainer of this node."""
    if not trainers and address is None:
        return RasRefusal(reason="no trainer on this node")
    pid = trainers[0].pid if trainers else None
    nccl = Missing("no trainer on this node") if pid is None else detect_nccl(pid)
    settings = RasSettings() if pid is None else settings_of(read_environ(pid) or {})
    form = permit(policy, nccl, situation, budget)
    if isinstance(form, Missing):
        return RasRefusal(reason=form.reason)
    if not settings.enabled and address is None:
        return RasRefusal(reason="switched off in the job by NCCL_RAS_ENABLE=0")
    limits = replace(limits or RasLimits(), factor=settings.factor)
    outcome = ask_ras(address or settings.address, form=form, limits=limits)
    budget.note(outcome)
    return _conclude(outcome, nccl)


def _conclude(outcome: RasAnswer | RasFailure, nccl: LoadedNccl | Missing) -> RasTaken | RasRefusal:
    if isinstance(outcome, RasAnswer):
        note = None if outcome.cut is None else f"the RAS reply is not complete: {outcome.cut}"
        return RasTaken(data=outcome.data, form=outcome.form, address=outcome.address, note=note)
    meaning = refusal_meaning(nccl) if outcome.kind == "refused" else ""
    if outcome.kind == "died":
        meaning = "check at once whether all training processes still live; RAS is not asked again"
    return RasRefusal(reason=outcome.reason, meaning=meaning)


def ask_by_hand(address: str | None, *, force: bool) -> RasTaken | RasRefusal:
    """The question of ``whyhang ras``: within the rules where this host shows the training.

    An address given by hand is consent to ask there when no trainer of this host tells its NCCL
    release: nothing else could be known about a job in another container.
    """
    trainers = [process for process in list_processes(node="") if process.kind == "trainer"]
    budget = RasBudget()
    if address is not None and not any(_has_nccl(process.pid) for process in trainers[:4]):
        outcome = ask_ras(address)
        taken = _conclude(outcome, Missing("no trainer of this host tells its release"))
        if isinstance(taken, RasTaken) and taken.note is None:
            return replace(
                taken, note="asked without knowing the NCCL release: none is loaded here"
            )
        return taken
    if not trainers:
        return RasRefusal(
            reason="no training job was found on this host",
            meaning="`--address HOST:PORT` asks a job that is not to be seen from here",
        )
    sizes = {(read_environ(process.pid) or {}).get("WORLD_SIZE", "") for process in trainers}
    size = sizes.pop() if len(sizes) == 1 else ""
    situation = situation_of(
        trainers,
        stepped=force or settled(trainers),
        world_size=int(size) if size.isdigit() else None,
    )
    policy: Policy = "force" if force else "auto"
    found = ask(trainers, policy=policy, situation=situation, budget=budget, address=address)
    if isinstance(found, RasRefusal) and found.reason == TOO_EARLY:
        young = "the job is not known to run for ten minutes; `--force` asks nevertheless"
        return replace(found, meaning=young)
    return found


def _has_nccl(pid: int) -> bool:
    return isinstance(detect_nccl(pid), LoadedNccl)


def settled(trainers: Sequence[Process]) -> bool:
    """Whether every trainer runs for so long that its start is over."""
    ages = [_age_seconds(process.pid) for process in trainers]
    return bool(ages) and all(age is not None and age >= SETTLED_SECONDS for age in ages)


def _age_seconds(pid: int) -> float | None:
    import os

    from whyhang.collectors.procfs import read_stat

    stat = read_stat(pid)
    if stat is None:
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / os.sysconf("SC_CLK_TCK")
