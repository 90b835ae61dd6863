"""Lines of PyTorch, NCCL, HCCL and the kernel that tell of a fault."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.log_events import find_events
from whyhang.collectors.log_gate import LogGate
from whyhang.collectors.log_patterns import KINDS, PATTERNS, match_line
from whyhang.rules.fields import EVENT_KINDS
from whyhang.schemas.rankset import RankSet

TORCH = "[rank{0}]:[E502 10:00:01.000000001 ProcessGroupNCCL.cpp:99] [PG ID 1 PG GUID 1 Rank {0}] "
NCCL = "gpu07:411:502 [3] net/some_file.cc:77 NCCL WARN "
NCCL_ERRORS = (
    "ncclSystemError", "ncclInternalError", "ncclRemoteError", "ncclUnhandledCudaError",
    "ncclInvalidUsage", "ncclInvalidArgument",
)  # fmt: skip
SYSLOG = "[Mon May  4 10:00:00 2026] "

# Line, then the events: kind, ranks, node, device.
CASES: dict[str, tuple[str, list[tuple[str, str, str | None, str | None]]]] = {
    "watchdog": (
        "[rank5]:[E502 10:00:01.1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1001 ms",
        [("watchdog_timeout", "5", None, None)],
    ),
    "watchdog of HCCL": (
        "[E ProcessGroupHCCL.cpp:6] [Rank 2] Watchdog caught collective operation timeout: "
        "WorkHCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1001 ms",
        [("watchdog_timeout", "2", None, None)],
    ),
    "watchdog stuck": (
        TORCH.format(4) + "ProcessGroupNCCL's watchdog got stuck for 480 seconds without progress",
        [("watchdog_stuck", "4", None, None)],
    ),
    "status, new wording": (
        TORCH.format(3) + " failure detected by watchdog at work sequence id: 17 PG status: last "
        "enqueued work: 20, last completed work: 16",
        [("watchdog_status", "3", None, None)],
    ),
    "status, old wording": (
        "[rank1]:[E1 10:00:01.1 ProcessGroupNCCL.cpp:1] [PG 1 Rank 0] Exception (either an error "
        "or timeout) detected by watchdog at work: 17, last enqueued NCCL work: 18",
        [("watchdog_status", "1", None, None)],
    ),
    "dump signal": (
        TORCH.format(2) + "Received a dump signal due to a collective timeout from  rank 6 and we "
        "will try our best to dump the debug info. Last enqueued NCCL work: 9",
        [("dump_signal", "2", None, None)],
    ),
    "first group": (
        TORCH.format(2) + "First PG on this rank to signal dumping.",
        [("dump_signal", "2", None, None)],
    ),
    "no flight recorder": (
        TORCH.format(0) + "Stack trace of the failed collective not found, potentially because "
        "FlightRecorder is disabled.",
        [("flight_recorder_off", "", None, None)],
    ),
    "abort": (
        TORCH.format(6) + "To avoid data inconsistency, we are taking the entire process down.",
        [("process_abort", "6", None, None)],
    ),
    "NCCL error": (
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:13, unhandled system "
        "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1",
        [("nccl_error", "1", None, None)],
    ),
    "NCCL error by name": (
        "ncclRemoteError: A call failed possibly due to a network error or a process exiting",
        [("nccl_error", "", None, None)],
    ),
    "who did not give the id": (
        "[rank6]: RuntimeError: [6] is setting up NCCL communicator and retrieving ncclUniqueId "
        "from [0] via c10d key-value store by key '0', but got error: Socket Timeout",
        [("store_timeout", "0", None, None)],
    ),
    "store keys": (
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//0",
        [("store_timeout", "", None, None)],
    ),
    "monitored barrier": (
        "[Rank 0]: Ranks 1, 2, 5 failed to pass monitoredBarrier in 60000 ms",
        [("barrier_missed", "1-2/5", None, None)],
    ),
    "clients": (
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
        "7/8 clients joined.",
        [("store_absent", "", None, None)],
    ),
    "store barrier": (
        "I0510 07:28:04.4 139 distributed_c10d.py:337] Waiting in store based barrier to "
        "initialize process group for rank: 2, key: store_based_barrier_key:2 (world_size=8, "
        "worker_count=7, timeout=0:30:00)",
        [("store_waiting", "2", None, None)],
    ),
    "ready ranks": (
        "82% 1025/1252 [35:04<13:48]WARNING: One or more tensors were submitted to be reduced by "
        "a subset of ranks. Stalled ops: allreduce.w [ready ranks: 1, 7, 0], allreduce.b [ready "
        "ranks: 1]",
        [("op_submitted", "0-1/7", None, None)],
    ),
    "missing ranks": (
        "WARNING: Stalled ops: allreduce.w [missing ranks: 2, 3]",
        [("op_not_submitted", "2-3", None, None)],
    ),
    "store gone": (
        "[rank9]:[W1 01:01:05.3 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed on "
        "SocketImpl(fd=9, addr=[a.example]:4, remote=[gpu00.example]:29500): Failed to recv",
        [("store_lost", "", "gpu00.example", None)],
    ),
    "worker": (
        "[rank7]: RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly",
        [("worker_died", "7", None, None)],
    ),
    "dataloader timeout": (
        "[rank7]: RuntimeError: DataLoader timed out after 120 seconds",
        [("dataloader_timeout", "7", None, None)],
    ),
    "disk full": (
        "[rank3]: OSError: [Errno 28] No space left on device: '/ckpt/step'",
        [("no_space", "3", None, None)],
    ),
    "completion with retries exceeded": (
        NCCL + "NET/IB : Got completion from peer 10.0.0.9<33057> with status=12 opcode=0 len=0 "
        "vendor err 129 (Send) localGid ::1 hca mlx5_3",
        [("ib_error", "", "gpu07", "mlx5_3"), ("peer_lost", "", "10.0.0.9", None)],
    ),
    "completion, named status": (
        NCCL + "NET/IB: Got completion from peer gpu09<33057> with status=IBV_WC_RNR_RETRY_EXC_ERR"
        "(13) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_0",
        [("ib_error", "", "gpu07", "mlx5_0"), ("peer_lost", "", "gpu09", None)],
    ),
    "completion, old wording, flushed": (
        NCCL + "NET/IB : Got completion from peer gpu09<37948> with error 5, opcode 2, len 1",
        [("ib_error", "", "gpu07", None)],
    ),
    "port error": (
        NCCL + "NET/IB : mlx5_2:1 Got non-fatal async event: port error(10)",
        [("ib_port_error", "", "gpu07", "mlx5_2")],
    ),
    "fatal event": (
        NCCL + "NET/IB : mlx5_2:1 async fatal event on QP (0x7f00): QP access flags error",
        [("ib_port_error", "", "gpu07", "mlx5_2")],
    ),
    "closed by peer": (
        "[2026-03-04 11:22:07] " + NCCL + "socketProgress: Connection closed by remote peer "
        "gpu02<42830>",
        [("peer_lost", "", "gpu02", None)],
    ),
    "out of memory for srun": (
        "srun: error: gpu07: task 3: Out Of Memory",
        [("oom_kill", "", "gpu07", None)],
    ),
    "call failed": (
        NCCL + "Net : Call to recv from 10.2.8.2<58355> failed : Broken pipe",
        [("peer_lost", "", "10.2.8.2", None)],
    ),
    "connect failed": (
        NCCL + "socketStartConnect: connect to 10.0.0.9<43123> failed : Connection timed out",
        [("connect_failed", "", "10.0.0.9", None)],
    ),
    "connect timed out": (
        NCCL + "Call to connect timeout : Connection refused",
        [("connect_failed", "", None, None)],
    ),
    "proxy": (
        NCCL + "[Proxy Service 9] Failed to execute operation Connect from rank 9, retcode 6",
        [("proxy_failed", "", "gpu07", "3")],
    ),
    "cuda": (NCCL + "Cuda failure 'unknown error'", [("cuda_error", "", "gpu07", "3")]),
    "hip": (NCCL + "HIP failure 'unknown error'", [("cuda_error", "", "gpu07", "3")]),
    "dead for RAS": (
        "gpu07:984:1290 [4] NCCL INFO RAS declaring peer 10.0.4.1<40005> as DEAD; hash 0x1",
        [("ras_dead", "", "10.0.4.1", None)],
    ),
    "silent for RAS": (
        "gpu07:984:1290 [4] NCCL INFO RAS keep-alive timeout warning (5s) on socket connection "
        "with 10.0.4.1<40005>",
        [("ras_silent", "", "10.0.4.1", None)],
    ),
    "any other warning": (NCCL + "Something else", [("nccl_warn", "", "gpu07", "3")]),
    "hccl": (
        "[rank1]: EI0002: The wait execution of the Notify register times out.",
        [("hccl_stuck", "1", None, None)],
    ),
    "hccl api": (
        "[rank1]: RuntimeError: ... [ERROR] ERR02200 DIST call hccl api failed.",
        [("hccl_error", "1", None, None)],
    ),
    "xid": (
        SYSLOG + "NVRM: Xid (PCI:0000:44:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen",
        [("xid", "", None, "0000:44:00")],
    ),
    "off the bus": (
        "NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.",
        [("xid", "", None, "0000:b3:00.0")],
    ),
    "off the bus, in lines": (
        "NVRM: fallen off the bus and is not responding to commands.",
        [("xid", "", None, None)],
    ),
    "amd job": (
        SYSLOG + "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=160",
        [("gpu_reset", "", None, None)],
    ),
    "amd reset": (
        "amdgpu 0000:0a:00.0: amdgpu: GPU reset begin!",
        [("gpu_reset", "", None, "0000:0a:00.0")],
    ),
    "amd runtime": (
        "HW Exception by GPU node-9 (Agent handle: 0x631351bb5a20) reason :GPU Hang",
        [("gpu_reset", "", None, None)],
    ),
    "switch": (
        "nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Data {0x1}",
        [("sxid", "", None, "0000:84:00.0")],
    ),
    "hung task": (
        SYSLOG + "INFO: task pt_data_worker:26120 blocked for more than 122 seconds.",
        [("hung_task", "", None, None)],
    ),
    "oom": (
        "Memory cgroup out of memory: Killed process 3957 (pt_data_worker) total-vm:1kB",
        [("oom_kill", "", None, None)],
    ),
    "oom of slurm": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=11.0.",
        [("oom_kill", "", None, None)],
    ),
    "nfs": (
        "nfs: server 10.0.0.5 not responding, still trying",
        [("storage_lost", "", None, "10.0.0.5")],
    ),
    "lustre": (
        "Lustre: 2:0:(client.c:2:ptlrpc()) @@@ Request sent has timed out for slow reply",
        [("storage_lost", "", None, None)],
    ),
    "link": (
        "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN",
        [("link_down", "", None, "mlx5_5")],
    ),
    "soft lockup": (
        "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python:4711]",
        [("soft_lockup", "", None, None)],
    ),
    "segfault": (
        "RAS[4711]: segfault at 48 ip 00007f3cb8320057 sp 00007f3cb0000000 error 4 in libnccl.so",
        [("segfault", "", None, None)],
    ),
    "disk": ("blk_update_request: I/O error, dev sdb, sector 8", [("io_error", "", None, "sdb")]),
}  # fmt: skip
# Kernel lines come from the kernel; NCCL's name for an error follows the line with the error.
NOT_GATED = frozenset(
    (
        "NCCL error by name",
        "hung task",
        "oom",
        "nfs",
        "lustre",
        "link",
        "soft lockup",
        "segfault",
        "disk",
    )
)


@pytest.mark.parametrize("name", CASES)
def test_each_line_gives_its_events(name: str) -> None:
    """Kind, the ranks and the node that the line accuses, and the device."""
    line, expected = CASES[name]
    found = [(e.kind, str(e.ranks), e.node, e.device) for e in find_events([line])]
    assert found == expected


@pytest.mark.parametrize("name", sorted(CASES.keys() - NOT_GATED))
def test_the_gate_lets_them_through(name: str) -> None:
    """Among thousands of ordinary lines of any face, the line is found and little else."""
    line, _ = CASES[name]
    for ordinary in (
        "iteration      120/ 5000 | elapsed time per iteration (ms): 512.5 | lm loss: 9.1E+00 |",
        "2026-05-01 10:00:00,123 INFO trainer.py:212 - Epoch 3 step 7/100 loss=2.1",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ abcdefghijklmnopqrstuvwxyz ()\":'_{}[]%0123456789",
    ):
        block = (ordinary + "\n").encode() * 800 + line.encode() + b"\n" + ordinary.encode() * 3
        gate = LogGate()
        found = [*gate.feed(block), *gate.finish()]
        assert line.encode() in found
        assert len(found) < 5


@pytest.mark.parametrize(
    "line",
    [
        "step 12 loss 0.3",
        "NCCL version 2.21.5+cuda12.4",
        "gpu07:984:1257 [4] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 4 - Init COMPLETE",
        "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link ACTIVE",
        "watchdog enabled, timeout 600 s",
        "no space characters are left in device names",
    ],
)
def test_ordinary_lines_are_no_events(line: str) -> None:
    """Versions, set-up and recovery are not faults."""
    assert find_events([line]) == ()


def test_the_node_of_the_log_stands_in() -> None:
    """Where a line names no node, it is the one where the log was written."""
    (event,) = find_events([CASES["hung task"][0]], node="gpu31")
    assert (event.node, event.source) == ("gpu31", "kernel")


def test_a_flood_of_one_warning_is_one_event() -> None:
    """The same of the same rank, node and device is said once; others still get in."""
    lines = [CASES["any other warning"][0]] * 5000 + [CASES["xid"][0]]
    assert [event.kind for event in find_events(lines)] == ["nccl_warn", "xid"]


def test_every_kind_can_be_asked_by_rules() -> None:
    """A kind without a field would be evidence that no rule can use."""
    assert set(KINDS) <= set(EVENT_KINDS)
    assert {"rank_failed", "traceback"} <= set(EVENT_KINDS)
    assert {kind for _, events in CASES.values() for kind, *_ in events} == set(KINDS)


def test_each_literal_stands_in_its_lines() -> None:
    """A literal that the pattern's own lines do not hold would switch the pattern off."""
    used = {
        pattern.literal
        for line, _ in CASES.values()
        for pattern in PATTERNS
        if pattern.literal in line and pattern.regex.search(line)
    }
    assert {pattern.literal for pattern in PATTERNS} - used <= {
        "store based barrier", "quota exceeded", "oom-kill:", "Proxy Call to rank", "HCCL",
        "killed by the OOM killer", "slurmstepd: error: Detected",
        *(f"{word}: " for word in NCCL_ERRORS),
    }  # fmt: skip


