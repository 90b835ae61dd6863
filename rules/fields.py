"""The table of fields: what conditions may ask, of whom, and of which type the answer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from whyhang.rules.ast import Kind
from whyhang.schemas.words import PHASES, PROCESS_KINDS, Trigger

Scope = Literal["job", "rank", "process", "child", "thread", "node"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FieldType = Literal["bool", "int", "num", "percent", "duration", "str", "frame", "frames"]

# What a log or kernel line of each kind tells of the rank or the node that it names.
EVENT_DOCS = {
    "rank_failed": "the rank ended by itself",
    "traceback": "the rank printed a Python exception",
    "watchdog_timeout": "the rank waited in a collective until its timeout",
    "watchdog_stuck": "the rank's own watchdog thread was blocked (driver, GIL)",
    "watchdog_status": "the rank told how far its collectives had come when it timed out",
    "dump_signal": "the rank heard of a collective timeout and dumped what it knew",
    "process_abort": "the rank's watchdog took its process down",
    "flight_recorder_off": "a timeout found the flight recorder off",
    "store_timeout": "the rank did not come to the rendezvous that others waited for",
    "store_lost": "the process that holds the rendezvous store was gone",
    "barrier_missed": "the rank did not come to a monitored barrier",
    "store_waiting": "the rank waited in the store-based barrier for others to join",
    "store_absent": "the rank had not joined while others waited in the store-based barrier",
    "op_submitted": "the rank submitted an operation that others had not (Horovod)",
    "op_not_submitted": "the rank had not submitted an operation that others had (Horovod)",
    "worker_died": "a dataloader worker of the rank died",
    "dataloader_timeout": "the rank's dataloader gave no batch within its own timeout",
    "no_space": "no space was left where the rank wrote",
    "ib_error": "an InfiniBand operation of the node failed",
    "ib_port_error": "an InfiniBand port or adapter of the node failed",
    "peer_lost": "the node was not reached any more, or closed a connection",
    "connect_failed": "the node could not be reached when a communicator was set up",
    "proxy_failed": "NCCL's proxy could not set up a transport",
    "cuda_error": "a CUDA call failed in NCCL on the node",
    "ras_dead": "NCCL RAS gave a process of the node up",
    "ras_silent": "NCCL RAS had no answer from a process of the node",
    "nccl_error": "a collective of the rank ended with an NCCL error",
    "nccl_warn": "NCCL warned on the node",
    "hccl_stuck": "the rank waited in HCCL until its timeout",
    "hccl_error": "a call of HCCL failed on the rank",
    "xid": "the driver reported a fault of a GPU (Xid)",
    "sxid": "the driver reported a fault of an NVSwitch (SXid)",
    "gpu_reset": "the driver or runtime of an AMD GPU gave a job up or reset the GPU",
    "oom_kill": "the kernel killed a process for want of memory",
    "hung_task": "a process was in uninterruptible sleep for minutes",
    "storage_lost": "a file server did not answer",
    "io_error": "a disk or file system failed",
    "link_down": "a network link of the node went down",
    "soft_lockup": "a CPU of the node was stuck in the kernel",
    "segfault": "a process crashed",
}
EVENT_KINDS = tuple(EVENT_DOCS)
STATUSES = ("running", "missing", "exited", "zombie", "stopped")

_ANYWHERE = SCOPES
_PROCESS: tuple[Scope, ...] = ("rank", "process", "child")
_MACHINE: tuple[Scope, ...] = ("rank", "node")
_THREADS: tuple[Scope, ...] = (*_PROCESS, "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldInfo:
    """A field. ``values`` lists all values that a text can have, where that is known."""

    name: str
    type: FieldType
    scopes: tuple[Scope, ...]
    doc: str
    values: tuple[str, ...] = ()


def _field(
    name: str,
    type: FieldType,
    scopes: tuple[Scope, ...],
    doc: str,
    values: tuple[str, ...] = (),
) -> FieldInfo:
    return FieldInfo(name=name, type=type, scopes=scopes, doc=doc, values=values)


_TABLE = (
    _field(
        "log.stalled", "bool", _ANYWHERE, "steps have stopped for longer than this job explains"
    ),
    _field("log.progressing", "bool", _ANYWHERE, "steps advance at this job's own pace"),
    _field("log.slow", "bool", _ANYWHERE, "steps advance, far below this job's own pace"),
    _field("log.stalled_for", "duration", _ANYWHERE, "time since the last step"),
    _field("log.interval", "duration", _ANYWHERE, "the median time between two steps"),
    _field("log.phase", "str", _ANYWHERE, "what the job was doing last", PHASES),
    _field("log.last_line", "str", _ANYWHERE, "the last line of the log that told of progress"),
    _field("log.iteration", "int", _ANYWHERE, "the last step"),
    _field("checkpoint.age", "duration", _ANYWHERE, "how old the newest checkpoint is"),
    _field("checkpoint.step", "int", _ANYWHERE, "the step that the newest checkpoint's name tells"),
    _field("job.world_size", "int", _ANYWHERE, "the number of ranks"),
    _field("job.nodes", "int", _ANYWHERE, "the number of nodes"),
    _field("job.ended", "bool", _ANYWHERE, "the job was over when the evidence was taken"),
    _field("job.trigger", "str", _ANYWHERE, "why the evidence was taken", get_args(Trigger)),
    _field("ras", "bool", _ANYWHERE, "NCCL RAS answered: ask `ras is known`"),
    _field("ras.mismatch", "bool", _ANYWHERE, "ranks launched different numbers of operations"),
    _field("ras.missing", "int", _ANYWHERE, "processes that did not answer NCCL RAS"),
    _field("ras.behind", "bool", ("rank",), "it launched fewer operations than its peers"),
    _field("fr.behind", "bool", ("rank",), "flight recorder: others wait for it in a collective"),
    _field("fr.sizes_differ", "bool", ("rank",), "flight recorder: it brought other sizes"),
    _field("top", "frame", _THREADS, "the position: where the thread that matters stands"),
    _field("top.function", "str", _THREADS, "the bare function name of the position"),
    _field("top.file", "str", _THREADS, "the file of the position"),
    _field("top.line", "int", _THREADS, "the line of the position"),
    _field("stack", "frames", _THREADS, "the Python frames, innermost first"),
    _field("native", "frames", _THREADS, "the native frames below the innermost Python frame"),
    _field("status", "str", _PROCESS, "whether the process lives", STATUSES),
    _field("exit_code", "int", _PROCESS, "the exit status; negative: the signal's number"),
    _field("unreadable", "bool", _PROCESS, "its stacks could not be read"),
    _field("proc.kind", "str", _THREADS, "what the process is for", PROCESS_KINDS),
    _field("proc.state", "str", _PROCESS, "the kernel's letter: R, S, D, T, t, Z"),
    _field("proc.wchan", "str", _PROCESS, "the kernel function in which it sleeps"),
    _field("proc.threads", "int", _PROCESS, "the number of its threads"),
    _field("proc.d_threads", "int", _PROCESS, "the number of its threads in state D"),
    _field("proc.kernel", "frames", _PROCESS, "the kernel's stack, or only where it sleeps"),
    _field("proc.traced", "bool", _PROCESS, "a tracer that is not ours holds it"),
    _field("proc.run_queue", "percent", _PROCESS, "time runnable but not scheduled"),
    _field("proc.cpus", "int", _PROCESS, "the number of CPUs that it may run on"),
    _field("proc.rank", "int", ("process", "child"), "the rank that the process belongs to"),
    _field("io.read_rate", "num", _PROCESS, "bytes a second that it read, sockets included"),
    _field("io.write_rate", "num", _PROCESS, "bytes a second that it wrote, sockets included"),
    _field("disk.read_rate", "num", _PROCESS, "bytes a second that came from a device"),
    _field("disk.write_rate", "num", _PROCESS, "bytes a second that went to a device"),
    _field("cpu.rate", "percent", _PROCESS, "CPU time per wall time; 100% is one core"),
    _field("step_lag", "int", ("rank",), "steps behind the foremost rank, by its own log"),
    _field(
        "alike",
        "percent",
        ("rank",),
        "share of the ranks (of its stage, in a pipeline) at this position, called alike",
    ),
    _field("pipeline.stage", "int", ("rank",), "its pipeline stage, from 0"),
    _field("pipeline.awaited", "bool", ("rank",), "a neighbouring stage waits for it"),
    _field("thread.name", "str", ("thread",), "the thread's name"),
    _field("gpu.utilization", "percent", ("rank",), "time its GPU was busy; waiting kernels count"),
    _field("gpu.memory", "percent", ("rank",), "the memory of its GPU that is used"),
    _field("gpu.power", "num", ("rank",), "watts that its GPU draws"),
    _field("gpu.failed", "bool", ("rank",), "the driver reports a fault in the place of values"),
    _field("tcp.retransmits", "int", _MACHINE, "sent to one other node again and again"),
    _field("tcp.cut_off", "bool", _MACHINE, "several links fail, all of them at this node"),
    _field("node.memory_free", "percent", _MACHINE, "main memory that is available"),
    _field("node.shm_free", "percent", _MACHINE, "free space of /dev/shm"),
    _field("node.io_pressure", "percent", _MACHINE, "time in which every task waited for I/O"),
    _field("node.cpu_pressure", "percent", _MACHINE, "time in which some task waited for a CPU"),
    _field("node.name", "str", (*_PROCESS, "node"), "the host name of the node"),
    *(
        _field(f"event.{kind}", "bool", ("job", "node", "rank"), f"by a log or kernel line: {told}")
        for kind, told in EVENT_DOCS.items()
    ),
)

FIELDS = {field.name: field for field in _TABLE}


# Which groups a condition about one of these may ask about: `children` are those of one rank.
GROUPS_IN_SCOPE: dict[Scope, tuple[Kind, ...]] = {
    "job": ("rank", "node", "process", "thread"),
    "node": ("rank", "process", "thread"),
    "rank": ("process", "child", "thread"),
    "process": ("child", "thread"),
    "child": ("thread",),
    "thread": (),
}
