"""Readers of /proc, on files made by hand and on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import eventually
from whyhang.collectors import procfs
from whyhang.schemas.process import IoCounters, OsThread

NO_SUCH_PID = 2**22 + 5  # above the kernel's limit of pids


def _stat(pid: int, name: str = "python3", state: str = "S", exit_word: int = 0) -> str:
    fields = [state, "4", "5", "6", *["0"] * 7, "150", "50", *["0"] * 6, "777", *["0"] * 29]
    return f"{pid} ({name}) " + " ".join([*fields, str(exit_word)]) + "\n"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], int]:
    """Lays out /proc/7 with the given files."""
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))

    def lay_out(files: Mapping[str, str]) -> int:
        for name, text in files.items():
            path = tmp_path / "7" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return 7

    return lay_out


def test_a_name_may_hold_brackets_and_blanks() -> None:
    """The name ends at the last bracket; the numbers are found behind it."""
    stat = procfs.parse_stat(_stat(7, "a) b (ü 😀").encode())
    assert stat is not None
    assert (stat.pid, stat.name, stat.state) == (7, "a) b (ü 😀", "S")
    assert (stat.ppid, stat.session, stat.start_ticks) == (4, 6, 777)
    assert stat.cpu_seconds == 200 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("data", [b"", b"7", b"7 (x", b"7 (x) S 1 2", b"x (y) " + b"S " * 60])
def test_a_line_that_is_no_stat_is_none(data: bytes) -> None:
    """A torn or foreign line is unknown, not an error."""
    assert procfs.parse_stat(data) is None


@pytest.mark.parametrize(("word", "code"), [(0, 0), (3 << 8, 3), (9, -9), (11 | 0x80, -11)])
def test_exit_codes_read_as_subprocess_gives_them(word: int, code: int) -> None:
    """A signal is negative, with or without a core dump."""
    stat = procfs.parse_stat(_stat(7, exit_word=word).encode())
    assert stat is not None
    assert stat.exit_code == code


def test_every_file_is_read(fake: Callable[[Mapping[str, str]], int]) -> None:
    """Each reader takes what the kernel writes, and 0 in wchan is unknown."""
    pid = fake(
        {
            "wchan": "0",
            "syscall": "230 0x0 0x0 0x7ffe\n",
            "io": "rchar: 3\nwchar: 4\nsyscr: 5\nsyscw: 6\nread_bytes: 1\nwrite_bytes: x\n",
            "stack": "[<0>] folio_wait_bit_common+0x13d/0x350\n[<0>] do_syscall_64+0x5c/0x90\n",
            "environ": "RANK=1\0EMPTY=\0A=b=c\0junk\0",
            "cmdline": "ray::RayTrainWorker\0\0\0",
            "schedstat": "123 2500000000 7\n",
            "status": "Name:\ta\nTracerPid:\t0\nCpus_allowed_list:\t0-7\n",
            "stat": _stat(7),
            "task/7/stat": _stat(7, state="D"),
            "task/7/wchan": "folio_wait_bit_common",
            "task/9/stat": _stat(9, "pt data", "R"),
            "task/9/wchan": "0",
        }
    )
    assert procfs.list_pids() == (7,)
    assert procfs.read_wchan(pid) is None
    assert procfs.read_syscall(pid) == 230
    assert procfs.read_io(pid) == IoCounters(
        read_bytes=1, write_bytes=None, rchar=3, wchar=4, syscr=5, syscw=6
    )
    assert procfs.read_kernel_stack(pid) == ("folio_wait_bit_common", "do_syscall_64")
    assert procfs.read_environ(pid) == {"RANK": "1", "EMPTY": "", "A": "b=c"}
    assert procfs.read_cmdline(pid) == ("ray::RayTrainWorker",)
    assert procfs.read_run_queue_seconds(pid) == 2.5
    assert procfs.read_status(pid)["Cpus_allowed_list"] == "0-7"
    assert procfs.read_os_threads(pid) == (
        OsThread(tid=7, name="python3", state="D", wchan="folio_wait_bit_common"),
        OsThread(tid=9, name="pt data", state="R", wchan=None),
    )


@pytest.mark.parametrize(("text", "number"), [("running\n", None), ("-1 0x7f 0x7f\n", -1)])
def test_a_running_thread_has_no_system_call(
    fake: Callable[[Mapping[str, str]], int], text: str, number: int | None
) -> None:
    """``running`` is unknown, -1 is blocked outside of a system call."""
    assert procfs.read_syscall(fake({"syscall": text})) == number


SAFE = {"status": "TracerPid:\t0\n", "task/7/stat": _stat(7), "task/9/stat": _stat(9)}


@pytest.mark.parametrize(
    ("changed", "hazard"),
    [
        ({}, None),
        (
            {"task/9/stat": _stat(9, state="D")},
            ("uninterruptible", "thread 9 is in uninterruptible sleep (D)"),
        ),
        ({"task/9/stat": _stat(9, state="T")}, ("stopped", "thread 9 is stopped (T)")),
        ({"task/7/stat": _stat(7, state="t")}, ("stopped", "thread 7 is stopped (t)")),
        (
            {"task/9/wchan": "request_wait_answer"},
            ("uninterruptible", "thread 9 waits for a FUSE server"),
        ),
        ({"status": "TracerPid:\t33\n"}, ("traced", "it is traced by process 33")),
        ({"status": ""}, ("gone", "its state could not be read")),
    ],
)
def test_stopping_is_safe_only_where_proc_says_so(
    fake: Callable[[Mapping[str, str]], int],
    changed: Mapping[str, str],
    hazard: tuple[str, str] | None,
) -> None:
    """Any thread in D, stopped, traced or waiting for FUSE forbids a dump that stops."""
    found = procfs.dump_hazard(fake({**SAFE, **changed}))
    assert (found and (found.kind, found.reason)) == hazard


def test_unread_threads_forbid_stopping(fake: Callable[[Mapping[str, str]], int]) -> None:
    """What is unknown is not safe."""
    assert procfs.dump_hazard(fake({"status": "TracerPid:\t0\n"})) is not None


@pytest.mark.parametrize(
    ("exe", "answer"),
    [
        ("/usr/bin/python3.11", (True, "3.11")),
        ("/opt/conda/bin/python3", (True, None)),
        ("/x/python3.13t", (True, "3.13")),
        ("/x/pypy3.10", (True, "3.10")),
        ("/bin/bash", (False, None)),
        ("/x/pythonista-server", (False, None)),
    ],
)
def test_an_interpreter_is_known_by_its_binary(exe: str, answer: tuple[bool, str | None]) -> None:
    """The name of the binary tells Python and mostly its version."""
    assert procfs.python_of(exe) == answer


def test_a_process_that_does_not_exist_is_unknown() -> None:
    """Every reader answers None, none raises."""
    readers: tuple[Callable[[int], object], ...] = (
        procfs.read_stat,
        procfs.read_wchan,
        procfs.read_os_threads,
        procfs.read_syscall,
        procfs.read_io,
        procfs.read_kernel_stack,
        procfs.read_run_queue_seconds,
        procfs.read_environ,
        procfs.read_cmdline,
        procfs.read_exe,
        procfs.read_maps,
        procfs.embedded_python,
    )
    assert [reader(NO_SUCH_PID) for reader in readers] == [None] * len(readers)
    assert procfs.read_status(NO_SUCH_PID) == {}
    assert procfs.is_gone(NO_SUCH_PID)
    assert procfs.dump_hazard(NO_SUCH_PID) is not None


@contextmanager
def _python(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
            process.kill()
    finally:
        process.kill()


@pytest.mark.integration
def test_a_stopped_process_with_two_threads_and_an_odd_name() -> None:
    """Name, state and every thread of a real process are read."""
    code = (
        "import sys, threading, pathlib\n"
        "pathlib.Path('/proc/self/comm').write_text('a) b (ü')\n"
        "threading.Thread(target=sys.stdin.read, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "threading.Event().wait(60)\n"
    )
    with _python(code) as process:
        os.kill(process.pid, signal.SIGSTOP)

        def state() -> str | None:
            stat = procfs.read_stat(process.pid)
            return stat.state if stat else None

        assert eventually(lambda: state() == "T")
        stat = procfs.read_stat(process.pid)
        assert stat is not None
        assert stat.name == "a) b (ü"
        assert stat.ppid == os.getpid()
        threads = procfs.read_os_threads(process.pid)
        assert threads is not None
        assert len(threads) == 2
        assert eventually(
            lambda: {x.state for x in procfs.read_os_threads(process.pid) or ()} == {"T"}
        )
        hazard = procfs.dump_hazard(process.pid)
        assert hazard is not None
        assert hazard.kind == "stopped"


@pytest.mark.integration
def test_a_zombie_has_a_state_and_no_environment() -> None:
    """Of a zombie only name, state and exit code are left."""
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", "exit(3)"], {"RANK": "1"})
    try:
        assert eventually(lambda: getattr(procfs.read_stat(child), "state", "") == "Z")
        stat = procfs.read_stat(child)
        assert stat is not None
        assert stat.exit_code == 3
        assert procfs.read_environ(child) is None
        assert procfs.read_cmdline(child) is None
        assert not procfs.is_gone(child)
    finally:
        os.waitpid(child, 0)