@pytest.mark.parametrize("word", NCCL_ERRORS)
def test_each_error_of_nccl(word: str) -> None:
    """PyTorch explains the error by its name, behind the prefix of the rank."""
    (event,) = find_events([f"[rank3]: {word}: Last error:"])
    assert (event.kind, event.ranks) == ("nccl_error", RankSet([3]))


def test_a_traceback_comes_with_what_follows_it() -> None:
    """The gate gives the frames and the exception behind a traceback, also over blocks' borders."""
    text = "".join(f"step {n} loss 2.0\n" for n in range(500))
    fault = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: no\n'
    gate = LogGate()
    data = (text + fault + text).encode()
    found: list[bytes] = []
    for start in range(0, len(data), 1000):
        found += gate.feed(data[start : start + 1000])
    found += gate.finish()
    (event,) = find_events(line.decode() for line in found)
    assert (event.kind, event.line) == ("traceback", "ValueError: no")


@pytest.mark.parametrize("size", [7, 60, 1000, 100_000])
def test_names_behind_their_list_pass_the_gate(size: int) -> None:
    """The gate gives the names of the processes that did not come to a barrier, one a line."""
    text = "".join(f"step {n} loss 2.0\n" for n in range(500))
    names = "".join(f"/job:jax_worker/replica:0/task:{n}\n" for n in (3, 0))
    data = f"{text}Some timed out task names:\n{names}{text}".encode()
    gate = LogGate()
    found: list[bytes] = []
    for start in range(0, len(data), size):
        found += gate.feed(data[start : start + size])
    found += gate.finish()
    assert [e.ranks for e in find_events(line.decode() for line in found)] == [
        RankSet([3]),
        RankSet([0]),
    ]


