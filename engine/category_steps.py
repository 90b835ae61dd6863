"""What each category of a verdict asks for: concrete commands for the first suspect's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from whyhang.engine.facts import Facts
from whyhang.engine.machine_steps import is_cut_off, keep_off, link_steps
from whyhang.schemas.process import Process
from whyhang.schemas.verdict import Category, Verdict

# Where the kernel holds the tasks of a frozen control group (version 1, version 2).
_FREEZER_WAITS = ("__refrigerator", "do_freezer_trap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where to look: the process to look at first, where there is one, and the nodes at fault."""

    verdict: Verdict
    facts: Facts
    process: Process | None
    nodes: tuple[str, ...]

    @property
    def where(self) -> str:
        """The machine in words: a pid means something on its own one only."""
        node = self.process.node if self.process else next(iter(self.nodes), "")
        return f" on {node}" if node else ""

    @property
    def pid(self) -> str:
        """The process in words."""
        return f" (pid {self.process.pid})" if self.process else ""


def category_steps(scene: Scene) -> Iterator[str]:
    """The steps of the verdict's category; few where it is inconclusive."""
    category = scene.verdict.category
    if category in _ALWAYS:
        yield from _ALWAYS[category](scene)
    elif scene.verdict.verdict != "inconclusive":
        yield from _WHERE_DECIDED.get(category, _place)(scene)


def _disk_io(scene: Scene) -> Iterator[str]:
    where = scene.where
    yield f"Look for the file system{where}: `dmesg -T | grep -iE 'hung|nfs|lustre|I/O error'`"
    yield from _awaited(scene)
    for node in scene.nodes:
        yield f"If the storage does not come back, {keep_off(node)}"


def _dataloader(scene: Scene) -> Iterator[str]:
    yield f"Read the dataset code named above{scene.where}: what does it wait for?{scene.pid}"
    yield from _awaited(scene)


def _stopped_process(scene: Scene) -> Iterator[str]:
    if scene.process:
        pid = scene.process.pid
        if scene.process.wchan in _FREEZER_WAITS:
            yield (
                f"Find out who froze its control group{scene.where}: `cat /proc/{pid}/cgroup`; "
                "`docker unpause`, or 0 in its `cgroup.freeze`, lets it go on"
            )
            return
        yield (
            f"Find out who stopped it{scene.where}: `grep -E 'State|TracerPid' "
            f"/proc/{pid}/status`; `kill -CONT {pid}` lets it go on"
        )


def _checkpoint_io(scene: Scene) -> Iterator[str]:
    yield f"See whether the checkpoint still grows{scene.where}: `ls -lt` in its directory"
    yield from _awaited(scene)


def _logging_service(scene: Scene) -> Iterator[str]:
    yield f"See whether the tracker's service answers{scene.where}; try its offline mode"


def _device_sync(scene: Scene) -> Iterator[str]:
    yield "See what the devices do: `nvidia-smi dmon -c 3`; busy at low power spins"
    if scene.process:
        pid = scene.process.pid
        yield f"Read native frames{scene.where}: `py-spy dump --native --pid {pid}`"
    else:
        yield "Read native frames: `whyhang collect --native always`"


def _exited_rank(scene: Scene) -> Iterator[str]:
    where = scene.where
    yield f"Read the last lines of that rank's log{where}; signal 9 is often the OOM killer"
    yield f"Look for the OOM killer{where}: `dmesg -T | grep -iE 'out of memory|oom-kill'`"


def _gpu_device(scene: Scene) -> Iterator[str]:
    where = scene.where
    yield f"Look for device errors{where}: `dmesg -T | grep -iE 'xid|nvrm|mlx5'`"
    if scene.process and scene.process.gpu_index is not None:
        index = scene.process.gpu_index
        yield f"Read what the driver knows of it{where}: `nvidia-smi -q -i {index}`"
    for node in scene.nodes:
        yield f"If the device has failed, {keep_off(node)}"


def _network(scene: Scene) -> Iterator[str]:
    where = scene.where
    if scene.verdict.verdict == "global_hang":
        yield "Read what NCCL says of its transports: run again with `NCCL_DEBUG=INFO`"
        yield from link_steps(scene.facts)
        yield "Look for failing links on every node: `dmesg -T | grep -iE 'mlx5|link|nvlink'`"
    elif is_cut_off(scene.facts, scene.nodes):
        yield f"Look at the links{where}: `ip -s link`, `ibstat`, `dmesg -T | grep -iE 'link|mlx5'`"
        for node in scene.nodes:
            yield f"If no other node reaches it, {keep_off(node)}"
    elif scene.verdict.suspects.positions:
        if scene.process:
            yield f"See whom it waits for{where}: `ss -tnp | grep pid={scene.process.pid}`"
        else:
            yield "See whom it waits for: `ss -tnp`"
    else:
        yield f"See whether the machine still answers{where}: log in, then `dmesg -T | tail`"
        yield f"Sample it by hand{where}: `whyhang collect`"


def _collective(scene: Scene) -> Iterator[str]:
    yield "Compare the callers of the collective in `flame.svg`: the frame above it decides"
    yield "Run again with `TORCH_NCCL_TRACE_BUFFER_SIZE=2000` to record every collective"


def _lock_deadlock(scene: Scene) -> Iterator[str]:
    yield f"Look at all threads of that rank in `stacks.folded`: who holds the lock?{scene.pid}"


def _init_rendezvous(scene: Scene) -> Iterator[str]:
    yield "Check that every rank started and all nodes agree on WORLD_SIZE and MASTER_ADDR"


def _place(scene: Scene) -> Iterator[str]:
    """Of no category in particular: where the suspect stands."""
    process, where = scene.process, scene.where
    if process and process.state == "D":
        yield f"See where it sleeps in the kernel{where}: `cat /proc/{process.pid}/stack`, as root"
        yield f"Look for hung tasks{where}: `dmesg -T | grep -iE 'hung|blocked for more'`"
    elif process and scene.verdict.verdict == "local_hang":
        yield f"Read the code named above; watch it live{where}: `py-spy dump --pid {process.pid}`"


def _awaited(scene: Scene) -> Iterator[str]:
    """The file or socket by name, where the kernel told it."""
    process, where = scene.process, scene.where
    if process is None:
        return
    if process.blocked_on is None or not (process.blocked_on.path or process.blocked_on.peer):
        yield f"See its open files and sockets{where}: `ls -l /proc/{process.pid}/fd`"
    else:
        yield f"Look at what it waits for{where}: pid {process.pid} waits in {process.blocked_on}"


_ALWAYS: Mapping[Category, Callable[[Scene], Iterator[str]]] = {
    "disk_io": _disk_io,
    "dataloader": _dataloader,
    "stopped_process": _stopped_process,
    "checkpoint_io": _checkpoint_io,
    "logging_service": _logging_service,
    "device_sync": _device_sync,
    "exited_rank": _exited_rank,
    "gpu_device": _gpu_device,
    "network": _network,
}
_WHERE_DECIDED: Mapping[Category, Callable[[Scene], Iterator[str]]] = {
    "collective_wait": _collective,
    "barrier": _collective,
    "lock_deadlock": _lock_deadlock,
    "init_rendezvous": _init_rendezvous,
}
