"""Pasted stacks: every shape in which py-spy's text goes around, and other tools' texts."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyhang.collectors.text_dump import parse_text_dump
from whyhang.collectors.text_dump_blocks import ProcessBlock
from whyhang.schemas.frame import Frame
from whyhang.schemas.stack import Thread


def sketch(block: ProcessBlock) -> list[str]:
    """A block in short lines: who it is, then its threads with their frames."""
    who = f"pid={block.pid}" + (f" ranks={block.ranks}" if block.ranks else "")
    who += f" node={block.node}" if block.node else ""
    who += f" x{block.count}" if block.count != 1 else ""
    return [who, *map(_thread, block.threads)]


def _thread(thread: Thread) -> str:
    flags = {True: "+", False: "-", None: "?"}
    cut = " …" if thread.stack.truncated else ""
    frames = " < ".join(map(_frame, thread.stack.frames))
    return (
        f"{thread.name}/{thread.tid} {flags[thread.active]}{flags[thread.owns_gil]}{cut}: {frames}"
    )


def _frame(frame: Frame) -> str:
    mark = "!" if frame.is_native else ""
    return f"{mark}{frame.name}@{frame.filename}:{frame.line}"


MAIN = "    step (loop.py:7)\n    <module> (loop.py:9)"
SHAPES: dict[str, tuple[str, list[list[str]]]] = {
    "1 active": (
        'Process 31: python loop.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n'
        f'Thread 31 (active): "MainThread"\n{MAIN}',
        [["pid=31", "MainThread/31 +-: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "2 idle": (
        f'Thread 8 (idle): "MainThread"\n{MAIN}',
        [["pid=None", "MainThread/8 -?: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "3 active+gil": (
        f'Thread 8 (active+gil): "MainThread"\n{MAIN}',
        [["pid=None", "MainThread/8 ++: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "4 hex id, no name, tabs": (
        "Thread 0x7F00AA10 (active)\n\t recv (zmq/sugar.py:3)\n\t run (srv.py:2)",
        [["pid=None", "None/None +-: recv@zmq/sugar.py:3 < run@srv.py:2"]],
    ),
    "5 hex id with name": (
        f'Thread 0x7F00AA10 (idle): "MainThread"\n{MAIN}',
        [["pid=None", "MainThread/None -?: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "6 unnamed threads with and without frames": (
        'Thread 5 (idle)\nThread 6 (active)\n    all_reduce (dist.py:4)\n'
        f'Thread 7 (idle)\nThread 8 (idle): "MainThread"\n{MAIN}',
        [
            [
                "pid=None",
                "None/5 -?: ",
                "None/6 +-: all_reduce@dist.py:4",
                "None/7 -?: ",
                "MainThread/8 -?: step@loop.py:7 < <module>@loop.py:9",
            ]
        ],
    ),
    "7 id removed": (
        f'Thread (idle): "MainThread"\n{MAIN}\nThread: "Feeder"\n    feed (q.py:1)',
        [
            [
                "pid=None",
                "MainThread/None -?: step@loop.py:7 < <module>@loop.py:9",
                "Feeder/None ??: feed@q.py:1",
            ]
        ],
    ),
    "8 awkward names": (
        'Thread 1 (idle): "Thread-1 (_read_thread)"\n    read (a.py:1)\n'
        'Thread 2 (idle): "Pool(train/fn: x)"\n    read (a.py:2)\n'
        'Thread 3 (idle): "my "q" thread"\n    read (a.py:3)\n'
        'Thread 4 (idle): "tok::forward"\n    read (a.py:4)',
        [
            [
                "pid=None",
                "Thread-1 (_read_thread)/1 -?: read@a.py:1",
                "Pool(train/fn: x)/2 -?: read@a.py:2",
                'my "q" thread/3 -?: read@a.py:3',
                "tok::forward/4 -?: read@a.py:4",
            ]
        ],
    ),
    "9 heads merged by hand": (
        'Thread 1 (idle): "Pool-0_0"\nThread 2 (idle): "Pool-0_1"\n    wait (threading.py:1)',
        [
            [
                "pid=None",
                "Pool-0_0/1 -?: wait@threading.py:1",
                "Pool-0_1/2 -?: wait@threading.py:1",
            ]
        ],
    ),
    "10 grouped by rank": (
        "Ranks 0-2:\n    all_reduce (dist.py:4)\n\nRank 3 (waiting):\n    load (data.py:8)\n\n"
        "ranks 4..6 are stuck in:\n    barrier (dist.py:9)\n\nDP7,9: broadcast (dist.py:5)",
        [
            ["pid=None ranks=0-2", "None/None ??: all_reduce@dist.py:4"],
            ["pid=None ranks=3", "None/None ??: load@data.py:8"],
            ["pid=None ranks=4-6", "None/None ??: barrier@dist.py:9"],
            ["pid=None ranks=7/9", "None/None ??: broadcast@dist.py:5"],
        ],
    ),
    "10 counted": (
        "4 in:\n    all_reduce (dist.py:4)\n\n6 processes are in:\n    load (data.py:8)",
        [
            ["pid=None x4", "None/None ??: all_reduce@dist.py:4"],
            ["pid=None x6", "None/None ??: load@data.py:8"],
        ],
    ),
    "10 table": (
        "| Worker | PID | Location |\n|---|---|---|\n| DP0 | 311 | broadcast (dist.py:5) |\n"
        "| DP1 | 312 | wait (sched.py:6) |",
        [
            ["pid=311 ranks=0", "None/None ??: broadcast@dist.py:5"],
            ["pid=312 ranks=1", "None/None ??: wait@sched.py:6"],
        ],
    ),
    "10 table in columns": (
        "Worker   PID    Location\n0        311    broadcast (dist.py:5)\n"
        "1        312    wait (sched.py:6)",
        [
            ["pid=311 ranks=0", "None/None ??: broadcast@dist.py:5"],
            ["pid=312 ranks=1", "None/None ??: wait@sched.py:6"],
        ],
    ),
    "11 native": (
        'Thread 1 (idle): "MainThread"\n    cond_wait (libc.so.6)\n'
        "    gloo::tcp::Buffer::waitRecv (libtorch_cpu.so)\n    barrier (dist.py:9)",
        [
            [
                "pid=None",
                "MainThread/1 -?: !cond_wait@libc.so.6:0 < "
                "!gloo::tcp::Buffer::waitRecv@libtorch_cpu.so:0 < barrier@dist.py:9",
            ]
        ],
    ),
    "12 addresses": (
        'Thread 1 (idle): "MainThread"\n    0x155555277197 (libc.so.6)\n    0x7caaa50b1a9b (?)\n'
        "    barrier (dist.py:9)",
        [["pid=None", "MainThread/1 -?: !?libc.so.6@libc.so.6:0 < !??@?:0 < barrier@dist.py:9"]],
    ),
    "13 native with line": (
        'Thread 1 (idle): "MainThread"\n    poll_impl (selectmodule.c:678)\n'
        "    __gnu::cv::wait (compat-cv.cc:100)\n    poll (selectors.py:4)",
        [
            [
                "pid=None",
                "MainThread/1 -?: !poll_impl@selectmodule.c:678 < "
                "!__gnu::cv::wait@compat-cv.cc:100 < poll@selectors.py:4",
            ]
        ],
    ),
    "14 template names with a line break": (
        'Thread 1 (active): "MainThread"\n'
        "    pybind11::cpp_function::init<run(int (*)(long), bool), std::vector<at::Tensor>, \n"
        "pybind11::arg>::{lambda(pybind11::detail::call&)#1}::_FUN (libtorch_python.so)\n"
        "    backward (graph.py:5)",
        [
            [
                "pid=None",
                "MainThread/1 +-: !pybind11::cpp_function::init<run(int (*)(long), bool), "
                "std::vector<at::Tensor>, pybind11::arg>::{lambda(pybind11::detail::call&)#1}"
                "::_FUN@libtorch_python.so:0 < backward@graph.py:5",
            ]
        ],
    ),
    "15 files in angle brackets": (
        'Thread 1 (idle): "MainThread"\n    <module> (<string>:1)\n'
        "    _run_code (<frozen runpy>:88)",
        [["pid=None", "MainThread/1 -?: <module>@<string>:1 < _run_code@<frozen runpy>:88"]],
    ),
    "16 file redacted": (
        'Thread 1 (idle): "MainThread"\n    backward ()\n    <module> ()',
        [["pid=None", "MainThread/1 -?: backward@None:0 < <module>@None:0"]],
    ),
    "17 functions in angle brackets": (
        'Thread 1 (idle): "MainThread"\n    <lambda> (triton/jit.py:4)\n'
        "    <listcomp> (a.py:5)\n    Model.__call__ (b.py:6)",
        [
            [
                "pid=None",
                "MainThread/1 -?: <lambda>@triton/jit.py:4 < <listcomp>@a.py:5 < "
                "Model.__call__@b.py:6",
            ]
        ],
    ),
    "18 cython without line": (
        'Thread 1 (idle): "MainThread"\n    executor (ray/_raylet.so)\n    loop (w.py:4)',
        [["pid=None", "MainThread/1 -?: !executor@ray/_raylet.so:0 < loop@w.py:4"]],
    ),
    "19 line removed": (
        'Thread 1 (idle): "MainThread"\n    barrier (torch/c10d.py)\n    wrap (torch/log.py:...)',
        [["pid=None", "MainThread/1 -?: barrier@torch/c10d.py:0 < wrap@torch/log.py:0"]],
    ),
    "20 elisions": (
        'Thread 1 (idle): "MainThread"\n    a (a.py:1)\n    ...\n    b (b.py:2)\n    [...]',
        [["pid=None", "MainThread/1 -? …: a@a.py:1 < b@b.py:2"]],
    ),
    "20 arrows": (
        'Thread 1 (idle): "MainThread"\n →  a (a.py:1)   <-- stuck here\n    b (b.py:2)',
        [["pid=None", "MainThread/1 -? …: a@a.py:1 < b@b.py:2"]],
    ),
    "21 joined by bars": (
        'Thread 1 (idle): "MainThread"\n    a (a.py:1)|b (b.py:2) | c (c.py:3)',
        [["pid=None", "MainThread/1 -?: a@a.py:1 < b@b.py:2 < c@c.py:3"]],
    ),
    "21 joined by blanks": (
        'Thread 1 (idle): "MainThread"\n    a (a.py:1) <module> (b.py:2) c (libc.so.6)',
        [["pid=None", "MainThread/1 -?: a@a.py:1 < <module>@b.py:2 < !c@libc.so.6:0"]],
    ),
    "22 docker compose": (
        'srv-1  | Process 42: python serve.py\nsrv-1  | Python v3.12.3 (/usr/bin/python3)\n'
        'srv-1  | \nsrv-1  | Thread 42 (active): "MainThread"\n'
        "srv-1  |     verify (worker.py:6)\nsrv-1  |     loop (sched.py:7)",
        [["pid=42", "MainThread/42 +-: verify@worker.py:6 < loop@sched.py:7"]],
    ),
    "23 made by a program": (
        "[2026-01-29 13:12:37 PP2 TP1] Pyspy dump for PID 88:\nProcess 88: srv::sched_PP2_TP1\n"
        f'Python v3.12.3 (/usr/bin/python3)\n\nThread 88 (idle): "MainThread"\n{MAIN}',
        [["pid=88", "MainThread/88 -?: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "24 collector headers": (
        f'===== node-0 PID 11 =====\nThread 11 (idle): "MainThread"\n{MAIN}\n'
        '== pid 42 ==\nThread 42 (idle): "MainThread"\n    wait (a.py:1)\n'
        '==> stacks-gpu31.out <==\nProcess 7: python t.py\nThread 7 (idle): "MainThread"\n'
        "    wait (a.py:1)",
        [
            ["pid=11 node=node-0", "MainThread/11 -?: step@loop.py:7 < <module>@loop.py:9"],
            ["pid=42 node=node-0", "MainThread/42 -?: wait@a.py:1"],
            ["pid=7 node=gpu31", "MainThread/7 -?: wait@a.py:1"],
        ],
    ),
    "25 markdown": (
        "Here it is:\n\n```text\n  Process 9: python t.py\n  Python v3.11.2 (/usr/bin/python3)\n\n"
        '  Thread 9 (idle): "MainThread"\n      wait (a.py:1)\n  Thread 10 (idle): "F"\n'
        '      feed (q.py:1)\n```\n\n> Process 8: python t.py\n> \n'
        '> Thread 8 (idle): "MainThread"\n>     wait (a.py:1)\n',
        [
            ["pid=9", "MainThread/9 -?: wait@a.py:1", "F/10 -?: feed@q.py:1"],
            ["pid=8", "MainThread/8 -?: wait@a.py:1"],
        ],
    ),
    "26 trailing blanks": (
        f'Thread 8 (idle): "MainThread"{" " * 300}\n    wait (a.py:1){" " * 300}\n',
        [["pid=None", "MainThread/8 -?: wait@a.py:1"]],
    ),
    "27 process titles": (
        f'Process 35: ray::TrainWorker\nPython v3.10.1 (/usr/bin/python3)\n\n'
        f'Thread 35 (idle): "MainThread"\n{MAIN}',
        [["pid=35", "MainThread/35 -?: step@loop.py:7 < <module>@loop.py:9"]],
    ),
    "28 only errors": (
        "Process 28: python t.py\nPython v3.11.7 (/usr/bin/python3)\n\n"
        "Error: Failed to suspend process\nReason: EPERM: Operation not permitted\n",
        [["pid=28"]],
    ),
    "29 python without path": (
        'Process 4: python t.py\nPython v3.12.3\n\nThread 4 (idle): "MainThread"\n    w (a.py:1)',
        [["pid=4", "MainThread/4 -?: w@a.py:1"]],
    ),
    "29 no header at all": (
        "    wait (threading.py:320)\n    get (queue.py:171)\n    main (train.py:5)\n",
        [["pid=None", "None/None ??: wait@threading.py:320 < get@queue.py:171 < main@train.py:5"]],
    ),
    "30 blank lines between threads": (
        'Thread 1 (idle): "MainThread"\n    a (a.py:1)\n\nThread 2 (idle): "F"\n    b (b.py:1)\n'
        'Thread 3 (idle): "G"\n    c (c.py:1)\n',
        [
            [
                "pid=None",
                "MainThread/1 -?: a@a.py:1",
                "F/2 -?: b@b.py:1",
                "G/3 -?: c@c.py:1",
            ]
        ],
    ),
    "31 wrapped command line": (
        'Process 14: python t.py --use_flash_att\nn true --lr 1e-4 --out /data/ru\nn1\n'
        'Python v3.9.1 (/usr/bin/python3)\n\nThread 14 (idle): "MainThread"\n    a (a.py:1)',
        [["pid=14", "MainThread/14 -?: a@a.py:1"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_the_table_is_read(shape: str) -> None:
    """Each shape gives its processes, threads and frames, innermost first."""
    text, expected = SHAPES[shape]
    assert [sketch(block) for block in parse_text_dump(text)] == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dress",
    [
        lambda text: "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n")),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
        lambda text: "\n".join(f"node7_srv-1 | {line}" for line in text.split("\n")),
    ],
    ids=["colours", "crlf", "quoted", "compose"],
)
def test_what_is_around_the_lines_changes_nothing(shape: str, dress: object) -> None:
    """Colours, line ends, quotes and a container's name before each line do not matter."""
    text, expected = SHAPES[shape]
    if shape.startswith("22"):
        return  # has such a prefix already
    assert callable(dress)
    assert [sketch(block) for block in parse_text_dump(dress(text))] == expected


