"""The lab's own instruments, tried on small processes: what it measures is what happens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import stopwatch
from tests.lab.machine import harm, state, states, why_not
from tests.lab.mounts import MountKind, mounted

pytestmark = pytest.mark.integration

SOON_SECONDS = 20.0
STOP_SECONDS = 0.4
READ = "import sys; sys.stdin.readline(); open(sys.argv[1], 'rb').read()"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing for long."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def await_state(pid: int, letters: str) -> None:
    """Wait until a process is in one of these states."""
    deadline = time.monotonic() + SOON_SECONDS
    while state(pid) not in letters or not state(pid):
        assert time.monotonic() < deadline, f"state {state(pid)}"
        time.sleep(0.01)


def measured(pid: int, stop_seconds: float) -> dict[str, float]:
    """What the stopwatch says of a process that is stopped and goes on meanwhile."""
    command = [sys.executable, "-I", "-S", stopwatch.__file__, str(pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watch:
        # It looks once it sleeps between two looks.
        await_state(watch.pid, "S")
        time.sleep(0.2)
        if stop_seconds:
            subprocess.run(["kill", "-STOP", str(pid)], check=True)
            time.sleep(stop_seconds)
            subprocess.run(["kill", "-CONT", str(pid)], check=True)
            time.sleep(0.2)
        told, _ = watch.communicate()
    longest: dict[str, float] = json.loads(told)
    return longest


def test_a_stop_is_measured(sleeper: subprocess.Popen[bytes]) -> None:
    """As long as it lasted, but for a look."""
    (longest,) = measured(sleeper.pid, STOP_SECONDS).values()
    assert longest > STOP_SECONDS / 2


def test_a_process_that_runs_was_never_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    """No stop is no time."""
    assert measured(sleeper.pid, 0.0) == {str(sleeper.pid): 0.0}


def test_who_was_stopped_before_is_not_measured(sleeper: subprocess.Popen[bytes]) -> None:
    """A scenario's own SIGSTOP is none of whyhang's stops."""
    sleeper.send_signal(signal.SIGSTOP)
    await_state(sleeper.pid, "T")
    assert measured(sleeper.pid, 0.0) == {}


def test_a_process_left_stopped_is_harmed(sleeper: subprocess.Popen[bytes]) -> None:
    """It ran before and does not any more."""
    before = states([sleeper.pid])
    sleeper.send_signal(signal.SIGSTOP)
    await_state(sleeper.pid, "T")
    assert harm(before) == (f"process {sleeper.pid} was left stopped (T)",)


def test_a_process_that_was_killed_is_harmed(sleeper: subprocess.Popen[bytes]) -> None:
    """A zombie has ended, too."""
    before = states([sleeper.pid])
    sleeper.kill()
    await_state(sleeper.pid, "Z")
    assert harm(before) == (f"process {sleeper.pid} has ended",)


def test_a_process_that_goes_on_is_unharmed(sleeper: subprocess.Popen[bytes]) -> None:
    """Nor is one that was stopped all the time."""
    running = states([sleeper.pid])
    assert harm(running) == ()
    sleeper.send_signal(signal.SIGSTOP)
    await_state(sleeper.pid, "T")
    assert harm(states([sleeper.pid])) == ()


@pytest.mark.parametrize(("kind", "letter"), [("fuse_direct", "S"), ("fuse_cached", "D")])
def test_a_reader_of_the_dead_file_system_waits_until_it_is_released(
    kind: MountKind, letter: str, tmp_path: Path
) -> None:
    """In the kernel's own words for it; once released, it gets an error."""
    reason = why_not(["fuse"])
    if reason is not None:
        pytest.skip(reason)
    with mounted(kind, tmp_path) as mount:
        command = [sys.executable, "-I", "-S", "-c", READ, str(mount.path / "shard")]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as reader:
            assert reader.stdin is not None
            reader.stdin.write("\n")
            reader.stdin.close()
            try:
                wanted = "request_wait_answer" if letter == "S" else "folio"
                wait = Path(f"/proc/{reader.pid}/wchan")
                deadline = time.monotonic() + SOON_SECONDS
                while state(reader.pid) != letter or wanted not in wait.read_text():
                    assert time.monotonic() < deadline, f"{state(reader.pid)} {wait.read_text()}"
                    time.sleep(0.01)
            finally:
                mount.release()
            assert reader.wait(SOON_SECONDS) == 1