def test_a_list_of_ranks_comes_with_its_lines() -> None:
    """What Horovod writes behind the opening line is let through, also over blocks' borders."""
    text = "".join(f"step {n} loss 2.0\n" for n in range(500))
    listed = "Stalled ranks:\n2: [grad.a, grad.b]\n5!: [grad.a]\n"
    data = (text + listed + text * 4).encode()
    for size in (len(data), 700):
        gate = LogGate()
        found = [
            line for at in range(0, len(data), size) for line in gate.feed(data[at : at + size])
        ]
        (event,) = find_events(_text(found))
        assert (event.kind, event.ranks) == ("op_not_submitted", RankSet((2, 5)))
        assert sum(map(len, found)) < 20_000


ORDINARY = st.sampled_from(
    (
        b"step 12 loss 0.3",
        b"backend nccl",
        b"a NCCL INFO NET/IB : Using [0]mlx5_0:1/IB",
        b"HCCL ok",
        b"",
        b"100%|##| 2/2 [00:01<00:00]\r  0%| | 0/2 [00:00<?]",
        b"mlx5_core up",
        b"Call to order",
    )
)
FAULTY = st.sampled_from([line.encode() for line, _ in CASES.values()])


@given(st.lists(ORDINARY | FAULTY | st.binary(max_size=30), max_size=60), st.integers(1, 3000))
def test_the_gate_loses_no_fault(lines: list[bytes], size: int) -> None:
    """In blocks of any size the gate gives what all patterns on all lines give, and no chatter."""
    data = b"\n".join(lines)
    gate = LogGate()
    found = [
        line for at in range(0, len(data), size) for line in gate.feed(data[at : at + size])
    ] + list(gate.finish())
    every = re.split(rb"[\r\n]", data)
    told = [line for line in every if list(match_line(line.decode("utf-8", "replace"), None))]
    assert [line for line in found if line in told] == told
    assert find_events(_text(found)) == find_events(_text(every))


def _text(lines: Iterable[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines]


@given(st.lists(st.binary(max_size=50) | st.just(b"Traceback (most recent call last)")))
def test_the_gate_takes_any_bytes(blocks: list[bytes]) -> None:
    """Foreign bytes never raise."""
    gate = LogGate()
    find_events(_text([*(line for block in blocks for line in gate.feed(block)), *gate.finish()]))


@given(st.text(max_size=300))
def test_any_line_may_come(line: str) -> None:
    """Foreign text never raises."""
    list(match_line(line, None))


def test_awkward_lines_take_no_time() -> None:
    """No pattern is quadratic on what is made to look like its beginning."""
    started = time.process_time()
    for pattern in PATTERNS:
        for filler in (" ", "a", ":", "[", "1", ", ", "Rank 1", "(", "NET/IB : "):
            list(match_line(pattern.literal + filler * 1500, 3))
            list(match_line(filler * 700 + pattern.literal + filler * 700, None))
    assert time.process_time() - started < 5.0