def test_the_headers_of_a_process() -> None:
    """Command line, Python version and parent come out, also of a wrapped command line."""
    (block,) = parse_text_dump(
        dedent("""\
        Process 14: python train.py --use_flash_att
        n true --lr 1e-4
        Python v3.9.1 (/usr/bin/python3.9)
        Parent Process 12: torchrun train.py

        Thread 14 (idle): "MainThread"
            a (a.py:1)
        """)
    )
    assert block.cmdline == ("python", "train.py", "--use_flash_attn", "true", "--lr", "1e-4")
    assert (block.python, block.ppid, block.tool) == ("3.9.1", 12, "py-spy")


def test_coordinates_come_from_header_or_title() -> None:
    """`PP2 TP1` stands in the header of the dump, or in the title of the process."""
    (one,) = parse_text_dump("[12:00 PP2 TP1] Pyspy dump for PID 5:\nProcess 5: x\n")
    (two,) = parse_text_dump("Process 5: sglang::scheduler_PP3_TP0\n")
    assert (one.labels, two.labels) == ((("PP", 2), ("TP", 1)), (("PP", 3), ("TP", 0)))


def test_a_failed_dump_keeps_pid_and_error() -> None:
    """What py-spy said instead of stacks stays with the process."""
    (block,) = parse_text_dump(SHAPES["28 only errors"][0])
    assert block.errors == (
        "Error: Failed to suspend process",
        "Reason: EPERM: Operation not permitted",
    )


