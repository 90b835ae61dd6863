"""Hand-built diagnoses that the renderers' tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from whyhang.engine.merge import build_tree
from whyhang.schemas.diagnosis import Diagnosis, Group
from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.frame import Frame
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import (
    GpuFacts,
    InfinibandFacts,
    MemoryFacts,
    NodeFacts,
    PressureFacts,
    ShmFacts,
    TcpFacts,
)
from whyhang.schemas.process import Process
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import (
    NotSeen,
    Suppression,
    SuspectPosition,
    Suspects,
    Undecided,
    Verdict,
)
from whyhang.schemas.words import ProcessKind

PACKAGES = "/opt/conda/lib/python3.11/site-packages/"
MODULE = Frame("<module>", "/workspace/train.py", "train.py", 345)
TRAIN = Frame("train", "/workspace/train.py", "train.py", 287)
FETCH = Frame("train", "/workspace/train.py", "train.py", 283)
REDUCE = Frame("all_reduce", PACKAGES + "torch/distributed/distributed_c10d.py",
               "torch/distributed/distributed_c10d.py", 2450)  # fmt: skip
WAIT = Frame(
    "c10d::Work::wait", "/opt/libtorch_cpu.so", "libtorch_cpu.so", 0, "/opt/libtorch_cpu.so"
)
NEXT = Frame("_MultiProcessingDataLoaderIter._next_data",
             PACKAGES + "torch/utils/data/dataloader.py",
             "torch/utils/data/dataloader.py", 1505)  # fmt: skip
QUEUE = Frame("Queue.get", "/opt/conda/lib/python3.11/multiprocessing/queues.py",
              "multiprocessing/queues.py", 113)  # fmt: skip
WORKER = Frame("_worker_loop", PACKAGES + "torch/utils/data/_utils/worker.py",
               "torch/utils/data/_utils/worker.py", 309)  # fmt: skip
READ = Frame("read_shard", "/workspace/data.py", "/workspace/data.py", 88)
PIN = Frame("_pin_memory_loop", PACKAGES + "torch/utils/data/_utils/pin_memory.py",
            "torch/utils/data/_utils/pin_memory.py", 52)  # fmt: skip
AT = "2026-06-08T03:48:15.107774+00:00"


def thread(name: str | None, frames: Iterable[Frame]) -> Thread:
    """A thread whose frames are given outermost first."""
    return Thread(name=name, stack=Stack(tuple(frames)[::-1]))


def process(
    rank: int | None,
    *threads: Thread,
    node: str = "gpu31",
    kind: ProcessKind = "trainer",
    state: str = "S",
    wchan: str | None = None,
    missing: str | None = None,
) -> Process:
    """A process of a rank; with ``missing`` its stacks could not be read."""
    return Process(
        pid=4000 + (rank or 0),
        node=node,
        kind=kind,
        rank=rank,
        state=state,
        wchan=wchan,
        threads=threads if missing is None else Missing(missing),
    )


def incident(processes: Iterable[Process], nodes: tuple[Node, ...], world: int) -> Incident:
    """An incident of one sample."""
    snapshot = Snapshot(index=1, at=AT, monotonic_seconds=12.0, processes=tuple(processes))
    return Incident(
        print_id="1780890495107774003",
        job_id="jo-1",
        job_name="pretrain",
        taken_at=AT,
        finished_at="2026-06-08T05:49:05+02:00",
        trigger="stall",
        world_size=world,
        nodes=nodes,
        samples=(snapshot,),
        progress=Progress(
            state="stalled",
            preset="megatron",
            step=1200,
            total=5000,
            stalled_seconds=640.0,
            threshold_seconds=310.0,
            median_interval_seconds=31.0,
            phase="train",
            last_line=" iteration     1200/    5000 | lm loss: 1.28E+00 |",
            per_rank_step={rank: 1199 if rank == 3 else 1200 for rank in range(4)},
        ),
        sources={
            "stacks": Source(ok=True),
            "nccl_ras": Source(ok=False, reason="NCCL 2.21.5 has no RAS (needs 2.24)"),
        },
        whyhang="0.1.0",
    )


def diagnose(seen: Incident, verdict: Verdict, groups: tuple[Group, ...]) -> Diagnosis:
    """The diagnosis with the merged stacks."""
    return Diagnosis(incident=seen, verdict=verdict, tree=build_tree(seen), groups=groups)


def clause(
    text: str, value: Truth, line: int = 12, *, yes: str = "", no: str = "", unknown: str = ""
) -> Evidence:
    """A clause of evidence that stands in ``hang.yaml``."""
    return Evidence(
        text=text,
        value=value,
        span=Span(file="hang.yaml", line=line, column=7),
        yes=RankSet.parse(yes),
        no=RankSet.parse(no),
        unknown=RankSet.parse(unknown),
    )


def local_dataloader() -> Diagnosis:
    """Eight ranks on one node: rank 3 waits for a worker that reads a file, the rest for rank 3."""
    waiting = thread("MainThread", (MODULE, TRAIN, REDUCE, WAIT))
    pinning = thread("Thread-1 (_pin_memory_loop)", (PIN,))
    fetching = thread("MainThread", (MODULE, FETCH, NEXT, QUEUE))
    reading = thread("MainThread", (MODULE, FETCH, WORKER, READ))
    idle = thread("MainThread", (MODULE, FETCH, WORKER, QUEUE))
    processes = [process(None, thread("MainThread", (MODULE,)), kind="launcher")]
    for rank in range(8):
        main = fetching if rank == 3 else waiting
        worker = reading if rank == 3 else idle
        processes.append(process(rank, main, pinning, state="S", wchan="poll_schedule_timeout"))
        state, wchan = ("D", "nfs_wait_bit_killable") if rank == 3 else ("S", "pipe_read")
        processes.append(process(rank, worker, kind="dataloader", state=state, wchan=wchan))
    evidence = Evidence(
        text="majority waiting and some dataloader stuck",
        value=Truth.TRUE,
        children=(
            clause("most ranks: waiting", Truth.TRUE, yes="0-2/4-7", no="3"),
            clause('any dataloader: state == "D"', Truth.TRUE, 13, yes="3"),
            Evidence(text="ras.lost", value=Truth.UNKNOWN, missing=("nccl_ras: no RAS",)),
        ),
    )
    verdict = Verdict(
        verdict="local_hang",
        category="dataloader",
        confidence="high",
        headline="Local hang: rank 3 (gpu31) is waiting for data: "
        "read_shard /workspace/data.py:88; 7 ranks wait for it",
        rule="pytorch/dataloader-stuck",
        summary="A dataloader worker sleeps in a file read.",
        print_id="1780890495107774003",
        job_id="jo-1",
        suspects=Suspects(
            ranks=RankSet((3,)),
            nodes=("gpu31",),
            groups=("pp stage 1",),
            positions=(
                SuspectPosition(
                    frame="read_shard /workspace/data.py:88",
                    kind="dataloader",
                    ranks=RankSet((3,)),
                ),
            ),
        ),
        evidence=evidence,
        also=("pytorch/local-hang",),
        suppressed=(
            Suppression(id="idle-workers", summary="idle compile workers", evidence=evidence),
        ),
        undecided=(Undecided(rule="nccl/desync", because=("nccl_ras: no RAS",)),),
        next_steps=("Look at the mount of /workspace on gpu31.", "Restart rank 3's node."),
        rules_digest="sha256:0123456789abcdef0123456789abcdef",
        whyhang="0.1.0",
    )
    groups = (
        Group(
            kind="trainer",
            ranks=(3,),
            position="train train.py:283",
            status="running",
            state="S",
            wchan="poll_schedule_timeout",
            role="suspect",
        ),
        Group(
            kind="trainer",
            ranks=(0, 1, 2, 4, 5, 6, 7),
            position="all_reduce torch/distributed/distributed_c10d.py:2450",
            status="running",
            state="S",
            wchan="poll_schedule_timeout",
            role="waits",
        ),
    )
    seen = incident(processes, (Node(name="gpu31", ranks=RankSet(range(8))),), 8)
    return diagnose(seen, verdict, groups)


def global_hang() -> Diagnosis:
    """All of eight ranks in the same collective; some were dumped natively, some were not."""
    processes = [
        process(rank, thread("MainThread", (MODULE, TRAIN, REDUCE, *((WAIT,) if rank < 4 else ()))))
        for rank in range(8)
    ]
    verdict = Verdict(
        verdict="global_hang",
        category="collective_wait",
        confidence="medium",
        headline="Global hang: all 8 ranks are in a collective: all_reduce",
        rule="pytorch/global-hang",
        evidence=clause("all ranks: waiting", Truth.TRUE, yes="0-7"),
        lowered=("NCCL RAS was not read",),
    )
    groups = (
        Group(
            kind="trainer",
            ranks=tuple(range(8)),
            position="all_reduce",
            status="running",
            state="S",
        ),
    )
    nodes = (Node(name="gpu31", ranks=RankSet(range(8))),)
    return diagnose(incident(processes, nodes, 8), verdict, groups)


def disk_sleep() -> Diagnosis:
    """Of 64 ranks on eight nodes one node sleeps in the kernel and another one was not read."""
    processes = []
    for rank in range(56):
        node = f"gpu{rank // 8:02}"
        if 40 <= rank < 48:
            main = thread("MainThread", (MODULE, FETCH, READ))
            processes.append(
                process(rank, main, node=node, state="D", wchan="folio_wait_bit_common")
            )
        else:
            processes.append(
                process(rank, thread("MainThread", (MODULE, TRAIN, REDUCE)), node=node)
            )
    nodes = tuple(
        Node(
            name=f"gpu{number:02}",
            ranks=RankSet(range(8 * number, 8 * number + 8)),
            status="missing" if number == 7 else "ok",
            reason="no answer in 60 s" if number == 7 else None,
        )
        for number in range(8)
    )
    suspects = RankSet(range(40, 48))
    verdict = Verdict(
        verdict="local_hang",
        category="disk_io",
        confidence="medium",
        headline="Local hang: ranks 40-47 (gpu05) are asleep in storage that does not answer",
        rule="pytorch/disk-sleep",
        suspects=Suspects(
            ranks=suspects,
            nodes=("gpu05",),
            positions=(
                SuspectPosition(
                    frame="read_shard /workspace/data.py:88", kind="trainer", ranks=suspects
                ),
            ),
        ),
        evidence=clause('some ranks: state == "D"', Truth.TRUE, yes="40-47", unknown="56-63"),
        not_seen=(NotSeen(ranks=RankSet(range(56, 64)), reason="gpu07 gave no answer in 60 s"),),
        lowered=("8 of 64 ranks were not read",),
    )
    groups = (
        Group(kind="trainer", ranks=tuple(suspects), position="read_shard /workspace/data.py:88",
              status="uninterruptible", state="D", wchan="folio_wait_bit_common", role="suspect"),
        Group(kind="trainer", ranks=(*range(40), *range(48, 56)), position="all_reduce",
              status="running", state="S"),
        Group(kind="trainer", ranks=tuple(range(56, 64)), position=None, status="unknown"),
    )  # fmt: skip
    return diagnose(incident(processes, nodes, 64), verdict, groups)


def nasty_names() -> Diagnosis:
    """Names that try to break every format."""
    evil = "<script>alert(1)</script>|`x`;\n@\x1b[31m\u202e\ud800"
    frames = (
        Frame("模型.训练🚀", "/data/a@b|c;d/e.py", "a@b|c;d/e.py", 7),
        Frame(evil, "/tmp/x y.py", None, 0),
        Frame("", None, None, 0),
        Frame("memcpy@GLIBC_2.2", "/lib/libc.so.6", "libc.so.6", 0, "/lib/libc.so.6"),
    )
    processes = [
        process(0, thread(evil, frames), thread(None, frames[:1])),
        process(1, thread("", ()), missing=None),
        process(2, missing="py-spy: permission denied | `sudo`"),
    ]
    verdict = Verdict(
        verdict="inconclusive",
        category="other",
        confidence="low",
        headline=f"__init__ of {evil} # *hangs*",
        evidence=clause(f"any: name == '{evil}'", Truth.UNKNOWN, unknown="0-2"),
        next_steps=(evil,),
        not_seen=(NotSeen(ranks=RankSet((2,)), reason=evil),),
    )
    groups = (Group(kind="trainer", ranks=(0,), position=evil, status="running", wchan="a|b"),)
    nodes = (Node(name="gpu|31<b>", ranks=RankSet(range(3))),)
    return diagnose(incident(processes, nodes, 3), verdict, groups)


def failed_gpu() -> Diagnosis:
    """Rank 1's GPU failed on a node that is short of shared memory; two sources disagree."""
    main = thread("MainThread", (MODULE, TRAIN, REDUCE))
    processes = [replace(process(rank, main), gpu_index=rank) for rank in range(2)]
    seen = incident(processes, (Node(name="gpu31", ranks=RankSet(range(2))),), 2)
    told = NodeFacts(
        node="gpu31",
        gpus=(
            GpuFacts(index=0, utilization_percent=100.0, power_watts=402.1),
            GpuFacts(index=1, fault="GPU is lost"),
        ),
        memory=MemoryFacts(total_bytes=512 << 30, available_bytes=300 << 30),
        shm=ShmFacts(total_bytes=64 << 30, free_bytes=1288490188),
        pressure={"io": PressureFacts(full_avg10=45.4), "cpu": PressureFacts(some_avg10=3.0)},
        infiniband=(
            InfinibandFacts(
                device="mlx5_0",
                port=1,
                state="ACTIVE",
                counters={"symbol_error": 112, "port_rcv_data": 9, "link_downed": 1},
            ),
        ),
        tcp=(TcpFacts(pid=4001, peer="10.0.0.2:30000", retransmits=9),),
    )
    ports = (replace(told.infiniband[0], counters={"symbol_error": 100, "link_downed": 1}),)  # type: ignore[index]
    first = replace(seen.samples[0], index=0, facts={"gpu31": replace(told, infiniband=ports)})
    last = replace(seen.samples[0], facts={"gpu31": told})
    verdict = Verdict(
        verdict="local_hang",
        category="gpu_device",
        confidence="medium",
        headline="Local hang: the driver reports a fault of the GPU of rank 1; the others wait",
        rule="pytorch/failed-gpu",
        suspects=Suspects(ranks=RankSet((1,)), nodes=("gpu31",)),
        next_steps=("Read what the driver knows of it on gpu31: `nvidia-smi -q -i 1`",),
    )
    made = diagnose(replace(seen, samples=(first, last)), verdict, ())
    return replace(
        made,
        contradictions=("the log says that rank 1 ended, but a process of that rank runs",),
    )


