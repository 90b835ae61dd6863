"""Reads a RAS report in text form, line by line.

The grammar is that of NCCL 2.24 to 2.32. Lines are told apart by their own words, not by blank
lines or headings (blank lines between blocks come and go with the release), so an excerpt pasted
without its headings, indented or quoted, reads the same. Work is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from whyhang.collectors.ras_blocks import LIST, NUMBER, Block, integers
from whyhang.schemas.ras import (
    BlockKind,
    CommGroup,
    JobSummary,
    NodeRow,
    OutlierNode,
    ProcessRow,
    RasComm,
    TextReply,
)

MAX_UNPARSED = 100
MAX_LINE = 1 << 20  # a reply's longest lines, lists of pids, are far below
MAX_LINES = 200_000  # a verbose reply about 4,096 ranks in five communicators has 10,000

_BLOCK_HEAD = re.compile(
    r"(?:#(\d{1,9})-(\d{1,9}) \(([0-9a-fA-F]{1,16})\) )?(INCOMPLETE|DEAD|TIMEOUT|ERROR|MISMATCH)\Z"
)
_GROUP_ROW = re.compile(
    rf"{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}(?:-{NUMBER})?\s+{NUMBER}\s+{NUMBER}\s+([A-Z]+)\s+([A-Z]+(?:,[A-Z]+)*)\Z"
)
_NUMBERS = re.compile(r"\d{1,15}(?:\s+\d{1,15})+\Z")
_TABLES = {
    "(total) per node per process (total) (total)": "uniform",
    "per node per process": "nodes and gpus",
    "(total) (total) (total)": "totals",
    "per node": "nodes",
    "per process": "processes",
}
_WITHOUT_MEANING = re.compile(
    r"Job summary|=+|Nodes Processes(?: GPUs(?: Processes GPUs)?)?|Processes GPUs"
    r"|Group Comms Nodes Ranks Ranks Ranks Status Errors"
    r"|# in group per comm per node per comm in group"
    r"|The outlier nodes?:|No communicator data collected!|Errors|Warnings"
    r"|\[could not find information on \d+ process(?:es)?\]"
    r"|Communicator ranks have different status"
)


def parse_text(text: str) -> TextReply:
    """Parse a report or an excerpt of one; what is not understood stands in ``unparsed``."""
    if not text.strip():
        return TextReply(complete=False, problem="empty reply")
    reader = _Reader()
    lines = text.replace("\r\n", "\n").split("\n")
    cut = lines.pop()  # what stands behind the last line break
    for line in lines[:MAX_LINES]:
        reader.read(line)
    reader.is_too_long = len(lines) > MAX_LINES
    if cut and reader.is_whole_reply and not reader.has_warnings:
        # A line that the peer did not finish: a number in it may be cut as well.
        reader.give_up(cut)
    elif cut:
        reader.read(cut)
    return reader.reply(ends_with_newline=not cut)


@dataclass(slots=True)
class _Reader:
    """The state between two lines."""

    version: str | None = None
    built_cuda: str | None = None
    runtime: int | None = None
    driver: int | None = None
    table: str | None = None
    totals: tuple[int, ...] | None = None
    per_process: tuple[int, int] | None = None
    node_rows: list[NodeRow] = field(default_factory=list)
    process_rows: list[ProcessRow] = field(default_factory=list)
    outliers: list[OutlierNode] = field(default_factory=list)
    seconds: float | None = None
    groups: list[CommGroup] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    is_whole_reply: bool = False
    has_warnings: bool = False
    is_too_long: bool = False

    def read(self, raw: str) -> None:
        """Take one line."""
        line = raw.strip().lstrip("> ") if raw.lstrip().startswith(">") else raw.strip()
        if not line:
            return
        if len(line) > MAX_LINE:
            self.give_up(raw)
            return
        if not (self._structure(line) or self._in_block(line)):
            self.give_up(raw)

    def give_up(self, raw: str) -> None:
        """Keep a line that says nothing to us."""
        if len(self.unparsed) < MAX_UNPARSED:
            self.unparsed.append(raw[:500])

    def _structure(self, line: str) -> bool:
        head = _BLOCK_HEAD.match(line)
        if head is not None:
            group, index, digits, kind = head.groups()
            comm = None if digits is None else RasComm(int(group), int(index), digits.lower())
            self.blocks.append(Block(cast(BlockKind, kind), comm))
            return True
        words = " ".join(line.split()) if len(line) < 120 else line
        if words in _TABLES:
            self.table = _TABLES[words]
            return True
        if _WITHOUT_MEANING.fullmatch(words):
            self.has_warnings |= words == "Warnings"
            return True
        return any(reader(self, line) for reader in _STRUCTURE)

    def _version(self, line: str) -> bool:
        match = re.match(r"NCCL version (\S+) compiled with CUDA (\S+)\Z", line)
        if match is None:
            return False
        self.version, self.built_cuda = match.groups()
        self.is_whole_reply = True
        return True

    def _cuda(self, line: str) -> bool:
        match = re.match(rf"CUDA runtime version {NUMBER}, driver version {NUMBER}\Z", line)
        if match is None:
            return False
        self.runtime, self.driver = int(match[1]), int(match[2])
        return True

    def _collected(self, line: str) -> bool:
        match = re.match(r"Communicators\.\.\.(?: \((\d{1,9}(?:\.\d{1,9})?)s\))?\Z", line)
        if match is None:
            return False
        self.table = None
        self.seconds = None if match[1] is None else float(match[1])
        return True

    def _group_row(self, line: str) -> bool:
        match = _GROUP_ROW.match(line)
        if match is None:
            return False
        number, comms, nodes, low, high, size, ranks = (
            None if part is None else int(part) for part in match.groups()[:7]
        )
        assert number is not None and comms is not None and nodes is not None
        assert low is not None and size is not None and ranks is not None
        errors = match[9]
        self.groups.append(
            CommGroup(
                group=number,
                comms=comms,
                nodes_per_comm=nodes,
                ranks_per_node=(low, low if high is None else high),
                ranks_per_comm=size,
                ranks_in_group=ranks,
                status=match[8],
                errors=() if errors == "OK" else tuple(errors.split(",")),
            )
        )
        return True

    def _table_row(self, line: str) -> bool:
        if self.table is None or not _NUMBERS.match(line):
            return False
        row = tuple(int(part) for part in line.split())
        if self.table == "uniform" and len(row) == 5:
            self.totals, self.per_process = (row[0], row[3], row[4]), (row[1], row[2])
        elif self.table == "totals" and len(row) == 3:
            self.totals = row
        elif self.table == "nodes and gpus" and len(row) == 3:
            self.node_rows.append(
                NodeRow(nodes=row[0], processes_per_node=row[1], gpus_per_process=row[2])
            )
        elif self.table == "nodes" and len(row) == 2:
            self.node_rows.append(NodeRow(nodes=row[0], processes_per_node=row[1]))
        elif self.table == "processes" and len(row) == 2:
            self.process_rows.append(ProcessRow(row[0], row[1]))
        else:
            return False
        return True

    def _outlier(self, line: str) -> bool:
        match = re.match(rf"Node ?(\S*) running process(?:es)? {LIST}\Z", line)
        if match is None:
            return False
        self.outliers.append(OutlierNode(match[1], integers(match[2])))
        return True

    def _in_block(self, line: str) -> bool:
        """A line that belongs to the block above it."""
        if not self.blocks:
            return False
        return self.blocks[-1].read(line)

    def reply(self, *, ends_with_newline: bool) -> TextReply:
        """All that was read."""
        problem = None
        if self.is_too_long:
            problem = f"too long: only {MAX_LINES} lines were read"
        elif not ends_with_newline:
            problem = "truncated: last line has no newline"
        elif not self.has_warnings:
            problem = "truncated: no Warnings section"
        return TextReply(
            complete=problem is None,
            problem=problem,
            version=self.version,
            built_cuda=self.built_cuda,
            cuda_runtime=self.runtime,
            cuda_driver=self.driver,
            job=self._job(),
            collection_seconds=self.seconds,
            groups=tuple(self.groups),
            blocks=tuple(block.freeze() for block in self.blocks),
            unparsed=tuple(self.unparsed),
        )

    def _job(self) -> JobSummary | None:
        if self.totals is None and not self.node_rows and not self.process_rows:
            return None
        nodes, processes, gpus = self.totals or (None, None, None)
        per_node, per_process = self.per_process or (None, None)
        return JobSummary(
            nodes=nodes,
            processes=processes,
            gpus=gpus,
            processes_per_node=per_node,
            gpus_per_process=per_process,
            uniform=self.per_process is not None,
            node_distribution=tuple(self.node_rows),
            process_distribution=tuple(self.process_rows),
            outlier_nodes=tuple(self.outliers),
        )


_STRUCTURE: tuple[Callable[[_Reader, str], bool], ...] = (
    _Reader._table_row,
    _Reader._group_row,
    _Reader._version,
    _Reader._cuda,
    _Reader._collected,
    _Reader._outlier,
)
