"""What to do now: concrete commands for this incident."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.engine.facets import process_of
from whyhang.engine.facts import Facts
from whyhang.engine.machine_steps import is_cut_off, keep_off, link_steps, room_steps
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.verdict import Verdict

NODES_SHOWN = 3
# What a fault told of by a log or kernel line asks for: why to look, and the command.
EVENT_STEPS = {
    "xid": ("The driver reported a GPU fault", "`dmesg -T | grep -i xid`, then `nvidia-smi -q`"),
    "sxid": ("The driver reported an NVSwitch fault", "`dmesg -T | grep -i sxid`"),
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
    pid = f" (pid {process.pid})" if process else ""
    # A pid means something on its own machine only.
    node = process.node if process else next(iter(nodes), "")
    where = f" on {node}" if node else ""
    if verdict.category == "disk_io":
        yield f"Look for the file system{where}: `dmesg -T | grep -iE 'hung|nfs|lustre|I/O error'`"
        if process:
            yield _what_it_waits_for(process, where)
        for node in nodes:
            yield f"If the storage does not come back, {keep_off(node)}"
    elif verdict.category == "dataloader":
        yield f"Read the dataset code named above{where}: what does it wait for?{pid}"
        if process:
            yield _what_it_waits_for(process, where)
    elif verdict.category == "stopped_process":
        if process:
            yield (
                f"Find out who stopped it{where}: `grep -E 'State|TracerPid' "
                f"/proc/{process.pid}/status`; `kill -CONT {process.pid}` lets it go on"
            )
    elif verdict.category == "checkpoint_io":
        yield f"See whether the checkpoint still grows{where}: `ls -lt` in its directory"
        if process:
            yield _what_it_waits_for(process, where)
    elif verdict.category == "logging_service":
        yield f"See whether the tracker's service answers{where}; try its offline mode"
    elif verdict.category == "device_sync":
        yield "See what the devices do: `nvidia-smi dmon -c 3`; busy at low power spins"
        yield (
            f"Read native frames{where}: `py-spy dump --native --pid {process.pid}`"
            if process
            else ("Read native frames: `whyhang collect --native always`")
        )
    elif verdict.category == "exited_rank":
        yield f"Read the last lines of that rank's log{where}; signal 9 is often the OOM killer"
        yield f"Look for the OOM killer{where}: `dmesg -T | grep -iE 'out of memory|oom-kill'`"
    elif verdict.category == "gpu_device":
        yield f"Look for device errors{where}: `dmesg -T | grep -iE 'xid|nvrm|mlx5'`"
        if process and process.gpu_index is not None:
            yield f"Read what the driver knows of it{where}: `nvidia-smi -q -i {process.gpu_index}`"
        for name in nodes:
            yield f"If the device has failed, {keep_off(name)}"
    elif verdict.category == "network" and verdict.verdict == "global_hang":
        yield "Read what NCCL says of its transports: run again with `NCCL_DEBUG=INFO`"
        yield from link_steps(facts)
        yield "Look for failing links on every node: `dmesg -T | grep -iE 'mlx5|link|nvlink'`"
    elif verdict.category == "network" and is_cut_off(facts, nodes):
        yield f"Look at the links{where}: `ip -s link`, `ibstat`, `dmesg -T | grep -iE 'link|mlx5'`"
        for name in nodes:
            yield f"If no other node reaches it, {keep_off(name)}"
    elif verdict.category == "network" and verdict.suspects.positions:
        yield (
            f"See whom it waits for{where}: `ss -tnp | grep pid={process.pid}`"
            if process
            else ("See whom it waits for: `ss -tnp`")
        )
    elif verdict.category == "network":
        yield f"See whether the machine still answers{where}: log in, then `dmesg -T | tail`"
        yield f"Sample it by hand{where}: `whyhang collect`"
    elif verdict.verdict == "inconclusive":
        pass
    elif verdict.category in ("collective_wait", "barrier"):
        yield "Compare the callers of the collective in `flame.svg`: the frame above it decides"
        yield "Run again with `TORCH_NCCL_TRACE_BUFFER_SIZE=2000` to record every collective"
    elif verdict.category == "lock_deadlock":
        yield f"Look at all threads of that rank in `stacks.folded`: who holds the lock?{pid}"
    elif verdict.category == "init_rendezvous":
        yield "Check that every rank started and all nodes agree on WORLD_SIZE and MASTER_ADDR"
    elif process and process.state == "D":
        yield f"See where it sleeps in the kernel{where}: `cat /proc/{process.pid}/stack`, as root"
        yield f"Look for hung tasks{where}: `dmesg -T | grep -iE 'hung|blocked for more'`"
    elif verdict.verdict == "local_hang" and process:
        yield f"Read the code named above; watch it live{where}: `py-spy dump --pid {process.pid}`"
    yield from room_steps(facts, nodes)
    yield from _event_steps(facts)
    if verdict.not_seen:
        first = verdict.not_seen[0]
        whose = f"{first.ranks.format(8)} ({first.reason})" if first.ranks else first.reason
        if first.cure:
            whose = f"{first.ranks.format(8)}; {first.cure}" if first.ranks else first.cure
        yield f"Read the ranks that were not seen: {whose}"
    if verdict.verdict == "inconclusive" and facts.world.sample_count < 2:
        yield "Collect two samples that lie apart: `whyhang collect --samples 2 --interval 10s`"


def _what_it_waits_for(process: Process, where: str) -> str:
    """The file or socket by name, where the kernel told it."""
    if process.blocked_on is None or not (process.blocked_on.path or process.blocked_on.peer):
        return f"See its open files and sockets{where}: `ls -l /proc/{process.pid}/fd`"
    return f"Look at what it waits for{where}: pid {process.pid} waits in {process.blocked_on}"


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
