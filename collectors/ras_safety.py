"""Whether NCCL RAS may be asked: a query can kill the training with some releases.

====================  ======================================================================
release               asked under ``auto``
====================  ======================================================================
before 2.24           never: it has no RAS
2.24.3 to 2.25        yes
2.26 to 2.29.1        only if nobody can be missing from the reply (every trainer of every
                      node alive and in its communicators) or there is one communicator:
                      the text formatter runs past its data otherwise
2.29.2 and later      yes
unknown               never
====================  ======================================================================

For all: never before the first step, never while a stack creates a communicator, at most two
questions a hang, none after the answering process died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whyhang.collectors.ras_client import Form, RasAnswer, RasFailure
from whyhang.collectors.ras_version import LoadedNccl, Version
from whyhang.schemas.missing import Missing

Policy = Literal["auto", "never", "force"]

MAX_QUESTIONS = 2
TOO_EARLY = "not asked before the first step: communicators may be in creation"
FIRST_WITH_RAS: Version = (2, 24, 0)
FIRST_WITH_JSON: Version = (2, 28, 7)
FIRST_UNSAFE: Version = (2, 26, 0)
FIRST_SOUND: Version = (2, 29, 2)
# These crash as well when asked during the creation of a communicator.
FIRST_STURDY_IN_INIT: Version = (2, 27, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RasSituation:
    """What is known of the job at the moment of the question. None is unknown.

    ``all_alive``: every trainer of every node is there and neither stopped nor a zombie.
    ``leaving``: a rank is tearing its communicators down.
    """

    stepped: bool
    creating_communicator: bool | None = None
    all_alive: bool | None = None
    single_communicator: bool | None = None
    leaving: bool | None = None


@dataclass(slots=True)
class RasBudget:
    """The questions of one hang: at most two, none after one that killed its answerer."""

    asked: int = 0
    closed: str | None = None

    def note(self, outcome: RasAnswer | RasFailure) -> None:
        """Count a question and remember what it did."""
        self.asked += 1
        if isinstance(outcome, RasFailure) and outcome.kind == "died":
            self.closed = f"a question ended a connection ({outcome.reason}); not asked again"


def permit(
    policy: Policy,
    nccl: LoadedNccl | Missing,
    situation: RasSituation,
    budget: RasBudget,
) -> Form | Missing:
    """The form to ask in, or why RAS is not asked.

    ``force`` overrides doubts about release and processes, not the limits that hold for all.
    """
    if policy == "never":
        return Missing("switched off by `collect: ras: never`")
    if budget.closed is not None:
        return Missing(budget.closed)
    if budget.asked >= MAX_QUESTIONS:
        return Missing(f"asked {MAX_QUESTIONS} times in this hang already")
    if isinstance(nccl, Missing) and policy != "force":
        return Missing(f"NCCL's release is unknown: {nccl.reason}")
    if not situation.stepped:
        return Missing(TOO_EARLY)
    if situation.creating_communicator:
        return Missing("not asked while a communicator is being created")
    if isinstance(nccl, Missing):
        return "json"
    for version in nccl.versions:
        if version < FIRST_WITH_RAS:
            return Missing(f"NCCL {spell(version)} has no RAS (needs 2.24)")
        doubt = None if policy == "force" else _doubt(version, nccl, situation)
        if doubt is not None:
            return Missing(doubt)
    return "json" if min(nccl.versions) >= FIRST_WITH_JSON else "text"


def _doubt(version: Version, nccl: LoadedNccl, situation: RasSituation) -> str | None:
    """Why asking this release now might harm the job."""
    if nccl.is_rccl:
        return "RCCL's RAS has not been tried; `collect: ras: force` asks it"
    if not FIRST_UNSAFE <= version < FIRST_SOUND:
        return None
    name = f"NCCL {spell(version)}"
    if version < FIRST_STURDY_IN_INIT and situation.creating_communicator is None:
        return f"{name} crashes when asked during the creation of a communicator"
    if situation.single_communicator:
        return None
    if situation.all_alive and not situation.leaving:
        return None
    return f"{name} can crash when asked while ranks are missing, and not all are known to be alive"


def refusal_meaning(nccl: LoadedNccl | Missing) -> str:
    """What it means that nobody listens. It is never evidence of a hang."""
    if isinstance(nccl, LoadedNccl) and min(nccl.versions) < FIRST_WITH_RAS:
        return f"NCCL {spell(min(nccl.versions))} has no RAS (needs 2.24)"
    reasons = (
        "NCCL_RAS_ENABLE=0, another address in NCCL_RAS_ADDR, no communicator created yet, "
        "another network namespace, or another user's job holds the port"
    )
    if isinstance(nccl, Missing):
        return f"nobody listens: NCCL before 2.24, {reasons}"
    return f"NCCL {spell(min(nccl.versions))} has RAS, but nobody listens: {reasons}"


def spell(version: Version) -> str:
    """``2.27.5`` of a version."""
    return ".".join(str(part) for part in version)
