"""``--pid``, ``--job`` and ``--name``: which of the jobs of a host is meant."""

from __future__ import annotations

import argparse
import fnmatch
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.collectors.kinds import Identity

_SHOWN = 8
_LONGEST = 60


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """The three ways to name a job; none of them where only one runs."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--pid", type=int, help="the job below this process (default: found)")
    group.add_argument(
        "--job",
        metavar="ID",
        help="the job by its environment: run ID, scheduler's number or master ADDRESS:PORT",
    )
    group.add_argument(
        "--name", metavar="PATTERN", help="the job by a pattern that its command line holds"
    )


def find_root(options: argparse.Namespace) -> int | None:
    """The process that stands for the job that was named; None where none was.

    Raises UsageError where none fits, or more than one does.
    """
    if options.job is None and options.name is None:
        pid: int | None = options.pid
        return pid
    table = _others()
    if options.name is not None:
        named = [x for x in table.values() if _is_named(x, options.name)]
        return _only(named, table, f"no Python process whose command line holds {options.name!r}")
    named = [x for x in table.values() if x.carries_rank and options.job in x.job.names]
    return _only(named, table, f"no rank here belongs to a job {options.job!r}")


def _others() -> Mapping[int, Identity]:
    """The Python processes that are neither ours nor above us."""
    from whyhang.collectors.kinds import ancestors, is_whyhang
    from whyhang.collectors.process_table import read_identities

    table = read_identities()
    above = {os.getpid(), *(each.pid for each in ancestors(os.getpid(), table))}
    return {
        pid: identity
        for pid, identity in table.items()
        if identity.is_python and pid not in above and not is_whyhang(identity)
    }


def _is_named(identity: Identity, pattern: str) -> bool:
    return fnmatch.fnmatchcase(" ".join(identity.cmdline or ()), f"*{pattern}*")


def _only(named: Sequence[Identity], table: Mapping[int, Identity], nobody: str) -> int:
    """What started these processes, or the uppermost; of ranks that nothing started, the first."""
    from whyhang.collectors.kinds import ancestors, is_launcher

    if not named:
        raise UsageError(nobody, hint="`ps` shows what runs; --pid names one process")
    pids = {each.pid for each in named}
    tops = [x for x in named if not any(above.pid in pids for above in ancestors(x.pid, table))]
    parents = {each.ppid for each in tops}
    parent = table.get(parents.pop()) if len(parents) == 1 else None
    if parent is not None and (len(tops) > 1 or is_launcher(parent)):
        return parent.pid
    first = min(tops, key=lambda each: (each.job.rank or 0, each.pid))
    # The ranks of one job find each other by their environment.
    if len(tops) == 1 or (first.job.job is not None and len({x.job.job for x in tops}) == 1):
        return first.pid
    raise UsageError(
        f"{len(tops)} processes fit",
        hint="name one: " + "; ".join(map(_shown, sorted(tops, key=lambda x: x.pid)[:_SHOWN])),
    )


def _shown(identity: Identity) -> str:
    from whyhang.collectors.masking import mask_cmdline

    line = " ".join(mask_cmdline(identity.cmdline or (identity.name,)))
    return f"--pid {identity.pid} ({line[:_LONGEST]})"
