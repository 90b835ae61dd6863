"""Faults that log lines tell of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.log_events import find_events
from whyhang.schemas.rankset import RankSet

NOTE = (
    "E1129 1 torch/elastic/multiprocessing/api.py:9] failed (exitcode: {}) local_rank: {} (pid: 11)"
)
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:1] [Rank {}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600065 milliseconds"
)


def entry(number: int, rank: int, code: str) -> list[str]:
    return [
        f"[{number}]:",
        "  time      : 2026-01-02_03:04:05",
        "  host      : gpu31",
        f"  rank      : {rank} (local_rank: {rank % 8})",
        f"  exitcode  : {code}",
        "  error_file: <N/A>",
    ]


def report(rank: int, code: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/venv/bin/torchrun", line 8, in <module>',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 54,
        "train.py FAILED",
        "-" * 54,
        "Failures:",
        *entry(1, 0, "-15 (pid: 10)  (SIGTERM)"),
        *entry(2, 9, "1 (pid: 12)"),
        "-" * 54,
        "Root Cause (first observed failure):",
        *entry(0, rank, code),
        "=" * 54,
    ]


def test_root_cause_of_the_failure_report() -> None:
    """Of torchrun's report only the first failure counts: its rank, node, time and exit code."""
    (event,) = find_events([NOTE.format(-9, 3), *report(11, "-9 (pid: 11)  (SIGKILL)")])
    assert event.kind == "rank_failed"
    assert (event.ranks, event.exit_code, event.node) == (RankSet([11]), -9, "gpu31")
    assert event.at == "2026-01-02_03:04:05"


def test_reports_of_two_nodes_in_one_log() -> None:
    """What srun writes of several nodes alternates; each report has the lines of its own node."""
    one, other = report(9, "1 (pid: 12)"), report(17, "-9 (pid: 44)  (SIGKILL)")
    lines = []
    for first, second in zip(one, other, strict=True):
        lines += [f"1: {first}", f"2: {second}"]
    found = find_events([*lines, "0: Received 15 death signal, shutting down workers"])
    assert [(event.ranks, event.exit_code) for event in found] == [
        (RankSet([9]), 1),
        (RankSet([17]), -9),
    ]


def test_ranks_ended_by_the_agent_are_no_events() -> None:
    """SIGTERM from the launcher is a consequence."""
    assert find_events([NOTE.format(-15, 1)]) == ()


def test_note_without_report() -> None:
    """Where no report follows, the agent's note stands, its local rank made global."""
    (event,) = find_events([NOTE.format(-9, 2)], first_rank=8)
    assert (event.ranks, event.exit_code) == (RankSet([10]), -9)
    (event,) = find_events([NOTE.format(-9, 2)], first_rank=None)
    assert event.ranks == RankSet()


def test_text_behind_the_report_is_read_again() -> None:
    """The report ends with its closing rule."""
    events = find_events([*report(1, "1 (pid: 11)"), WATCHDOG.format(3)])
    assert [event.kind for event in events] == ["rank_failed", "watchdog_timeout"]


def test_watchdog_names_the_global_rank() -> None:
    """The prefix is global, the number in the text counts within the process group."""
    (event,) = find_events(["[rank97]:" + WATCHDOG.format(6)])
    assert (event.kind, event.ranks) == ("watchdog_timeout", RankSet([97]))
    (event,) = find_events([WATCHDOG.format(6)])
    assert event.ranks == RankSet([6])


def test_watchdog_of_one_rank_counts_once() -> None:
    """Several lines of the same rank are one event, those of others are their own."""
    lines = ["[rank1]:" + WATCHDOG.format(1)] * 3 + ["[rank2]:" + WATCHDOG.format(2)]
    assert [event.ranks for event in find_events(lines)] == [RankSet([1]), RankSet([2])]


TASK = "/job:jax_worker/replica:0/task:{}"


def missed(lines: list[str]) -> list[int]:
    """The ranks that the lines say did not come to a barrier."""
    events = [event for event in find_events(lines) if event.kind == "barrier_missed"]
    return [rank for event in events for rank in event.ranks]