def test_the_causes_of_a_failed_dump_are_kept() -> None:
    """py-spy numbers its causes as srun does ranks; they stay with the error."""
    (block,) = parse_text_dump(
        "Process 28: python t.py\nError: Failed to get stack traces\n\nCaused by:\n"
        "    0: Failed to suspend process\n    1: EPERM: Operation not permitted\n"
    )
    assert block.errors[-2:] == (
        "0: Failed to suspend process",
        "1: EPERM: Operation not permitted",
    )


def test_ranks_of_srun_are_told_apart() -> None:
    """`srun -l` numbers each line with the rank."""
    text = "".join(
        f'{rank}: Process 5: python t.py\n{rank}: \n{rank}: Thread 5 (idle): "MainThread"\n'
        f"{rank}:     wait (a.py:{rank})\n"
        for rank in (10, 11)
    )
    assert [sketch(block) for block in parse_text_dump(text)] == [
        ["pid=5 ranks=10", "MainThread/5 -?: wait@a.py:10"],
        ["pid=5 ranks=11", "MainThread/5 -?: wait@a.py:11"],
    ]


def test_folded_sections_of_a_ticket() -> None:
    """Headings inside HTML count, and frames after prose are not the process's before it."""
    text = (
        "<details><summary>rank 0</summary>\n\n```\n    a (a.py:1)\n```\n</details>\n"
        "<details><summary>rank 1</summary>\n\n```\n    b (b.py:1)\n```\n</details>\n\n"
        "And another one that I cannot place:\n\n    c (c.py:1)\n"
    )
    assert [sketch(block) for block in parse_text_dump(text)] == [
        ["pid=None ranks=0", "None/None ??: a@a.py:1"],
        ["pid=None ranks=1", "None/None ??: b@b.py:1"],
        ["pid=None", "None/None ??: c@c.py:1"],
    ]


