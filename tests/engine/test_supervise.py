"""``whyhang run`` as a wrapper: exit status, signals, streams, and what our failures do to a job.

All jobs here are real processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

Start = Callable[..., "subprocess.Popen[str]"]

STEPS = """
import sys, time
count, pause = int(sys.argv[1]), float(sys.argv[2])
longest = 0.0
for step in range(count):
    begin = time.monotonic()
    print(f"step {step}/{count} loss 1.0", flush=True)
    longest = max(longest, time.monotonic() - begin)
    time.sleep(pause)
open(sys.argv[3], "w").write(str(longest))
sys.exit(9)
"""

COUNT_SIGNALS = """
import signal, sys, time
heard = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda n, frame: heard.append(n))
print("ready", flush=True)
while not heard:
    time.sleep(0.02)
time.sleep(0.5)
print([int(n) for n in heard], flush=True)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start ``whyhang run`` in a session of its own, which is ended afterwards."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **options: object) -> subprocess.Popen[str]:
        settings: dict[str, object] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "stdin": subprocess.DEVNULL,
            "text": True,
            "cwd": tmp_path,
            "start_new_session": True,
        }
        settings.update(options)
        process: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
            [sys.executable, "-m", "whyhang.engine", "run", *words], **settings
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def children(pid: int) -> dict[int, str]:
    """The direct children of a process with their command lines."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found[int(path.name)] = command
    return found


def relays(pid: int) -> set[int]:
    """The relays of a supervisor, one for each of its pipes."""
    return {child for child, command in children(pid).items() if "relay.py" in command}


def wait_for_child(pid: int, words: str) -> int:
    """The child whose command line holds some words, as soon as it is there."""
    for _ in range(400):
        for child, command in children(pid).items():
            if words in command:
                return child
        time.sleep(0.05)
    raise AssertionError(f"no child with {words!r}: {children(pid)}")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("true",), 0),
        (("false",), 1),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("no-such-command-anywhere",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_exit_status_is_the_commands(start: Start, command: tuple[str, ...], expected: int) -> None:
    """`run` ends as a shell would after the same command."""
    process = start("--no-watch", "--", *command)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == expected
    assert ("cannot start" in errors) == (expected in (126, 127))


def test_no_command_is_a_usage_error(start: Start) -> None:
    """Without a command there is nothing to run."""
    process = start()
    process.communicate(timeout=30)
    assert process.returncode == 2


def test_arguments_arrive_untouched(start: Start) -> None:
    """Everything behind ``--`` is the job's, even what looks like our options."""
    words = ["--log", "x", "--", "-c", "a  b", "", "--strict"]
    code = "import sys; print(sys.argv[1:])"
    process = start("--no-watch", "--", sys.executable, "-c", code, *words)
    output, _ = process.communicate(timeout=30)
    assert output == f"{words}\n"


def test_environment_gains_what_is_documented_only(start: Start) -> None:
    """The job's environment is ours, a marker, and unbuffered output unless it says otherwise."""
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    environ = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": ""}
    process = start("--no-watch", "--", sys.executable, "-c", code, env=environ)
    output, _ = process.communicate(timeout=30)
    got = json.loads(output)
    got.pop("LC_CTYPE", None)  # python adds it by itself
    assert got.pop("WHYHANG_JOB")
    assert got == environ


