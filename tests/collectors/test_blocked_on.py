"""What a blocked process waits for, of real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from whyhang.collectors import blocked_on, procfs
from whyhang.collectors.blocked_on import read_blocked_on
from whyhang.schemas.process import BlockedOn, OsThread

pytestmark = pytest.mark.integration
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python code that will block; the answer is its pid."""
    started: list[subprocess.Popen[bytes]] = []

    def run(code: str, *words: str, pass_fds: tuple[int, ...] = ()) -> int:
        command = [sys.executable, "-c", code, *words]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=pass_fds))
        return started[-1].pid

    yield run
    for process in started:
        process.kill()
        process.communicate()


def _eventually(pid: int, *, home: str = "") -> BlockedOn | None:
    """What it is blocked on, once it is."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = read_blocked_on(pid, home=home)
        # While it starts, it reads files of Python.
        if found is not None and not (found.path or "").endswith((".py", ".pyc", ".so")):
            return found
        time.sleep(0.02)
    return None


def test_a_read_names_the_file(start: Start, tmp_path: Path) -> None:
    """Path, descriptor and call; the home directory is not told."""
    fifo = tmp_path / "shard-3.bin"
    os.mkfifo(fifo)
    pid = start("import os, sys; os.read(os.open(sys.argv[1], os.O_RDWR), 1)", str(fifo))
    found = _eventually(pid)
    assert found is not None
    assert (found.call, found.path) == ("read", str(fifo))
    shortened = _eventually(pid, home=str(tmp_path))
    assert shortened is not None
    assert shortened.path == "~/shard-3.bin"


def test_a_full_pipe_is_named(start: Start) -> None:
    """A pipe has no path; that it is one is what tells."""
    reader, writer = os.pipe()
    code = "import os, sys; os.write(int(sys.argv[1]), b'x' * (1 << 20))"
    found = _eventually(start(code, str(writer), pass_fds=(writer,)))
    os.close(reader)
    os.close(writer)
    assert found is not None
    assert (found.call, found.fd) == ("write", writer)
    assert (found.path or "").startswith("pipe:[")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_socket_names_its_peer(start: Start, host: str) -> None:
    """A thread that receives names the address it receives from."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no such address on this machine")
    with server:
        port = server.getsockname()[1]
        code = "import socket, sys; socket.create_connection((sys.argv[1], sys.argv[2])).recv(1)"
        found = _eventually(start(code, host, str(port)))
    assert found is not None
    assert found.call == "recv"
    assert found.peer == (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def test_a_listener_has_no_peer(start: Start) -> None:
    """Who waits for a connection waits for nobody in particular."""
    code = "import socket; socket.create_server(('127.0.0.1', 0)).accept()"
    found = _eventually(start(code))
    assert found is not None
    assert (found.call, found.peer) == ("accept", "listening")


def test_what_waits_for_no_descriptor_is_unknown(start: Start, tmp_path: Path) -> None:
    """A sleep names nothing, neither does an open: its path is in the process's memory."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for code in ("import time; time.sleep(60)", f"open({str(fifo)!r})"):
        pid = start(code)
        deadline = time.monotonic() + 30
        while procfs.read_wchan(pid) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        assert read_blocked_on(pid) is None
    assert read_blocked_on(2**22 + 5) is None


def test_a_thread_in_d_comes_before_the_main_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main thread may only be joining the one that sleeps."""
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))
    monkeypatch.setattr(blocked_on, "_CALLS", {0: "read"})
    (tmp_path / "7" / "fd").mkdir(parents=True)
    (tmp_path / "7" / "fd" / "9").symlink_to("/data/x.bin")
    for tid, text in ((7, "202 0x1 0x0\n"), (8, "0 0x9 0x0\n")):
        (tmp_path / "7" / "task" / str(tid)).mkdir(parents=True)
        (tmp_path / "7" / "task" / str(tid) / "syscall").write_text(text)
    threads = (OsThread(tid=7, state="S"), OsThread(tid=8, state="D"))
    assert read_blocked_on(7, threads) == BlockedOn(call="read", fd=9, path="/data/x.bin")
    assert read_blocked_on(7) is None