def test_values_of_locals_are_dropped() -> None:
    """No value survives, neither of one line nor of several, and the frames stay whole."""
    text = dedent("""\
        Process 5: python t.py --api-key sk-verysecret
        Python v3.11.7 (/usr/bin/python3)

        Thread 5 (idle): "MainThread"
            connect (db.py:4)
                Arguments:
                    password: "hunter2"
                    text: "line one
        Thread hunter2
            hunter2 is here
        "
                Locals:
                    rows: [[1, hunter2],
                           [2, 3]]
            main (t.py:9)
                Locals:
                    token: "hunter2"
        Thread 6 (idle): "Feeder"
            feed (q.py:2)
        """)
    blocks = parse_text_dump(text)
    assert [sketch(block) for block in blocks] == [
        ["pid=5", "MainThread/5 -?: connect@db.py:4 < main@t.py:9", "Feeder/6 -?: feed@q.py:2"]
    ]
    assert "hunter2" not in repr(blocks)
    assert "verysecret" not in repr(blocks)


def test_blocks_of_subprocesses_are_told_apart() -> None:
    """A rule of dashes and a new header begin another process."""
    text = (
        'Process 1: python t.py\nPython v3.11.7 (/p)\n\nThread 1 (idle): "MainThread"\n'
        "    a (a.py:1)\n\n" + "-" * 80 + "\nProcess 2: python t.py\nPython v3.11.7 (/p)\n"
        'Parent Process 1: python t.py\n\nThread 2 (idle): "MainThread"\n    b (b.py:1)\n'
    )
    assert [(block.pid, block.ppid, len(block.threads)) for block in parse_text_dump(text)] == [
        (1, None, 1),
        (2, 1, 1),
    ]


