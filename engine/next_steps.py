"""What to do now: concrete commands for this incident."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.category_steps import Scene, category_steps
from whyhang.engine.facets import process_of
from whyhang.engine.facts import Facts
from whyhang.engine.machine_steps import room_steps
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.verdict import NotSeen, Verdict

NODES_SHOWN = 3
# What a fault told of by a log or kernel line asks for: why to look, and the command.
EVENT_STEPS = {
    "xid": ("The driver reported a GPU fault", "`dmesg -T | grep -i xid`, then `nvidia-smi -q`"),
    "sxid": ("The driver reported an NVSwitch fault", "`dmesg -T | grep -i sxid`"),
    "gpu_reset": ("The driver reset an AMD GPU", "`dmesg -T | grep -i amdgpu`, `rocm-smi`"),
    "ib_error": ("An InfiniBand operation failed", "`ibstat`, `rdma statistic`"),
    "ib_port_error": ("An InfiniBand port failed", "`ibstat`, then keep jobs off: cordon or drain"),
    "link_down": ("A network link went down", "`ip -s link`, `ibstat`"),
    "peer_lost": ("A peer was not reached any more", "log in to it, `dmesg -T | tail`"),
    "storage_lost": (
        "A file server did not answer",
        "`nfsstat -m`, `dmesg -T | grep -i 'not resp'`",
    ),
    "io_error": ("A disk or file system failed", "`dmesg -T | grep -i 'I/O error'`"),
    "no_space": ("No space was left", "`df -h`, and `df -h /dev/shm`"),
    "oom_kill": ("The kernel killed a process for want of memory", "`dmesg -T | grep -i oom-kill`"),
    "worker_died": ("A dataloader worker died", "`df -h /dev/shm`, `dmesg -T | grep -i oom-kill`"),
    "hung_task": ("A task slept for minutes in the kernel", "`dmesg -T | grep -A20 'blocked for'`"),
    "soft_lockup": ("A CPU was stuck in the kernel", "`dmesg -T | grep -A20 'soft lockup'`"),
}


def next_steps(verdict: Verdict, facts: Facts) -> tuple[str, ...]:
    """Steps in the order in which to take them; none where nothing is wrong."""
    if verdict.verdict in ("no_hang", "slow") and verdict.category != "exited_rank":
        return ()
    return tuple(_steps(verdict, facts))


def _steps(verdict: Verdict, facts: Facts) -> Iterator[str]:
    nodes = verdict.suspects.nodes[:NODES_SHOWN]
    process = first_process(verdict, facts)
    yield from category_steps(Scene(verdict=verdict, facts=facts, process=process, nodes=nodes))
    yield from room_steps(facts, nodes)
    yield from _event_steps(facts)
    if verdict.not_seen:
        yield f"Read the ranks that were not seen: {_unread(verdict.not_seen[0])}"
    if verdict.verdict == "inconclusive" and facts.world.sample_count < 2:
        yield "Collect two samples that lie apart: `whyhang collect --samples 2 --interval 10s`"


def _unread(unread: NotSeen) -> str:
    """Whose stacks, and what helps; the reason where no cure is known."""
    ranks = unread.ranks.format(8) if unread.ranks else ""
    if unread.cure:
        return f"{ranks}; {unread.cure}" if ranks else unread.cure
    return f"{ranks} ({unread.reason})" if ranks else unread.reason


def _event_steps(facts: Facts) -> Iterator[str]:
    """What log and kernel lines ask for, each kind once, with the nodes that they name."""
    nodes: dict[str, dict[str, None]] = {}
    for event in facts.world.incident.events:
        named = nodes.setdefault(event.kind, {})
        if event.node:
            named[event.node] = None
    for kind, step in EVENT_STEPS.items():
        if kind in nodes:
            shown = list(nodes[kind])[:NODES_SHOWN]
            yield f"{step[0]}{' on ' + ', '.join(shown) if shown else ''}: {step[1]}"


def first_process(verdict: Verdict, facts: Facts) -> Process | None:
    """The process to look at first: the worker at the first named position, else the trainer."""
    last = facts.world.sample_count - 1
    if last < 0 or not verdict.suspects.ranks:
        return None
    positions = verdict.suspects.positions
    # The place named first need not be that of the lowest rank.
    rank = next(iter(positions[0].ranks if positions else verdict.suspects.ranks))
    if positions and positions[0].kind != "trainer":
        for _, child in facts.world.children.of(facts.world.inside("rank", rank, "child")):
            process = child.track[last]
            if process is None or process.kind != positions[0].kind:
                continue
            if _is_blocked(facts, process):
                return process
    found = process_of(facts.world.ranks.subjects[rank], last)
    return None if isinstance(found, Missing) else found


def _is_blocked(facts: Facts, process: Process) -> bool:
    thread = facts.positions.thread(process)
    if isinstance(thread, Missing):
        return process.state in ("D", "T")
    top = facts.positions.top(thread.stack)
    return not isinstance(top, Missing) and "idle" not in facts.positions.claims(top)
