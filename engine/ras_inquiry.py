"""The questions to NCCL RAS in one hang: two at most, before and after the deep sample.

What RAS does not say, or is not asked, is no evidence: only ``source`` tells why.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from whyhang.collectors.procfs import is_gone
from whyhang.collectors.ras_client import RasLimits
from whyhang.collectors.ras_replies import parse_reply
from whyhang.collectors.ras_safety import Policy, RasBudget, RasSituation, permit
from whyhang.collectors.ras_version import detect_nccl
from whyhang.engine.ras_query import RasRefusal, ask, situation_of
from whyhang.engine.ras_reading import is_our_job
from whyhang.schemas.incident import Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.ras import RasReport, report_of

# Counts that stay the same over less may belong to a job that merely is slow.
APART_SECONDS = 10.0
_ENDED = frozenset("ZXx")

Write = Callable[[int, bytes, str], None]


@dataclass(slots=True, kw_only=True)
class RasInquiry:
    """Asks and keeps the reports. ``write`` takes number, bytes and form of each raw reply.

    ``reports`` holds what the files hold, the replies of another job at a shared port included.
    """

    policy: Policy
    write: Write | None = None
    limits: RasLimits | None = None
    reports: list[RasReport] = field(default_factory=list)
    budget: RasBudget = field(default_factory=RasBudget)
    _reason: str | None = "not asked"
    _asked_at: float = 0.0

    @property
    def source(self) -> Source:
        """Whether RAS has answered for this job, and if not why."""
        return Source(ok=self._reason is None, reason=self._reason)

    def prospects(self, trainers: Sequence[Process], *, stepped: bool, leads: bool) -> bool:
        """Whether a question could be permitted once the stacks are read; else the reason is kept.

        One process answers for the whole job: only the node that ``leads`` asks.
        """
        if self.budget.asked:
            return False
        living = alive_first(trainers)
        if not living:
            self._refuse("no trainer is left on this node")
            return False
        if not leads:
            self._refuse("the node of rank 0 asks for the whole job")
            return False
        nccl = detect_nccl(living[0].pid)
        if isinstance(nccl, Missing) and self.policy == "auto":
            self._refuse(f"not asked: {nccl.reason}")
            return False
        hopeful = RasSituation(stepped=stepped, creating_communicator=False, all_alive=True)
        form = permit(self.policy, nccl, hopeful, self.budget)
        if isinstance(form, Missing):
            self._refuse(form.reason)
            return False
        return True

    def ask(self, trainers: Sequence[Process], *, stepped: bool, world_size: int | None) -> bool:
        """Ask once if the stacks of the trainers permit it; whether a report came."""
        self._asked_at = time.monotonic()
        taken = ask(
            alive_first(trainers),
            policy=self.policy,
            situation=situation_of(trainers, stepped=stepped, world_size=world_size),
            budget=self.budget,
            limits=self.limits,
        )
        if isinstance(taken, RasRefusal):
            self._refuse(taken.reason, taken.meaning)
            return False
        if self.write is not None:
            with contextlib.suppress(OSError):
                self.write(self.budget.asked - 1, taken.data, taken.form)
        report = report_of(parse_reply(taken.data))
        if report is None:
            self._refuse(f"{taken.address}: what it answered is no report")
            return False
        pids = [process.pid for process in trainers]
        self.reports.append(report)
        if is_our_job(report, pids, processes=world_size) is False:
            self._refuse(f"{taken.address}: another job answered")
            return False
        self._reason = None
        return True

    def wait(self) -> None:
        """Let enough time pass since the last question for the next one to tell something."""
        time.sleep(max(0.0, self._asked_at + APART_SECONDS - time.monotonic()))

    def _refuse(self, reason: str, meaning: str = "") -> None:
        if self._reason is None:
            return  # an answer that came stands, whatever became of the second question
        self._reason = f"{reason}; {meaning}" if meaning else reason


def alive_first(trainers: Sequence[Process]) -> tuple[Process, ...]:
    """Those that may still answer; a stopped one cannot, so it comes last."""
    living = [p for p in trainers if p.state not in _ENDED and not is_gone(p.pid)]
    return tuple(sorted(living, key=lambda process: process.state in ("T", "t")))
