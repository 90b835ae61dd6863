"""The blocks of a RAS report: what is wrong with a communicator or with processes of the job.

A group of ranks is followed by the lines of its members only where NCCL takes them for outliers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from whyhang.schemas.ras import (
    BlockKind,
    CountGroup,
    CountValue,
    ErrorGroup,
    ErrorValue,
    RasBlock,
    RasComm,
    RasProcess,
    RasRank,
    StatusGroup,
)

NUMBER = r"(\d{1,15})"
LIST = r"([\d,]+)"
_RANK = (
    r"(?:GPU (?P<gpu>\d{1,9})(?: \(NVML (?P<nvml>\d{1,9})\))? managed by process"
    r" (?P<pid>\d{1,15}) on node ?(?P<host>\S*))"
)
_PROCESS = re.compile(
    rf"Process {NUMBER} on node ?(\S*) managing GPUs? {LIST}(?: \(NVML {LIST}\))?\Z"
)


@dataclass(slots=True)
class _Members:
    """A group of ranks whose list may follow in the next lines."""

    n: int
    ranks: list[RasRank] | None = None

    def listed(self) -> tuple[RasRank, ...] | None:
        return None if self.ranks is None else tuple(self.ranks)


@dataclass(slots=True)
class Block:
    """A block that is being read."""

    kind: BlockKind
    comm: RasComm | None
    count: int | None = None
    processes: list[RasProcess] | None = None
    ranks: list[RasRank] | None = None
    statuses: list[tuple[str, _Members]] | None = None
    counts: list[tuple[str | None, list[tuple[int, _Members]]]] | None = None
    errors: list[tuple[str, int, list[tuple[str, _Members]]]] | None = None
    members: _Members | None = None

    def read(self, line: str) -> bool:
        """Take a line; whether it belongs to a block."""
        return any(reader(self, line) for reader in _READERS)

    def freeze(self) -> RasBlock:
        """What was read."""
        return RasBlock(
            kind=self.kind,
            comm=self.comm,
            count=self.count,
            processes=None if self.processes is None else tuple(self.processes),
            ranks=None if self.ranks is None else tuple(self.ranks),
            status_groups=None
            if self.statuses is None
            else tuple(
                StatusGroup(n=members.n, status=status, ranks=members.listed())
                for status, members in self.statuses
            ),
            count_groups=None
            if self.counts is None
            else tuple(
                CountGroup(
                    op,
                    tuple(CountValue(n=m.n, op_count=c, ranks=m.listed()) for c, m in values),
                )
                for op, values in self.counts
            ),
            error_groups=None
            if self.errors is None
            else tuple(
                ErrorGroup(
                    phase,
                    count,
                    tuple(ErrorValue(n=m.n, error=e, ranks=m.listed()) for e, m in values),
                )
                for phase, count, values in self.errors
            ),
        )


def integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part and len(part) < 16)


def _missing(block: Block, line: str) -> bool:
    match = re.match(
        rf"Missing communicator data from {NUMBER} (?:job process(?:es)?|ranks?)\Z"
        rf"|{NUMBER} job process(?:es are| is) considered dead"
        r" \(unreachable via the RAS network\)\Z"
        rf"|Encountered {NUMBER} communication timeouts? while gathering communicator data\Z",
        line,
    )
    if match is None:
        return False
    block.count = int(next(part for part in match.groups() if part is not None))
    return True


def _process(block: Block, line: str) -> bool:
    match = _PROCESS.match(line)
    if match is None:
        return False
    gpus = integers(match[3])
    process = RasProcess(
        pid=int(match[1]),
        host=match[2],
        gpus=gpus,
        nvml=gpus if match[4] is None else integers(match[4]),
    )
    block.processes = [*(block.processes or ()), process]
    return True


def _rank_list(block: Block, line: str) -> bool:
    """Lists without owners, as NCCL 2.24 and 2.25 print them."""
    match = re.match(rf"The (missing|unknown) ranks?: {LIST}\Z", line)
    if match is None:
        return False
    ranks = [RasRank(rank=rank) for rank in integers(match[2])]
    if match[1] == "missing":
        block.ranks = ranks
        return True
    members = block.members
    last = block.statuses[-1] if block.statuses else None
    if members is None or last is None or last[0] != "UNKNOWN" or last[1] is not members:
        members = _Members(len(ranks))
        block.statuses = [*(block.statuses or ()), ("UNKNOWN", members)]
    members.ranks = ranks
    return True


def _member(block: Block, line: str) -> bool:
    match = re.match(rf"Rank {NUMBER} -- (?:{_RANK}|\[process information not found\])\Z", line)
    if match is None:
        return False
    rank = _rank(match)
    if block.members is None:
        block.ranks = [*(block.ranks or ()), rank]
    elif block.members.ranks is None:
        block.members.ranks = [rank]
    else:
        block.members.ranks.append(rank)
    return True


def _rank(match: re.Match[str]) -> RasRank:
    gpu, nvml, pid = match["gpu"], match["nvml"], match["pid"]
    return RasRank(
        rank=int(match[1]),
        gpu=None if gpu is None else int(gpu),
        nvml=None if gpu is None else int(nvml or gpu),
        pid=None if pid is None else int(pid),
        host=match["host"],
    )


_OWNER = rf"(?: -- (?:{_RANK}|\[process information not found\]))?\Z"


def _status(block: Block, line: str) -> bool:
    match = re.match(rf"{NUMBER} ranks? (?:have|has) status ([A-Z]+)\Z", line)
    if match is not None:
        members = _Members(int(match[1]))
    else:
        match = re.match(rf"Rank {NUMBER} has status ([A-Z]+){_OWNER}", line)
        if match is None:
            return False
        members = _Members(1, [_rank(match)])
    block.statuses = [*(block.statuses or ()), (match[2], members)]
    block.members = members
    return True


def _operation(block: Block, line: str) -> bool:
    match = re.match(r"Communicator ranks have different (\w+) operation counts\Z", line)
    if match is None:
        return False
    name = None if match[1] == "collective" else match[1]
    block.counts = [*(block.counts or ()), (name, [])]
    block.members = None
    return True


def _launched(block: Block, line: str) -> bool:
    what = rf"(?:launched up to operation {NUMBER}|not launched any operations)"
    match = re.match(rf"{NUMBER} ranks? ha(?:ve|s) {what}\Z", line)
    if match is not None:
        members = _Members(int(match[1]))
    else:
        match = re.match(rf"Rank {NUMBER} has {what}{_OWNER}", line)
        if match is None:
            return False
        members = _Members(1, [_rank(match)])
    if not block.counts:
        block.counts = [(None, [])]  # an excerpt that starts below the line naming the operation
    block.counts[-1][1].append((int(match[2] or 0), members))
    block.members = members
    return True


def _phase(block: Block, line: str) -> bool:
    match = re.match(rf"(Initialization|Asynchronous) errors? on {NUMBER} ranks?\Z", line)
    if match is None:
        return False
    block.errors = [*(block.errors or ()), (match[1].lower(), int(match[2]), [])]
    block.members = None
    return True


def _reported(block: Block, line: str) -> bool:
    match = re.match(rf"{NUMBER} ranks reported (\S[^\n]*)\Z", line)
    if match is not None:
        members = _Members(int(match[1]))
    else:
        match = re.match(rf"Rank {NUMBER} reported (\S.*?){_OWNER}", line)
        if match is None:
            return False
        members = _Members(1, [_rank(match)])
    if not block.errors:
        block.errors = [("asynchronous", members.n, [])]
    block.errors[-1][2].append((match[2], members))
    block.members = members
    return True


_READERS: tuple[Callable[[Block, str], bool], ...] = (
    _member,
    _process,
    _missing,
    _status,
    _operation,
    _launched,
    _phase,
    _reported,
    _rank_list,
)
