"""py-spy: what its failures mean, and that no call of it ever outlives its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import eventually
from tests.rights.situations import needs_ptrace
from whyhang.collectors import procfs, pyspy
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import DumpMode
from whyhang.schemas.unread import UnreadKind


def test_py_spys_environment() -> None:
    """No variable that changes its texts, and the mark by which we know our own."""
    environ = pyspy.tool_environ({"RUST_BACKTRACE": "1", "LD_PRELOAD": "x.so", "PATH": "/bin"})
    assert environ == {"PATH": "/bin", "WHYHANG_INTERNAL": "1"}


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], str]:
    """Makes an executable that is called as py-spy is."""

    def make(script: str) -> str:
        path = tmp_path / "py-spy"
        version = '[ "$1" = --version ] && { echo "py-spy 9.8.7"; exit; }\n'
        path.write_text(f"#!/bin/sh\n{version}echo \"$@\" >> '{tmp_path}/calls'\n{script}\n")
        path.chmod(0o755)
        pyspy.tool_name.cache_clear()
        return str(path)

    return make


def _calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_without_py_spy_the_cure_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No binary is a reason, not an error."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    pyspy.find_pyspy.cache_clear()
    try:
        result = pyspy.dump(os.getpid(), "nonblocking", 5)
    finally:
        pyspy.find_pyspy.cache_clear()
    assert isinstance(result.threads, Missing)
    assert result.dump.kind == "no_tool"
    assert "pip install py-spy" in (result.dump.cure or "")
    assert not result.dump.ok


@pytest.mark.integration
@pytest.mark.parametrize(("mode", "flag"), [("nonblocking", "--nonblocking "), ("python", "")])
def test_what_is_asked_of_py_spy(
    fake: Callable[[str], str], tmp_path: Path, mode: DumpMode, flag: str
) -> None:
    """Never children in one call, never locals; its version stands with the dump."""
    thread = '[{"thread_name": "MainThread", "frames": [{"name": "f", "filename": "a.py"}]}]'
    result = pyspy.dump(1234, mode, 10, binary=fake(f"echo '{thread}'"))
    assert _calls(tmp_path) == [f"dump --json {flag}--pid 1234"]
    assert (result.dump.ok, result.dump.tool, result.dump.mode) == (True, "py-spy 9.8.7", mode)
    assert not isinstance(result.threads, Missing)
    assert result.threads[0].stack.frames[0].name == "f"


@pytest.mark.integration
@pytest.mark.parametrize("answer", ["echo '{'", "echo '[]'", "echo", "printf '[{\"frames\": 3}]'"])
def test_an_answer_without_stacks_is_missing(fake: Callable[[str], str], answer: str) -> None:
    """Success without stacks is no dump."""
    result = pyspy.dump(os.getpid(), "nonblocking", 10, binary=fake(answer))
    assert isinstance(result.threads, Missing)
    assert not result.dump.ok
    assert result.dump.error == result.threads.reason


@pytest.mark.integration
def test_a_passing_failure_is_tried_once_more(fake: Callable[[str], str], tmp_path: Path) -> None:
    """One retry where that helps, after the pause that helps; none where it does not."""
    pauses: list[float] = []
    binary = fake("echo 'Error: Failed to find python version from target process' >&2; exit 1")
    result = pyspy.dump(os.getpid(), "nonblocking", 10, binary=binary, sleep=pauses.append)
    assert len(_calls(tmp_path)) == 2
    assert pauses == [2.0]
    assert result.failure is not None
    assert result.failure.kind == "not_python"
    pyspy.dump(os.getpid(), "nonblocking", 1.5, binary=binary, sleep=pauses.append)
    assert len(_calls(tmp_path)) == 3
    assert len(pauses) == 1


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["nonblocking", "native"])
def test_a_py_spy_that_hangs_is_killed(
    fake: Callable[[str], str], tmp_path: Path, mode: DumpMode
) -> None:
    """The time limit is hard, and nothing is left behind."""
    binary = fake(f"echo $$ > '{tmp_path}/pid'; exec sleep 60")
    started = time.monotonic()
    result = pyspy.dump(os.getpid(), mode, 2.0, binary=binary)
    assert time.monotonic() - started < 30  # it would be a minute
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert isinstance(result.threads, Missing)
    assert eventually(lambda: procfs.is_gone(int((tmp_path / "pid").read_text())))


@pytest.mark.integration
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_a_stopping_dump_ends_with_its_collector(
    fake: Callable[[str], str], tmp_path: Path, blow: signal.Signals
) -> None:
    """A py-spy that holds its target dies when the collector is killed, or stopped too long."""
    binary = fake(
        f"echo $$ > '{tmp_path}/new'; mv '{tmp_path}/new' '{tmp_path}/pid'; exec sleep 60"
    )
    code = (
        "import sys; from whyhang.collectors.pyspy import dump; dump(1, 'native', {}, binary={!r})"
    )
    limit = 50 if blow == signal.SIGKILL else 3
    collector = subprocess.Popen([sys.executable, "-c", code.format(limit, binary)])
    try:
        assert eventually((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        assert not procfs.is_gone(pid)
        collector.send_signal(blow)
        assert eventually(lambda: procfs.is_gone(pid))
    finally:
        collector.kill()
        collector.wait()


WORK = """
import os, sys, threading, time
threading.Thread(target=time.sleep, args=(120,), name='a "b" (ü) 😀', daemon=True).start()
def outer():
    while True:
        os.write(1, b"ready\\n")
        if not sys.stdin.readline():
            return