def test_xla_names_who_did_not_come_to_a_barrier() -> None:
    """The list behind the error counts, one name a line; the first at the barrier is in no list."""
    first = f"The first task at the barrier: {TASK.format(13)}. Some timed out task names:"
    names = [TASK.format(6), TASK.format(0), "", TASK.format(1)]
    assert missed([first, *names]) == [6, 0, 1]
    assert missed([first, *names[:1], "RPC: /tensorflow.CoordinationService/Barrier", *names]) == [
        6
    ]


def test_xla_names_in_one_line() -> None:
    """Releases that quote the whole error write the breaks as text."""
    told = f"Barrier timed out. Timed out task names:\\n{TASK.format(3)}\\n{TASK.format(0)}\\n"
    assert missed([told]) == [3, 0]


def test_tasks_without_a_barrier_are_absent_nowhere() -> None:
    """While a job starts the service lists who has not connected yet, which is no fault."""
    assert (
        missed(["Waiting for 2/4 tasks to connect.", "Example stragglers:", TASK.format(1)]) == []
    )


def test_horovod_lists_who_did_not_submit() -> None:
    """The ranks below the opening line are missing; of several lists the last one counts."""
    opened = "One or more tensors were submitted by a subset of ranks only. "
    first = [opened, "Stalled ranks:", "1: [grad.b]", "loss 0.5", "3: [not of the list]"]
    last = ["[1,0]<stderr>:Stalled ranks:", "[1,0]<stderr>:2: [grad.a, grad.b]", "6!: [grad.a]"]
    (event,) = find_events([*first, "Stalled ranks:", "and nobody"])
    assert (event.kind, event.ranks) == ("op_not_submitted", RankSet([1]))
    (event,) = find_events([*first, *last, "step 8"])
    assert (event.kind, event.ranks) == ("op_not_submitted", RankSet([2, 6]))
    assert find_events(["Stalled ranks:", "3: a title", "4: [other]"]) == ()


def test_traceback_with_its_exception() -> None:
    """Interleaved tracebacks of two ranks each end in their own exception."""
    lines = [
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/w/train.py", line 8, in <module>',
        "[rank2]: Traceback (most recent call last):",
        "[rank1]: ValueError: bad shape",
        "step 7 goes on",
        "[rank2]: torch.distributed.DistBackendError: NCCL error",
    ]
    found = [(event.kind, event.ranks, event.line) for event in find_events(lines)]
    assert found == [
        ("traceback", RankSet([1]), "ValueError: bad shape"),
        ("traceback", RankSet([2]), "torch.distributed.DistBackendError: NCCL error"),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "ranks"),
    [
        ("Memory cgroup out of memory: Killed process 39 (python)", "oom_kill", ""),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0", "oom_kill", ""),
        (
            "[rank3]: RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed. ",
            "worker_died",
            "3",
        ),
        (
            "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 60000 ms",
            "barrier_missed",
            "1-2",
        ),
        (
            "[rank7]:[E 1] [PG ID 0 Rank 7] ProcessGroupNCCL's watchdog got stuck for 480 seconds",
            "watchdog_stuck",
            "7",
        ),
    ],
)
def test_single_lines(line: str, kind: str, ranks: str) -> None:
    """Faults that one line tells in full."""
    (event,) = find_events([line])
    assert (event.kind, str(event.ranks)) == (kind, ranks)


@pytest.mark.parametrize(
    "line",
    [
        "step 7 loss 2.0",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "ValueError: mentioned without a traceback",
        "rank      : 3 (local_rank: 3)",
    ],
)
def test_other_lines_are_no_events(line: str) -> None:
    """Lines that only look alike are left alone; CUDA's out of memory is no kernel kill."""
    assert find_events([line]) == ()


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from([*report(1, "x"), WATCHDOG, NOTE.format("9" * 30, "9" * 30)]),
        ),
        max_size=40,
    )
)
def test_never_raises(lines: list[str]) -> None:
    """Torn and shuffled lines are survived."""
    assert len(find_events(lines)) <= len(lines)
