"""What NCCL RAS and the flight recorder say of an incident's ranks. Worked out once, on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from whyhang.engine.flight_analysis import FlightAnalysis, analyse, minority
from whyhang.engine.ras_reading import (
    RasReading,
    RasSuspect,
    comm_sizes,
    is_our_job,
    join_ranks,
    read_report,
)
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.ras import RasReport

NO_DUMPS = Missing("no flight recorder dump was read")
_BEHIND = ("missing", "lagging", "not_started", "no_dump")


@dataclass(frozen=True)
class CommFacts:
    """The facts of one incident. Answers are Missing where the source does not tell."""

    incident: Incident

    @cached_property
    def _reports(self) -> tuple[RasReport, ...]:
        """The replies that are about this job: another job may have answered at a shared port."""
        pids = [pid for _, pid in self._trainers]
        return tuple(
            report
            for report in self.incident.ras
            if is_our_job(report, pids, processes=self.incident.world_size) is not False
        )

    @cached_property
    def _trainers(self) -> Mapping[tuple[str, int], int]:
        return {
            process.key: process.rank
            for sample in self.incident.samples
            for process in sample.processes
            if process.kind == "trainer" and process.rank is not None
        }

    @cached_property
    def _reading(self) -> RasReading | Missing:
        reports = self._reports
        if not reports:
            source = self.incident.sources.get("nccl_ras")
            if self.incident.ras:
                return Missing("NCCL RAS: another job answered")
            reason = None if source is None else source.reason
            return Missing(f"NCCL RAS: {reason or 'not asked'}")
        return read_report(reports[-1], reports[-2] if len(reports) > 1 else None)

    def ras_known(self) -> bool | Missing:
        """True where RAS answered for this job."""
        reading = self._reading
        return reading if isinstance(reading, Missing) else True

    def ras_mismatch(self) -> bool | Missing:
        """Whether ranks of a communicator have launched different numbers of operations."""
        reading = self._reading
        if isinstance(reading, Missing):
            return reading
        cut = Missing("NCCL RAS: the reply was cut")
        return cut if reading.mismatch is None else reading.mismatch

    def ras_missing(self) -> int | Missing:
        """How many processes did not answer."""
        reading = self._reading
        if isinstance(reading, Missing):
            return reading
        cut = Missing("NCCL RAS: the reply was cut")
        return cut if reading.missing is None else reading.missing

    @cached_property
    def _behind(self) -> tuple[frozenset[int], bool] | Missing:
        """Ranks behind, and whether everybody else is known not to be."""
        reading = self._reading
        if isinstance(reading, Missing):
            return reading
        joined = join_ranks(self._reports[-1], self._trainers)
        sizes = comm_sizes(self._reports[-1])
        named = [s for s in reading.suspects if s.reason.startswith("behind:")]
        ranks = [self._rank_of(suspect, joined, sizes) for suspect in named]
        whole = not reading.mismatch or (bool(named) and None not in ranks)
        return frozenset(rank for rank in ranks if rank is not None), whole

    def _rank_of(
        self,
        suspect: RasSuspect,
        joined: Mapping[tuple[str, int], int],
        sizes: Mapping[str, int],
    ) -> int | None:
        """The rank in the job: by process, else by number where the communicator is the job's."""
        if suspect.host is not None and suspect.pid is not None:
            rank = joined.get((suspect.host, suspect.pid))
            if rank is not None or self._trainers:
                return rank
        size = sizes.get(suspect.comm or "")
        return suspect.rank if size is not None and size == self.incident.world_size else None

    def ras_behind(self, rank: int | None) -> bool | Missing:
        """Whether a rank has launched fewer operations than its peers."""
        behind = self._behind
        if isinstance(behind, Missing):
            return behind
        ranks, whole = behind
        if rank in ranks:
            return True
        return False if whole else Missing("NCCL RAS does not name all ranks of a mismatch")

    def ras_dead(self) -> frozenset[int]:
        """The ranks whose processes RAS gave up, as far as they are ours."""
        reading = self._reading
        if isinstance(reading, Missing):
            return frozenset()
        joined = join_ranks(self._reports[-1], self._trainers)
        dead = (s for s in reading.suspects if s.reason == "dead" and s.host and s.pid)
        ranks = (joined.get((s.host or "", s.pid or 0)) for s in dead)
        return frozenset(rank for rank in ranks if rank is not None)

    @cached_property
    def _flight(self) -> FlightAnalysis | Missing:
        if not self.incident.flight:
            return NO_DUMPS
        return analyse(self.incident.flight, world_size=self.incident.world_size)

    def fr_behind(self, rank: int | None) -> bool | Missing:
        """Whether others wait for a rank that has not come to, or through, their operation."""
        flight = self._flight
        if isinstance(flight, Missing):
            return flight
        if any(s.rank == rank and s.reason in _BEHIND for s in flight.suspects):
            return True
        return False if rank in flight.record.dumps else NO_DUMPS

    def fr_sizes_differ(self, rank: int | None) -> bool | Missing:
        """Whether a rank brought other sizes to an unfinished collective than most; both sides
        count where neither is the larger one.
        """
        flight = self._flight
        if isinstance(flight, Missing):
            return flight
        for brought in flight.sizes.values():
            if rank in (minority(brought) or tuple(brought)):
                return True
        return False if rank in flight.record.dumps else NO_DUMPS