outer()
"""


@contextmanager
def _target(code: str = WORK) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _runs(process: subprocess.Popen[str]) -> bool:
    """Whether the target still answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline() == "ready\n"


def _hazard(pid: int) -> UnreadKind | None:
    hazard = procfs.dump_hazard(pid)
    return hazard.kind if hazard is not None else None


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["nonblocking", "python", "native"])
@needs_ptrace
def test_a_real_dump(mode: DumpMode) -> None:
    """Every mode reads both threads; native frames show no bare address."""
    with _target() as process:
        result = pyspy.dump(process.pid, mode, 30)
        assert not isinstance(result.threads, Missing), result.threads
        assert {thread.name for thread in result.threads} == {"MainThread", 'a "b" (ü) 😀'}
        main = next(thread for thread in result.threads if thread.name == "MainThread")
        assert [frame.function for frame in main.stack.python] == ["outer", "<module>"]
        assert main.stack.has_native is (mode == "native")
        frames = [frame for thread in result.threads for frame in thread.stack.frames]
        assert not any(frame.name.startswith("0x") for frame in frames)
        assert result.dump.tool is not None
        assert result.dump.tool.startswith("py-spy ")
        assert _runs(process)


@pytest.mark.integration
@needs_ptrace
def test_addresses_are_resolved_in_a_real_dump() -> None:
    """Frames of a stripped C library name their place in it (where this host's is stripped)."""
    with _target() as process:
        raw = subprocess.run(
            [str(pyspy.find_pyspy()), "dump", "--native", "--json", "--pid", str(process.pid)],
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        if b'"0x' not in raw:
            pytest.skip("the libraries of this host have symbols")
        result = pyspy.dump(process.pid, "native", 30)
        assert not isinstance(result.threads, Missing), result.threads
        frames = [frame for thread in result.threads for frame in thread.stack.frames]
        assert any("+0x" in frame.name for frame in frames)


@pytest.mark.integration
@needs_ptrace
def test_a_stopped_process_is_read_without_being_woken() -> None:
    """Nonblocking shows its stack; a blocking dump says that it is stopped."""
    with _target() as process:
        os.kill(process.pid, signal.SIGSTOP)
        assert eventually(lambda: _hazard(process.pid) == "stopped")
        result = pyspy.dump(process.pid, "nonblocking", 30)
        assert not isinstance(result.threads, Missing), result.threads
        result = pyspy.dump(process.pid, "native", 30)
        assert result.failure is not None
        assert result.failure.kind == "stopped"
        stat = procfs.read_stat(process.pid)
        assert stat is not None
        assert stat.state == "T"


@pytest.mark.integration
@needs_ptrace
def test_what_is_no_python_process_says_so() -> None:
    """A foreign program, a zombie and a pid that is gone each have their reason."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        result = pyspy.dump(sleeper.pid, "nonblocking", 30, sleep=lambda _: None)
        sleeper.kill()
    assert result.failure is not None
    assert result.failure.kind == "not_python"
    zombie = os.posix_spawn("/bin/true", ["true"], {})
    try:
        assert eventually(lambda: getattr(procfs.read_stat(zombie), "state", "") == "Z")
        result = pyspy.dump(zombie, "nonblocking", 10)
        assert result.failure is not None
        assert result.failure.kind == "zombie"
    finally:
        os.waitpid(zombie, 0)
    result = pyspy.dump(2**22 + 5, "nonblocking", 10)
    assert result.failure is not None
    assert result.failure.kind == "gone"


@pytest.mark.integration
@needs_ptrace
def test_a_collector_killed_during_a_native_dump_leaves_the_target_running() -> None:
    """However the collector dies, no thread stays stopped or traced."""
    code = (
        "import sys\nfrom whyhang.collectors.pyspy import dump\n"
        "while True: dump(int(sys.argv[1]), 'native', 30)\n"
    )
    with _target() as process:
        for _ in range(3):
            collector = subprocess.Popen([sys.executable, "-c", code, str(process.pid)])
            try:
                assert eventually(
                    lambda: procfs.read_status(process.pid).get("TracerPid", "0") != "0"
                )
            finally:
                collector.kill()
                collector.wait()
            assert eventually(lambda: procfs.dump_hazard(process.pid) is None)
            assert _runs(process)


UNINTERRUPTIBLE = """
import os, sys, threading, time
def sleep_in_kernel():
    # A spawning parent sleeps uninterruptibly until its child has opened its files and started.
    open_fifo = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)
    os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[open_fifo])