def test_faulthandler_is_read_innermost_first() -> None:
    """The thread that begins in a module is the main thread; the kernel's number is unknown."""
    text = dedent("""\
        Fatal Python error: Aborted

        Thread 0x00007f57caf71740 (most recent call first):
          File "/usr/lib/python3.11/threading.py", line 327 in wait
          File "/usr/lib/python3.11/threading.py", line 982 in run

        Current thread 0x00007f57caf72740 (most recent call first):
          File "/opt/v/lib/python3.11/site-packages/torch/c10d.py", line 44 in all_reduce
          File "/data/train.py", line 9 in <module>
        """)
    (block,) = parse_text_dump(text)
    assert sketch(block)[1:] == [
        "None/None ??: wait@/usr/lib/python3.11/threading.py:327 < "
        "run@/usr/lib/python3.11/threading.py:982",
        "MainThread/None ??: all_reduce@/opt/v/lib/python3.11/site-packages/torch/c10d.py:44 < "
        "<module>@/data/train.py:9",
    ]
    assert block.threads[1].stack.frames[0].short_filename == "torch/c10d.py"
    assert block.tool == "faulthandler"


def test_newer_faulthandler_names_its_threads() -> None:
    """Newer Pythons print the name in brackets."""
    text = (
        "Thread 0x00007f57caf71740 [MainThread] (most recent call first):\n"
        '  File "/data/train.py", line 9 in <module>\n'
    )
    assert sketch(parse_text_dump(text)[0])[1].startswith("MainThread/None")