@pytest.mark.parametrize("to_group", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signal_arrives_exactly_once(start: Start, number: signal.Signals, to_group: bool) -> None:
    """A signal reaches the job once, whether it was sent to us alone or to the whole group."""
    process = start("--no-watch", "--", sys.executable, "-c", COUNT_SIGNALS)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if to_group:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert output == f"[{int(number)}]\n"
    assert process.returncode == 0


def test_terminated_job_ends_run(start: Start) -> None:
    """SIGTERM to `run` ends a job that does not care, and the status tells of it."""
    process = start("--no-watch", "--", "sleep", "60")
    wait_for_child(process.pid, "sleep 60")
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_ignored_hangup_stays_ignored(start: Start) -> None:
    """Under nohup the job ignores SIGHUP as it would without us."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    process = start(
        *("--no-watch", "--", sys.executable, "-c", code),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    output, _ = process.communicate(timeout=30)
    assert output == "True\n"


def test_signals_are_not_blocked_for_the_job(start: Start) -> None:
    """The job starts with the signal mask that `run` was started with."""
    code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    process = start("--no-watch", "--", sys.executable, "-c", code)
    output, _ = process.communicate(timeout=30)
    assert output == "set()\n"


def test_nothing_stands_between_the_job_and_a_file(start: Start, tmp_path: Path) -> None:
    """A regular file as stdout is the job's own stdout."""
    code = "import os; s = os.fstat(1); print(s.st_dev, s.st_ino)"
    out = tmp_path / "out.log"
    with out.open("w") as log, (tmp_path / "err.log").open("w") as errors:
        process = start("--", sys.executable, "-c", code, stdout=log, stderr=errors)
        process.wait(30)
    status = out.stat()
    assert out.read_text() == f"{status.st_dev} {status.st_ino}\n"


def test_failing_relays_and_watcher_do_not_touch_the_job(start: Start, tmp_path: Path) -> None:
    """Relay killed, its successor stopped, watcher killed: every line, in order, at full speed."""
    result = tmp_path / "longest"
    process = start("--", sys.executable, "-c", STEPS, "500", "0.012", str(result))
    wait_for_child(process.pid, "relay.py")
    watcher = wait_for_child(process.pid, "whyhang.engine.watcher")
    time.sleep(0.5)
    os.kill(watcher, signal.SIGKILL)
    first = relays(process.pid)
    for relay in first:
        os.kill(relay, signal.SIGKILL)
    for _ in range(100):
        if len(relays(process.pid) - first) == len(first) == 2:
            break
        time.sleep(0.05)
    second = relays(process.pid)
    assert len(second) == 2
    assert not second & first
    for relay in second:
        os.kill(relay, signal.SIGSTOP)
    output, errors = process.communicate(timeout=60)

    assert output == "".join(f"step {step}/500 loss 1.0\n" for step in range(500))
    assert process.returncode == 9
    assert float(result.read_text()) < 2.0
    assert errors.count("the watcher has ended") == 1


def test_output_is_complete_when_the_relay_stands_still_at_the_end(start: Start) -> None:
    """A relay that is stopped when the job ends is replaced before `run` returns."""
    command = ("sh", "-c", "echo one; sleep 1.5; echo two")
    process = start("--", *command, stderr=subprocess.DEVNULL)
    os.kill(wait_for_child(process.pid, "relay.py"), signal.SIGSTOP)
    process.wait(30)
    output, _ = process.communicate(timeout=30)
    assert output == "one\ntwo\n"
    assert process.returncode == 0


def test_stopped_watcher_is_told_once(start: Start, tmp_path: Path) -> None:
    """A watcher that was stopped changes nothing for the job, and people are told."""
    log = tmp_path / "out.log"
    with log.open("w") as out:
        process = start(
            *("--", sys.executable, "-c", STEPS, "80", "0.08", str(tmp_path / "x")), stdout=out
        )
        os.kill(wait_for_child(process.pid, "whyhang.engine.watcher"), signal.SIGSTOP)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 9
    assert errors.count("nobody is watching this job") == 1
    assert log.read_text().count("\n") == 80


def test_full_disk_does_not_touch_the_job(start: Start, tmp_path: Path) -> None:
    """Where the log copy cannot grow, the output passes all the same, and people are told."""
    code = "for i in range(20000): print('step', i)\nimport time; time.sleep(1.5)"
    process = start(
        *("--", sys.executable, "-c", code),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    output, errors = process.communicate(timeout=60)
    assert output == "".join(f"step {i}\n" for i in range(20000))
    assert "File too large" in errors
    assert process.returncode == 0


def test_grandchild_with_the_pipe_does_not_hold_run(start: Start) -> None:
    """`run` ends with the job, and what a background process prints later still arrives."""
    begun = time.monotonic()
    process = start("--", "sh", "-c", "(sleep 4; echo late) & echo early")
    process.wait(30)
    assert time.monotonic() - begun < 4.0
    assert process.stdout is not None
    assert process.stdout.read() == "early\nlate\n"


def test_reader_that_goes_away_ends_an_endless_writer(start: Start) -> None:
    """When nobody reads any more the job gets SIGPIPE, as it would without us."""
    process = start("--", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(15) == 128 + signal.SIGPIPE


def test_reader_that_does_not_read_blocks_only_the_writing(start: Start) -> None:
    """Back-pressure reaches the job; once it is read, all is there and in order."""
    code = "for i in range(400000): print('step', i)"
    process = start("--", sys.executable, "-c", code)
    time.sleep(1.5)
    assert process.poll() is None
    output, _ = process.communicate(timeout=60)
    assert output == "".join(f"step {i}\n" for i in range(400000))


def test_job_outlives_a_killed_supervisor(start: Start, tmp_path: Path) -> None:
    """kill -9 of `run` itself takes neither the job nor its output away."""
    result = tmp_path / "done"
    process = start("--", sys.executable, "-c", STEPS, "30", "0.1", str(result))
    assert process.stdout is not None
    assert process.stdout.readline() == "step 0/30 loss 1.0\n"
    process.kill()
    process.wait(10)
    rest = process.stdout.read()
    assert rest == "".join(f"step {step}/30 loss 1.0\n" for step in range(1, 30))
    for _ in range(100):
        if result.exists():
            break
        time.sleep(0.05)
    assert result.exists()
