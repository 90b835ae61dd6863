"""Ranks that we may not look into: their environment, and so their number, is closed to us.

What anybody may read (parent, name, command line) still shows the shape of a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from whyhang.collectors.kinds import (
    COMPILE_WORKER,
    MULTIPROCESSING,
    Identity,
    ancestors,
    is_launcher,
    is_whyhang,
    looks_like_python,
    program,
)


def closed_pythons(table: Mapping[int, Identity]) -> frozenset[int]:
    """The Python programs whose environment could not be read; no zombies and nothing of ours."""
    return frozenset(
        pid
        for pid, identity in table.items()
        if identity.environ is None
        and identity.state != "Z"
        and (identity.is_python or (identity.is_python is None and looks_like_python(identity)))
        and not (is_whyhang(identity) or is_launcher(identity))
    )


def closed_trainers(table: Mapping[int, Identity], tree: Collection[int]) -> frozenset[int]:
    """What must be the ranks of a tree in which none is told by its environment.

    The uppermost Python programs. One that runs the same other program several times is what
    starts the ranks, and they are these.
    """
    closed = closed_pythons(table) & frozenset(tree)
    below: dict[int | None, list[int]] = {}
    for pid in sorted(closed):
        above = next((x.pid for x in ancestors(pid, table) if x.pid in closed), None)
        below.setdefault(above, []).append(pid)
    found, waiting = set(), list(below.get(None, ()))
    while waiting:
        pid = waiting.pop()
        started = _started(table[pid], [table[child] for child in below.get(pid, ())])
        waiting += started
        if not started:
            found.add(pid)
    return frozenset(found)


def closed_siblings(table: Mapping[int, Identity], trainers: Collection[int]) -> frozenset[int]:
    """What runs the program of a known rank, started by the same parent, but is closed to us."""
    known = {(table[pid].ppid, program(table[pid].cmdline)) for pid in trainers}
    closed = closed_pythons(table) - frozenset(trainers)
    return frozenset(
        pid for pid in closed if (table[pid].ppid, program(table[pid].cmdline)) in known
    )


def _started(parent: Identity, children: Collection[Identity]) -> list[int]:
    """The children that run one program, another than their parent's, more than once."""
    programs = {}
    for child in children:
        line = " ".join(child.cmdline or ())
        if not (MULTIPROCESSING.search(line) or COMPILE_WORKER in line):
            programs[child.pid] = program(child.cmdline)
    counts = Counter(programs.values())
    own = program(parent.cmdline)
    return [pid for pid, runs in programs.items() if runs != own and counts[runs] > 1]