@pytest.mark.parametrize(
    "prefix", ["", "[rank3]: ", "worker-0 >> [rank3]: ", "(WorkerDict pid=727951) "]
)
def test_tracebacks_are_turned_round(prefix: str) -> None:
    """A traceback's last frame is the innermost; source lines and markers are no frames."""
    text = dedent("""\
        Traceback (most recent call last):
          File "/data/train.py", line 9, in <module>
            main(foo (bar.py:1))
            ^^^^^^^^^^^^^^^^^^^^
          File "/data/train.py", line 5, in main
            dist.barrier()
        RuntimeError: connection closed, token=hunter22
        """)
    dressed = "".join(prefix + line + "\n" for line in text.splitlines())
    (block,) = parse_text_dump(dressed)
    assert sketch(block)[1] == (
        "MainThread/None ??: main@/data/train.py:5 < <module>@/data/train.py:9"
    )
    assert str(block.ranks) == ("3" if "rank3" in prefix else "")
    assert block.pid == (727951 if "pid" in prefix else None)
    assert block.errors == ("RuntimeError: connection closed, token=***",)


def test_of_chained_exceptions_the_first_counts() -> None:
    """What was raised while handling it tells nothing of the place."""
    text = dedent("""\
        Traceback (most recent call last):
          File "/data/a.py", line 1, in first
        ValueError: x

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/data/b.py", line 2, in second
        OSError: y
        """)
    (block,) = parse_text_dump(text)
    assert sketch(block)[1:] == ["None/None ??: first@/data/a.py:1"]