DIAGNOSES: dict[str, Callable[[], Diagnosis]] = {
    "local_dataloader": local_dataloader,
    "global_hang": global_hang,
    "disk_sleep": disk_sleep,
    "failed_gpu": failed_gpu,
    "nasty_names": nasty_names,
}


@pytest.fixture(params=sorted(DIAGNOSES))
def diagnosis(request: pytest.FixtureRequest) -> Diagnosis:
    """Each of the hand-built diagnoses."""
    return DIAGNOSES[str(request.param)]()


@pytest.fixture
def local() -> Diagnosis:
    """Rank 3 of eight hangs in its dataloader."""
    return local_dataloader()


@pytest.fixture
def disk() -> Diagnosis:
    """One node of eight sleeps in the kernel, one was not read."""
    return disk_sleep()


@pytest.fixture
def nasty() -> Diagnosis:
    """Names that try to break every format."""
    return nasty_names()


class _TextFile(SingleFileSnapshotExtension):
    """A golden file with the suffix that its readers expect, so that a review shows it as such."""

    _write_mode = WriteMode.TEXT


class _Markdown(_TextFile):
    file_extension = "md"


class _Svg(_TextFile):
    file_extension = "svg"


class _Text(_TextFile):
    file_extension = "txt"


class _Folded(_TextFile):
    file_extension = "folded"


@pytest.fixture
def md_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """A golden Markdown page."""
    return snapshot.use_extension(_Markdown)


@pytest.fixture
def svg_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """A golden picture."""
    return snapshot.use_extension(_Svg)


@pytest.fixture
def txt_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """A golden text."""
    return snapshot.use_extension(_Text)


@pytest.fixture
def folded_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Golden folded stacks."""
    return snapshot.use_extension(_Folded)
