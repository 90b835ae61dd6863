"""Pastes as they come from tickets: torn, wrapped by other programs, of other tools."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.collectors.test_text_dump import sketch
from whyhang.collectors.text_dump import parse_text_dump

HEAD = (
    "Process {0}: python a.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
    'Thread {0} (idle): "MainThread"\n'
)
WILD: dict[str, tuple[str, list[list[str]]]] = {
    "gdb: thread apply all py-bt": (
        """
        Thread 3 (Thread 0x7f2a (LWP 1203) "python3"):
        Unable to locate python frame

        Thread 2 (Thread 0x7f1a (LWP 1202) "pt_data_pin"):
        Traceback (most recent call first):
          File "/usr/lib/python3.11/selectors.py", line 415, in select
            fd_event_list = self._selector.poll(timeout)
          File "/usr/lib/python3.11/threading.py", line 975, in run

        Thread 1 (Thread 0x7f0a (LWP 1201) "python3"):
        Traceback (most recent call first):
          <built-in method read of _io.BufferedReader object at remote 0x7f>
          File "/data/train.py", line 7, in read_shard
            f.read()
          File "/data/train.py", line 70, in <module>
            main()
        """,
        [
            [
                "pid=None",
                "None/1203 ??: ",
                "None/1202 ??: select@/usr/lib/python3.11/selectors.py:415"
                " < run@/usr/lib/python3.11/threading.py:975",
                "MainThread/1201 ??: read_shard@/data/train.py:7 < <module>@/data/train.py:70",
            ]
        ],
    ),
    "gdb: py-bt of an old Python": (
        """
        (gdb) py-bt
        #4 Frame 0x7f3c3c0, for file /app/train.py, line 12, in load (path='/x')
            time.sleep(1)
        #9 Frame 0x7f3c3c1, for file /app/train.py, line 30, in <module> ()
        """,
        [["pid=None", "MainThread/None ??: load@/app/train.py:12 < <module>@/app/train.py:30"]],
    ),
    "faulthandler: frames left out, and a thread without any": (
        """
        Timeout (0:10:00)!
        Thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 3 in inner
          ...
        Current thread 0x00007f57caf71741 (most recent call first):
          <no Python frame>
        """,
        [["pid=None", "None/None ?? …: inner@/app/a.py:3", "None/None ??: "]],
    ),
    "faulthandler: extension modules between two threads": (
        """
        Fatal Python error: Aborted

        Current thread 0x00007f57 (most recent call first):
          File "/app/a.py", line 3 in inner
          File "/app/a.py", line 9 in <module>

        Extension modules: numpy.core._multiarray_umath, torch._C (total: 20)
        Thread 0x00007f58 (most recent call first):
          File "/usr/lib/python3.11/threading.py", line 324 in wait
        """,
        [
            [
                "pid=None",
                "MainThread/None ??: inner@/app/a.py:3 < <module>@/app/a.py:9",
                "None/None ??: wait@/usr/lib/python3.11/threading.py:324",
            ]
        ],
    ),
    "pystack: native frames and values": (
        """
        Traceback for thread 2175 (python3.12) [Has the GIL] (most recent call last):
            (C) File "???", line 0, in _start (/usr/bin/python3.12)
            (Python) File "/app/a.py", line 9, in <module>
                main()
            (Python) File "/app/a.py", line 3, in inner
                Arguments:
                  token: "hunter2"
                x()
            (C) File "./nptl/futex-internal.c", line 57, in __futex_abstimed_wait (/lib/libc.so.6)
        """,
        [
            [
                "pid=None",
                "MainThread/2175 ?+: !__futex_abstimed_wait@./nptl/futex-internal.c:57"
                " < inner@/app/a.py:3 < <module>@/app/a.py:9 < !_start@???:0",
            ]
        ],
    ),
    "the end is torn off": (
        HEAD.format(9) + "    wait (threading.py:324)\n    _try_get_data (torch/utils/da",
        [["pid=9", "MainThread/9 -? …: wait@threading.py:324"]],
    ),
    "the beginning is torn off": (
        "load.py:1291)\n    __next__ (torch/utils/data/dataloader.py:725)\n"
        "    train (train.py:40)\n"
        'Thread 12 (idle): "Thread-1"\n    wait (threading.py:324)\n',
        [
            [
                "pid=None",
                "None/None ??: __next__@torch/utils/data/dataloader.py:725 < train@train.py:40",
                "Thread-1/12 -?: wait@threading.py:324",
            ]
        ],
    ),
    "Ray: two workers of two machines": (
        """
        (Worker pid=123) Thread 123 (idle): "MainThread"
        (Worker pid=124, ip=10.0.0.1) Thread 124 (idle): "MainThread"
        (Worker pid=123)     a (a.py:1)
        (Worker pid=124, ip=10.0.0.1)     b (a.py:2)
        """,
        [
            ["pid=123", "MainThread/123 -?: a@a.py:1"],
            ["pid=124", "MainThread/124 -?: b@a.py:2"],
        ],
    ),
    "vLLM: prefixes with parallel ranks": (
        """
        (EngineCore_DP0 pid=77) Thread 77 (idle): "MainThread"
        (EngineCore_DP0 pid=77)     a (a.py:1)
        (Worker_TP1 pid=78) Thread 78 (idle): "MainThread"
        (Worker_TP1 pid=78)     b (a.py:2)
        """,
        [["pid=77", "MainThread/77 -?: a@a.py:1"], ["pid=78", "MainThread/78 -?: b@a.py:2"]],
    ),
    "a mark at the beginning and Windows line ends": (
        '\ufeffThread 9 (idle): "MainThread"\r\n    a (a.py:1)\r\n',
        [["pid=None", "MainThread/9 -?: a@a.py:1"]],
    ),
    "HTML, quoted": (
        "&gt; Thread 9 (idle): &quot;MainThread&quot;\n&gt;     &lt;module&gt; (a.py:1)\n",
        [["pid=None", "MainThread/9 -?: <module>@a.py:1"]],
    ),
    "Docker's own log file": (
        '{"log":"Thread 9 (idle): \\"MainThread\\"\\n","stream":"stdout"}\n'
        '{"log":"    a (a.py:1)\\n","stream":"stdout"}\n{"log":3}\n{"log":"torn}\n',
        [["pid=None", "MainThread/9 -?: a@a.py:1"]],
    ),
    "paths with blanks and backslashes": (
        'Thread 9 (idle): "MainThread"\n    f (C:\\Users\\ada\\train.py:3)\n'
        "    <module> (C:\\x y\\main.py:9)\n",
        [["pid=None", r"MainThread/9 -?: f@C:\Users\ada\train.py:3 < <module>@C:\x y\main.py:9"]],
    ),
    "tail's headings of several files": (
        """
        ==> pod-0.log <==
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        ==> pod-1.log <==
        Thread 9 (idle): "MainThread"
            b (a.py:1)
        """,
        [
            ["pid=None node=pod-0", "MainThread/9 -?: a@a.py:1"],
            ["pid=None node=pod-1", "MainThread/9 -?: b@a.py:1"],
        ],
    ),
    "a shell's trace of a loop over pids": (
        f"+ py-spy dump --pid 9\n{HEAD.format(9)}    a (a.py:1)\n+ py-spy dump --pid 10\n"
        "Error: Failed to find python version from target process\n+ py-spy dump --pid 11\n"
        f"{HEAD.format(11)}    b (a.py:2)\n",
        [["pid=9", "MainThread/9 -?: a@a.py:1"], ["pid=11", "MainThread/11 -?: b@a.py:2"]],
    ),
    "a traceback with marks and repeated lines": (
        """
        Traceback (most recent call last):
          File "/app/a.py", line 9, in <module>
            main()
            ~~~~^^
          File "/app/a.py", line 3, in main
            dist.all_reduce(x)
          [Previous line repeated 996 more times]
        KeyboardInterrupt
        """,
        [["pid=None", "MainThread/None ??: main@/app/a.py:3 < <module>@/app/a.py:9"]],
    ),
    "pdsh: hosts before every line, two processes of one host": (
        """
        gpu01: Process 9: python a.py
        gpu02: Process 9: python a.py
        gpu01: Thread 9 (idle): "MainThread"
        gpu02: Thread 9 (idle): "MainThread"
        gpu02:     b (a.py:2)
        gpu01:     a (a.py:1)
        gpu01:
        gpu01: Process 10: python a.py
        gpu01: Thread 10 (idle): "MainThread"
        gpu01:     c (a.py:3)
        """,
        [
            ["pid=9 node=gpu01", "MainThread/9 -?: a@a.py:1"],
            ["pid=9 node=gpu02", "MainThread/9 -?: b@a.py:2"],
            ["pid=10 node=gpu01", "MainThread/10 -?: c@a.py:3"],
        ],
    ),
    "a word before one line is no host": (
        """
        Note: Process 9: python a.py
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        """,
        [["pid=None", "MainThread/9 -?: a@a.py:1"]],
    ),
    "clush and dshbak: a node between rules, some folded": (
        """
        ---------------
        gpu[01-03] (3)
        ---------------
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        ---------------
        gpu04
        ---------------
        Thread 9 (idle): "MainThread"
            b (a.py:2)
        """,
        [
            ["pid=None node=gpu[01-03] x3", "MainThread/9 -?: a@a.py:1"],
            ["pid=None node=gpu04", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "a rank between rules is a rank": (
        """
        ---------------
        rank 3
        ---------------
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        ---------------
        gpu4
        ---------------
        Thread 9 (idle): "MainThread"
            b (a.py:2)
        """,
        [
            ["pid=None ranks=3", "MainThread/9 -?: a@a.py:1"],
            ["pid=None ranks=4", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "the time before every line": (
        """
        2026-11-02 10:11:12,345 Process 9: python a.py
        [2026-11-02 10:11:12] Thread 9 (idle): "MainThread"
        2026-11-02T10:11:12.345+01:00     a (a.py:1)
        2026-11-02 10:11:12,346 - INFO -     b (a.py:2)
        2026-11-02 10:11:12,346
        """,
        [["pid=9", "MainThread/9 -?: a@a.py:1 < b@a.py:2"]],
    ),
    "the journal of several hosts": (
        """
        Nov 02 10:11:12 gpu01 python3[77]: Thread 9 (idle): "MainThread"
        Nov 02 10:11:12 gpu02 python3[78]: Thread 9 (idle): "MainThread"
        Nov 02 10:11:13 gpu01 python3[77]:     a (a.py:1)
        Nov 02 10:11:13 gpu02 python3[78]:     b (a.py:2)
        """,
        [
            ["pid=None node=gpu01", "MainThread/9 -?: a@a.py:1"],
            ["pid=None node=gpu02", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "kubectl logs: a pod before every line": (
        """
        [pod/trainer-0/pytorch] Thread 9 (idle): "MainThread"
        [pod/trainer-0/pytorch]     a (a.py:1)
        [pod/trainer-1/pytorch] Thread 9 (idle): "MainThread"
        [pod/trainer-1/pytorch]     b (a.py:2)
        """,
        [
            ["pid=None node=trainer-0", "MainThread/9 -?: a@a.py:1"],
            ["pid=None node=trainer-1", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "commands at a prompt tell pids and places": (
        """
        $ kubectl exec -n ml trainer-0 -- py-spy dump --pid 1
        Thread 1 (idle): "MainThread"
            a (a.py:1)
        $ kubectl exec -it trainer-1 -c pytorch -- py-spy dump -p 1
        Thread 1 (idle): "MainThread"
            b (a.py:2)
        ada@login:~$ ssh gpu07 sudo pystack remote 2175
        Traceback for thread 2175 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 3, in c
        """,
        [
            ["pid=1 node=trainer-0", "MainThread/1 -?: a@a.py:1"],
            ["pid=1 node=trainer-1", "MainThread/1 -?: b@a.py:2"],
            ["pid=2175 node=gpu07", "MainThread/2175 ??: c@/app/a.py:3"],
        ],
    ),
    "faulthandler: a time-out under a prefix is no frame": (
        """
        [rank0]:Timeout (0:05:00)!
        [rank0]:Thread 0x00007f57caf71740 (most recent call first):
        [rank0]:  File "/app/a.py", line 3 in inner
        """,
        [["pid=None ranks=0", "None/None ??: inner@/app/a.py:3"]],
    ),
    "faulthandler: repeated dumps of one process are one process": (
        """
        Timeout (0:05:00)!
        Thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 3 in inner
          File "/app/a.py", line 9 in <module>
        Timeout (0:05:00)!
        Thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 4 in inner
          File "/app/a.py", line 9 in <module>
        """,
        [["pid=None", "MainThread/None ??: inner@/app/a.py:4 < <module>@/app/a.py:9"]],
    ),
    "faulthandler: one thread only, with the C stack of Python 3.14": (
        """
        Fatal Python error: Aborted

        Current thread 0x00007f57caf71740 [python3] (most recent call first):
          File "/app/a.py", line 3 in inner
          File "/app/a.py", line 9 in <module>

        Current thread's C stack trace (most recent call first):
          Binary file "/usr/lib/libc.so.6", at abort+0x26 [0x7f2]
          Binary file "/usr/bin/python3.14", at _PyEval_Vector+0x48 [0x5f1]
          <truncated rest of calls>

        Extension modules: numpy, torch._C (total: 2)
        """,
        [
            [
                "pid=None",
                "MainThread/None ??: !abort@/usr/lib/libc.so.6:0"
                " < !_PyEval_Vector@/usr/bin/python3.14:0"
                " < inner@/app/a.py:3 < <module>@/app/a.py:9",
            ]
        ],
    ),
    "faulthandler: no thread is named": (
        """
        Stack (most recent call first):
          File "/app/a.py", line 3 in inner
          File "/app/a.py", line 9 in <module>
        """,
        [["pid=None", "MainThread/None ??: inner@/app/a.py:3 < <module>@/app/a.py:9"]],
    ),
    "the stacks of sys._current_frames()": (
        """
        Thread MainThread (140012345678):
          File "/app/a.py", line 9, in <module>
            main()
          File "/app/a.py", line 3, in inner
            dist.barrier()
        Thread Thread-7 (run) (140012345679):
          File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
            self.run()
          File "/usr/lib/python3.11/threading.py", line 331, in wait
        """,
        [
            [
                "pid=None",
                "MainThread/None ??: inner@/app/a.py:3 < <module>@/app/a.py:9",
                "Thread-7 (run)/None ??: wait@/usr/lib/python3.11/threading.py:331"
                " < _bootstrap_inner@/usr/lib/python3.11/threading.py:1045",
            ]
        ],
    ),
    "the older recipe for them": (
        """
        # ThreadID: 140012345678
        File: "/app/a.py", line 9, in <module>
          main()
        File: "/app/a.py", line 3, in inner
          dist.barrier()
        """,
        [["pid=None", "MainThread/None ??: inner@/app/a.py:3 < <module>@/app/a.py:9"]],
    ),
    "the frames of a traceback without its first line": (
        """
        ### rank 1
          File "/app/a.py", line 9, in <module>
            main()
          File "/app/a.py", line 3, in inner
            dist.barrier()
        """,
        [["pid=None ranks=1", "MainThread/None ??: inner@/app/a.py:3 < <module>@/app/a.py:9"]],
    ),
    "gdb: several processes in turn": (
        """
        Attaching to process 1201
        Thread 2 (Thread 0x7f1a (LWP 1202) "python3"):
        #0  0x00007f in poll () from /lib64/libc.so.6
        Thread 1 (Thread 0x7f0a (LWP 1201) "python3"):
        #0  0x00007f in read () from /lib64/libc.so.6
        [Inferior 1 (process 1201) detached]
        Attaching to program: /usr/bin/python3.11, process 1301
        Thread 1 (Thread 0x7f0a (LWP 1301) "python3"):
        #0  0x00007f in write () from /lib64/libc.so.6
        """,
        [
            [
                "pid=1201",
                "None/1202 ??: !poll@/lib64/libc.so.6:0",
                "MainThread/1201 ??: !read@/lib64/libc.so.6:0",
            ],
            ["pid=1301", "MainThread/1301 ??: !write@/lib64/libc.so.6:0"],
        ],
    ),
    "gdb: the first thread, where it is the oldest": (
        """
        Thread 2 (Thread 0x7f1a (LWP 1202) "python3"):
        #0  0x00007f in poll () from /lib64/libc.so.6
        Thread 1 (Thread 0x7f0a (LWP 1201) "python3"):
        #0  0x00007f in read () from /lib64/libc.so.6
        """,
        [
            [
                "pid=None",
                "None/1202 ??: !poll@/lib64/libc.so.6:0",
                "MainThread/1201 ??: !read@/lib64/libc.so.6:0",
            ]
        ],
    ),
    "gdb: the first thread of a dead process is the one that failed": (
        """
        Thread 2 (Thread 0x7f1a (LWP 1201) "python3"):
        #0  0x00007f in poll () from /lib64/libc.so.6
        Thread 1 (Thread 0x7f0a (LWP 1202) "python3"):
        #0  0x00007f in raise () from /lib64/libc.so.6
        """,
        [
            [
                "pid=None",
                "None/1201 ??: !poll@/lib64/libc.so.6:0",
                "None/1202 ??: !raise@/lib64/libc.so.6:0",
            ]
        ],
    ),
    "pystack: the image of a process that died": (
        """
        Core file information:
        state: t zombie: True niceness: 0
        pid: 2175 ppid: 1 sid: 2175
        Traceback for thread 2175 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 3, in c
        """,
        [["pid=2175", "MainThread/2175 ??: c@/app/a.py:3"]],
    ),
    "eu-stack": (
        """
        PID 1201 - process
        TID 1201:
        #0  0x00007f8e6c8a3f16     __poll
        #1  0x00007f8e6c8a3f17 - 1 c10d::Work::wait() - /x/libtorch_cpu.so
        TID 1202:
        #0  0x00007f8e6c8a3f16     __read
        """,
        [
            [
                "pid=1201",
                "MainThread/1201 ??: !__poll@?:0 < !c10d::Work::wait()@/x/libtorch_cpu.so:0",
                "None/1202 ??: !__read@?:0",
            ]
        ],
    ),
    "Horovod, and a host before a rank": (
        """
        [0]<stdout>:Thread 9 (idle): "MainThread"
        [0]<stdout>:    a (a.py:1)
        gpu01: [rank1]:Thread 9 (idle): "MainThread"
        gpu01: [rank1]:    b (a.py:2)
        """,
        [
            ["pid=None ranks=0", "MainThread/9 -?: a@a.py:1"],
            ["pid=None ranks=1 node=gpu01", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "grep: a file's name before every line": (
        """
        out/rank0.txt:Process 9: python a.py
        out/rank0.txt:Thread 9 (idle): "MainThread"
        out/rank0.txt:    a (a.py:1)
        out/rank0.txt:    m (a.py:3)
        out/rank1.txt:Process 9: python a.py
        out/rank1.txt:Thread 9 (idle): "MainThread"
        out/rank1.txt:    b (a.py:2)
        out/rank1.txt:    m (a.py:3)
        """,
        [
            ["pid=9 ranks=0", "MainThread/9 -?: a@a.py:1 < m@a.py:3"],
            ["pid=9 ranks=1", "MainThread/9 -?: b@a.py:2 < m@a.py:3"],
        ],
    ),
    "numbers before every line": (
        """
             1\tProcess 9: python a.py
             2\t
             3\tThread 9 (idle): "MainThread"
             4\t    a (a.py:1)
            10\t    b (a.py:2)
        """,
        [["pid=9", "MainThread/9 -?: a@a.py:1 < b@a.py:2"]],
    ),
    "two of one unknown prefix: its digits tell the printers apart": (
        """
        w1~Thread 9 (idle): "MainThread"
        w2~Thread 9 (idle): "MainThread"
        w1~    a (a.py:1)
        w2~    b (a.py:2)
        w1~    c (a.py:3)
        w2~    d (a.py:4)
        w1~    m (a.py:5)
        w2~    m (a.py:5)
        """,
        [
            ["pid=None", "MainThread/9 -?: a@a.py:1 < c@a.py:3 < m@a.py:5"],
            ["pid=None", "MainThread/9 -?: b@a.py:2 < d@a.py:4 < m@a.py:5"],
        ],
    ),
    "headings of fields, files, outlines and wikis": (
        """
        rank=3 host=gpu01 pid=9
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        out/rank_4.txt:
        Thread 9 (idle): "MainThread"
            a (a.py:2)
        6. Rank 5:
        Thread 9 (idle): "MainThread"
            a (a.py:3)
        h3. Rank 6
        {code:title=6}
        Thread 9 (idle): "MainThread"
            a (a.py:4)
        {code}
        Ranks 7, 8 and 9 all look like this:
        Thread 9 (idle): "MainThread"
            a (a.py:5)
        """,
        [
            ["pid=9 ranks=3 node=gpu01", "MainThread/9 -?: a@a.py:1"],
            ["pid=None ranks=4 node=gpu01", "MainThread/9 -?: a@a.py:2"],
            ["pid=None ranks=5 node=gpu01", "MainThread/9 -?: a@a.py:3"],
            ["pid=None ranks=6 node=gpu01", "MainThread/9 -?: a@a.py:4"],
            ["pid=None ranks=7-9 node=gpu01", "MainThread/9 -?: a@a.py:5"],
        ],
    ),
    "a rank of a world, and ranks in a list": (
        """
        rank 3/8:
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        ranks 4/6:
        Thread 9 (idle): "MainThread"
            a (a.py:2)
        """,
        [
            ["pid=None ranks=3", "MainThread/9 -?: a@a.py:1"],
            ["pid=None ranks=4/6", "MainThread/9 -?: a@a.py:2"],
        ],
    ),
    "a number within a node is no rank": (
        """
        === node gpu01 local rank 1 ===
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        """,
        [["pid=None node=gpu01", "MainThread/9 -?: a@a.py:1"]],
    ),
    "escaped twice": (
        "&amp;lt;p&amp;gt;\nThread 9 (idle): &amp;quot;MainThread&amp;quot;\n    a (a.py:1)\n",
        [["pid=None", "MainThread/9 -?: a@a.py:1"]],
    ),
    "a value of JSON": (
        '{"text": "### rank 3\\nThread 9 (idle): \\"MainThread\\"\\n    a (a.py:1)\\n'
        '    b (a.py:2)\\n"}\n',
        [["pid=None ranks=3", "MainThread/9 -?: a@a.py:1 < b@a.py:2"]],
    ),
    "faulthandler: files of several processes, one after another": (
        """
        Timeout (0:05:00)!
        Thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 3 in <module>
        Timeout (0:05:00)!
        Thread 0x00007f99caf71740 (most recent call first):
          File "/app/a.py", line 4 in <module>
        """,
        [
            ["pid=None", "MainThread/None ??: <module>@/app/a.py:3"],
            ["pid=None", "MainThread/None ??: <module>@/app/a.py:4"],
        ],
    ),
    "faulthandler: a forked worker has the numbers of its parent": (
        """
        Current thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 3 in <module>
        Current thread 0x00007f57caf71740 (most recent call first):
          File "/x/site-packages/torch/utils/data/_utils/worker.py", line 275 in _worker_loop
          File "/app/a.py", line 3 in <module>
        """,
        [
            ["pid=None", "MainThread/None ??: <module>@/app/a.py:3"],
            [
                "pid=None",
                "MainThread/None ??:"
                " _worker_loop@/x/site-packages/torch/utils/data/_utils/worker.py:275"
                " < <module>@/app/a.py:3",
            ],
        ],
    ),
    "sentences that lead over to a stack": (
        """
        Everything runs on rank 0 and rank 1, but here is what we see on rank 5.
        Here is rank 3:

        Thread 9 (idle): "MainThread"
            a (a.py:1)

        ada: and mine, rank 2 (pid 7)
        Thread 9 (idle): "MainThread"
            b (a.py:2)

        Another thread of that rank 2, same dump:
        Thread 10 (idle): "Thread-1"
            c (a.py:3)

        step 300 of rank 8 took 3 s
        Process 8: python a.py
        Thread 8 (idle): "MainThread"
            d (a.py:4)
        """,
        [
            ["pid=None ranks=3", "MainThread/9 -?: a@a.py:1"],
            ["pid=7 ranks=2", "MainThread/9 -?: b@a.py:2", "Thread-1/10 -?: c@a.py:3"],
            ["pid=8", "MainThread/8 -?: d@a.py:4"],
        ],
    ),
    "a sentence, then a command": (
        """
        This is the stack of rank 3:
        root@gpu07:~# py-spy dump -p 9
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        """,
        [["pid=9 ranks=3 node=gpu07", "MainThread/9 -?: a@a.py:1"]],
    ),
    "dashes that a text processor has made": (
        """
        \u2014 rank 3 \u2014
        Thread 9 (idle): \u201cMainThread\u201d
            a (a.py:1)
        ─── rank 2 ───
        Thread 9 (idle): "MainThread"
            b (a.py:2)
        """,
        [
            ["pid=None ranks=3", "MainThread/9 -?: a@a.py:1"],
            ["pid=None ranks=2", "MainThread/9 -?: b@a.py:2"],
        ],
    ),
    "a heading of a host and a rank": (
        """
        # gpu01 rank4
        Thread 9 (idle): "MainThread"
            a (a.py:1)
        """,
        [["pid=None ranks=4 node=gpu01", "MainThread/9 -?: a@a.py:1"]],
    ),
    "a table in Markdown": (
        """
        | rank | pid | stuck at |
        |---|---|---|
        | 0 | 9 | `a (a.py:1)` |
        | 1 | 8 | `b (a.py:2)` |
        """,
        [
            ["pid=9 ranks=0", "None/None ??: a@a.py:1"],
            ["pid=8 ranks=1", "None/None ??: b@a.py:2"],
        ],
    ),
    "the journal with short times": (
        """
        2026-11-02T10:11:12+0100 gpu01 python3[77]: Thread 9 (idle): "MainThread"
        2026-11-02T10:11:12+0100 gpu01 python3[77]:     a (a.py:1)
        """,
        [["pid=None node=gpu01", "MainThread/9 -?: a@a.py:1"]],
    ),
    "one object of JSON a line": (
        """
        {"time": "10:11", "host": "gpu01", "message": "Thread 9 (idle): \\"MainThread\\""}
        {"time": "10:11", "host": "gpu02", "message": "Thread 9 (idle): \\"MainThread\\""}
        {"time": "10:11", "host": "gpu01", "message": "    a (a.py:1)"}
        {"time": "10:11", "host": "gpu02", "message": "    b (a.py:2)\\n    m (a.py:3)"}
        {"time": "10:11", "host": 3}
        """,
        [
            ["pid=None node=gpu01", "MainThread/9 -?: a@a.py:1"],
            ["pid=None node=gpu02", "MainThread/9 -?: b@a.py:2 < m@a.py:3"],
        ],
    ),
    "frames with numbers": (
        """
        Thread 9 (idle): "MainThread"
          1) a (a.py:1)
          2) b (a.py:2)
        """,
        [["pid=None", "MainThread/9 -?: a@a.py:1 < b@a.py:2"]],
    ),
    "files of processes whose threads have equal numbers": (
        """
        ==> attempt_0/a/stderr.log <==
        Current thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 3 in <module>
        ==> attempt_0/b/stderr.log <==
        Current thread 0x00007f57caf71740 (most recent call first):
          File "/app/a.py", line 4 in <module>
        """,
        [
            ["pid=None", "MainThread/None ??: <module>@/app/a.py:3"],
            ["pid=None", "MainThread/None ??: <module>@/app/a.py:4"],
        ],
    ),
    "pystack: two processes with nothing between": (
        """
        Traceback for thread 12 (python3) [] (most recent call last):
            (Python) File "/app/t.py", line 1, in run
        Traceback for thread 11 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 9, in <module>
            (Python) File "/app/a.py", line 3, in a
        Traceback for thread 22 (python3) [] (most recent call last):
            (Python) File "/app/t.py", line 1, in run
        Traceback for thread 21 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 9, in <module>
            (Python) File "/app/a.py", line 4, in b
        """,
        [
            [
                "pid=None",
                "None/12 ??: run@/app/t.py:1",
                "MainThread/11 ??: a@/app/a.py:3 < <module>@/app/a.py:9",
            ],
            [
                "pid=None",
                "None/22 ??: run@/app/t.py:1",
                "MainThread/21 ??: b@/app/a.py:4 < <module>@/app/a.py:9",
            ],
        ],
    ),
    "pystack: an order that tells no processes apart": (
        """
        Traceback for thread 11 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 9, in <module>
        Traceback for thread 21 (python3) [] (most recent call last):
            (Python) File "/app/a.py", line 8, in <module>
        Traceback for thread 22 (python3) [] (most recent call last):
            (Python) File "/app/t.py", line 1, in run
        """,
        [
            [
                "pid=None",
                "None/11 ??: <module>@/app/a.py:9",
                "None/21 ??: <module>@/app/a.py:8",
                "None/22 ??: run@/app/t.py:1",
            ]
        ],
    ),
}


@pytest.mark.parametrize("shape", WILD)
def test_wild_pastes_are_read(shape: str) -> None:
    """What is there is read, what is torn off is not made up, values do not survive."""
    text, expected = WILD[shape]
    blocks = parse_text_dump(dedent(text))
    assert [sketch(block) for block in blocks] == expected
    assert "hunter2" not in repr(blocks)