def test_interleaved_ranks_are_told_apart() -> None:
    """Lines of several ranks in one stream go to the rank that printed them."""
    text = dedent("""\
        [rank0]: Traceback (most recent call last):
        [rank1]: Traceback (most recent call last):
        [rank0]:   File "/data/a.py", line 1, in one
        [rank1]:   File "/data/b.py", line 2, in two
        [rank1]: ValueError: b
        [rank0]: ValueError: a
        """)
    assert [sketch(block) for block in parse_text_dump(text)] == [
        ["pid=None ranks=0", "None/None ??: one@/data/a.py:1"],
        ["pid=None ranks=1", "None/None ??: two@/data/b.py:2"],
    ]


def test_pystack_is_turned_round() -> None:
    """pystack prints the innermost frame last, its own thread numbers are the kernel's."""
    text = dedent("""\
        Traceback for thread 2175 (python3.12) [Has the GIL] (most recent call last):
            (Python) File "/data/train.py", line 9, in <module>
                main()
            (Python) File "/data/train.py", line 5, in main
                time.sleep(9)
            (C) File "Modules/timemodule.c", line 2, in time_sleep (/usr/lib/libpython3.12.so)
        Traceback for thread 2180 (gloo) [] (most recent call last):
            (C) File "???", line 0, in epoll_wait (/lib/libc.so.6)
        """)
    (block,) = parse_text_dump(text)
    assert sketch(block)[1:] == [
        "MainThread/2175 ?+: !time_sleep@Modules/timemodule.c:2 < main@/data/train.py:5 < "
        "<module>@/data/train.py:9",
        "None/2180 ??: !epoll_wait@???:0",
    ]


def test_gdb_stacks_are_read() -> None:
    """Threads, native frames and the Python frames of `py-bt` come together."""
    text = dedent("""\
        Thread 2 (Thread 0x7fc73ac5d700 (LWP 52422) "gloo"):
        #0  0x000014cd955ebdbc in ?? () from /lib64/libcuda.so.1
        #1  0x000014cd955ebdbc in epoll_wait (epfd=4) from /lib64/libc.so.6

        Thread 1 (Thread 0x7fc73ac5d740 (LWP 52400) "python3"):
        #0  select_poll_poll (self=0x1, t=...) at Modules/selectmodule.c:219
        (gdb) py-bt
        Traceback (most recent call first):
          File "/usr/lib/python3.8/selectors.py", line 415, in select
            fd_event_list = self._selector.poll(timeout)
          File "/data/train.py", line 7, in <module>
        """)
    (block,) = parse_text_dump(text)
    assert sketch(block)[1:] == [
        "None/52422 ??: !?libcuda.so.1@/lib64/libcuda.so.1:0 < !epoll_wait@/lib64/libc.so.6:0",
        "MainThread/52400 ??: !select_poll_poll@Modules/selectmodule.c:219 < "
        "select@/usr/lib/python3.8/selectors.py:415 < <module>@/data/train.py:7",
    ]


def test_one_line_of_gdb_threads_is_read() -> None:
    """`info threads` gives each thread its innermost frame."""
    text = '* 1    Thread 0x7fc73ac5d700 (LWP 52422) "" select_poll () at /src/selectmodule.c:219\n'
    assert sketch(parse_text_dump(text)[0])[1:] == [
        "None/52422 ??: !select_poll@/src/selectmodule.c:219"
    ]