os.write(1, b"ready\\n")
sleep_in_kernel()
os.write(1, b"ready\\n")
sys.stdin.read()
"""


@contextmanager
def _uninterruptible(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    code = UNINTERRUPTIBLE.replace("sys.argv[1]", repr(str(fifo)))
    with _target(code) as process:
        assert eventually(lambda: _hazard(process.pid) == "uninterruptible")
        yield process, fifo


@pytest.mark.integration
@needs_ptrace
def test_a_process_in_uninterruptible_sleep(tmp_path: Path) -> None:
    """Nonblocking reads it; a blocking dump is killed in time, and the process goes on later."""
    with _uninterruptible(tmp_path) as (process, fifo):
        result = pyspy.dump(process.pid, "nonblocking", 30)
        assert not isinstance(result.threads, Missing), result.threads
        assert result.threads[0].stack.python[0].function == "sleep_in_kernel"
        result = pyspy.dump(process.pid, "native", 1.0)
        assert result.failure is not None
        assert result.failure.kind == "timeout"
        fifo.open("w").close()
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"


@pytest.mark.integration
def test_only_a_process_that_was_left_stopped_is_woken() -> None:
    """SIGCONT goes to one that ran before, never to one that somebody stopped."""
    with _target() as process:
        assert not pyspy.resume_if_left_stopped(process.pid, was_stopped=False)
        os.kill(process.pid, signal.SIGSTOP)
        assert eventually(lambda: getattr(procfs.read_stat(process.pid), "state", "") == "T")
        assert not pyspy.resume_if_left_stopped(process.pid, was_stopped=True)
        assert pyspy.resume_if_left_stopped(process.pid, was_stopped=False)
        assert _runs(process)