def test_numbered_frames_are_read() -> None:
    """`#56 forward from /path/model.py:2083` is a frame of Python."""
    text = "#0 all_reduce from /data/dist.py:26\n#1 forward from /data/model.py:20\n"
    assert sketch(parse_text_dump(text)[0])[1:] == [
        "None/None ??: all_reduce@/data/dist.py:26 < forward@/data/model.py:20"
    ]


def test_the_origin_of_a_cxx_exception_is_no_stack() -> None:
    """Frames of a C++ exception tell where it was made, not where a thread hangs."""
    text = "frame #1: c10d::Work::wait() const + 0x13c (0x147b9b82c78c in /p/libtorch_cuda.so)\n"
    assert parse_text_dump(text) == ()


@pytest.mark.parametrize(
    "prose",
    [
        "I ran it twice (see above) and rank 0 hangs in the barrier (always).",
        "Rank 0 is stuck and I do not know why",
        "2 in the morning it hung again",
        "Any idea? Process of elimination says NCCL (2.21.5)",
    ],
)
def test_prose_is_no_stack(prose: str) -> None:
    """Sentences around a paste give no process, and end the stack before them."""
    assert parse_text_dump(prose) == ()
    (block,) = parse_text_dump(f'Thread 1 (idle): "MainThread"\n    a (a.py:1)\n\n{prose}\n')
    assert sketch(block)[1:] == ["MainThread/1 -?: a@a.py:1"]


def test_homes_are_shortened() -> None:
    """Paths come out without the name of the user."""
    (block,) = parse_text_dump('Thread 1 (idle): "M"\n    a (/home/ada/p/a.py:1)\n')
    assert block.threads[0].stack.frames[0].filename == "~/p/a.py"


PIECES = st.sampled_from(
    [
        'Thread 1 (idle): "MainThread"', "    a (a.py:1)", "Process 5: python", "Python v3.1",
        "Traceback (most recent call last):", '  File "x", line 3, in f', "#0  0x1 in ?? ()",
        "Rank 0-9999999:", "ranks 3..1:", "===== node-0 PID 1 =====", "    Locals:", "...", "",
        "| worker | pid | location |", "| 0 | 1 | a (a.py:1) |", "[rank7]: ", "a-1 | ", "> ",
        "    x<y(", "z)", "\x1b[31m", "\0", "(gdb) py-bt", "4 in:", "```", "\t",
        "Thread \u00b2 (idle)", "| 1 | \u00b2 | a (a.py:1) |", "Process " + "9" * 5000 + ": x",
        "Rank " + "1" * 5000 + ":", "    a (a.py:" + "1" * 5000 + ")",
    ]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=30), max_size=40))
@settings(max_examples=150)
def test_foreign_text_never_raises(pieces: list[str]) -> None:
    """Whatever is pasted, the answer is a tuple of blocks."""
    for block in parse_text_dump("\n".join(pieces)) + parse_text_dump("".join(pieces)):
        assert block.count >= 0


@pytest.mark.parametrize(
    "unit",
    [
        "x", "(", "a (a.py:1)", " (", "    a (b", "Thread ", "\n", "\n(", '\nThread 1 (idle)',
        "\n    a<b", "=", "...", "1,", "\n1,", "\nRank 1,", "| ", "\n| a | 1 |", "[rank1]: ", "> ",
        "\n#1 a from ", '\nFile "', ":1", "\nProcess 1: a", "\u2026 ", "- ",
    ],
)  # fmt: skip
def test_the_time_is_linear_in_the_length_of_garbage(unit: str) -> None:
    """Eight times the text takes nowhere near sixty-four times as long."""
    text = unit * ((1 << 17) // len(unit))
    started = time.process_time()
    parse_text_dump(text[: len(text) // 8])
    part = time.process_time() - started
    started = time.process_time()
    parse_text_dump(text)
    whole = time.process_time() - started
    assert whole < max(24 * part, 0.5)
