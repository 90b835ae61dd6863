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
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.patience import LONG_SECONDS, eventually
from whyhang.engine.lane import STALLED_SECONDS
from whyhang.engine.supervise import TICK_SECONDS

pytestmark = pytest.mark.integration

Start = Callable[..., "subprocess.Popen[str]"]

# Prints steps until the file that is named appears; another one tells how long a line took at most.
STEPS = """
import os, sys, time
enough, result = sys.argv[1:]
longest, step = 0.0, 0
while not os.path.exists(enough):
    begin = time.monotonic()
    print(f"step {step} loss 1.0", flush=True)
    longest = max(longest, time.monotonic() - begin)
    step += 1
    time.sleep(0.01)
open(result, "w").write(f"{step} {longest}")
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
    found: list[int] = []

    def is_there() -> bool:
        found.extend(child for child, command in children(pid).items() if words in command)
        return bool(found)

    assert eventually(is_there), f"no child with {words!r}: {children(pid)}"
    return found[0]


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
    _, errors = process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == expected
    assert ("cannot start" in errors) == (expected in (126, 127))


def test_empty_program_name_is_told(start: Start) -> None:
    """An unset variable before the arguments is a command that cannot be started."""
    process = start("--no-watch", "--", "")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 126
    assert "cannot start ''" in errors


def test_ignored_sigchld_loses_no_exit_status(start: Start) -> None:
    """A launcher that ignores the end of its children does not keep `run` from noticing ours."""
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    process = start("--no-watch", "--", "sh", "-c", "exit 7", preexec_fn=ignore)
    assert process.wait(timeout=30) == 7


@pytest.mark.parametrize("closed", [(0,), (2,), (0, 2), (1,), (0, 1, 2)])
def test_closed_streams_stay_closed_and_cost_no_output(
    start: Start, tmp_path: Path, closed: tuple[int, ...]
) -> None:
    """What the job prints into a pipe arrives, whichever other stream is closed."""
    look = "import os; print([n for n in (0, 1, 2) if not os.path.exists(f'/proc/self/fd/{n}')])"
    words = f'{sys.executable} -c "{look}" >{tmp_path}/closed; echo step 1/2; exit 5'

    def close() -> None:
        for number in closed:
            os.close(number)

    process = start("--", "sh", "-c", words, preexec_fn=close)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 5
    assert output == ("" if 1 in closed else "step 1/2\n")
    told = (tmp_path / "closed").read_text()
    assert told == f"{[number for number in closed if number != 1]}\n"


def test_job_starts_where_the_watch_cannot_be_prepared(start: Start, tmp_path: Path) -> None:
    """A working directory that is gone costs the watch, not the training."""
    gone = tmp_path / "gone"
    gone.mkdir()
    process = start("--", "sh", "-c", "exit 7", cwd=gone, preexec_fn=gone.rmdir)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 7
    assert "nobody watches this job" in errors


def test_no_command_is_a_usage_error(start: Start) -> None:
    """Without a command there is nothing to run."""
    process = start()
    process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == 2


def test_arguments_arrive_untouched(start: Start) -> None:
    """Everything behind ``--`` is the job's, even what looks like our options."""
    words = ["--log", "x", "--", "-c", "a  b", "", "--strict"]
    code = "import sys; print(sys.argv[1:])"
    process = start("--no-watch", "--", sys.executable, "-c", code, *words)
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == f"{words}\n"


def test_environment_gains_what_is_documented_only(start: Start) -> None:
    """The job's environment is ours, a marker, and unbuffered output unless it says otherwise."""
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    environ = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": ""}
    process = start("--no-watch", "--", sys.executable, "-c", code, env=environ)
    output, _ = process.communicate(timeout=LONG_SECONDS)
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
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == f"[{int(number)}]\n"
    assert process.returncode == 0


def test_terminated_job_ends_run(start: Start) -> None:
    """SIGTERM to `run` ends a job that does not care, and the status tells of it."""
    process = start("--no-watch", "--", "sleep", "60")
    wait_for_child(process.pid, "sleep 60")
    process.terminate()
    process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM


def test_ignored_hangup_stays_ignored(start: Start) -> None:
    """Under nohup the job ignores SIGHUP as it would without us."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    process = start(
        *("--no-watch", "--", sys.executable, "-c", code),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == "True\n"


def test_signals_are_not_blocked_for_the_job(start: Start) -> None:
    """The job starts with the signal mask that `run` was started with."""
    code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    process = start("--no-watch", "--", sys.executable, "-c", code)
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == "set()\n"


def test_nothing_stands_between_the_job_and_a_file(start: Start, tmp_path: Path) -> None:
    """A regular file as stdout is the job's own stdout."""
    code = "import os; s = os.fstat(1); print(s.st_dev, s.st_ino)"
    out = tmp_path / "out.log"
    with out.open("w") as log, (tmp_path / "err.log").open("w") as errors:
        process = start("--", sys.executable, "-c", code, stdout=log, stderr=errors)
        process.wait(LONG_SECONDS)
    status = out.stat()
    assert out.read_text() == f"{status.st_dev} {status.st_ino}\n"


def test_failing_relays_and_watcher_do_not_touch_the_job(start: Start, tmp_path: Path) -> None:
    """Relay killed, its successor stopped, watcher killed: every line, in order, at full speed."""
    enough, result = tmp_path / "enough", tmp_path / "result"
    process = start("--", sys.executable, "-c", STEPS, str(enough), str(result))
    watcher = wait_for_child(process.pid, "whyhang.engine.watcher")
    os.kill(watcher, signal.SIGKILL)
    seen: set[int] = set()
    for blow in (signal.SIGKILL, signal.SIGSTOP, 0):
        assert eventually(lambda: len(relays(process.pid) - seen) == 2)
        for relay in relays(process.pid) - seen:
            seen.add(relay)
            os.kill(relay, blow)
    assert len(seen) == 6
    enough.touch()
    output, errors = process.communicate(timeout=LONG_SECONDS)

    steps, longest = result.read_text().split()
    assert output == "".join(f"step {step} loss 1.0\n" for step in range(int(steps)))
    assert process.returncode == 9
    # Those that were stopped held up nothing for as long as it took to notice.
    assert float(longest) < STALLED_SECONDS
    assert errors.count("the watcher has ended") == 1


def test_output_is_complete_when_the_relay_stands_still_at_the_end(start: Start) -> None:
    """A relay that is stopped when the job ends is replaced before `run` returns."""
    command = ("sh", "-c", "echo one; sleep 1.5; echo two")
    process = start("--", *command, stderr=subprocess.DEVNULL)
    os.kill(wait_for_child(process.pid, "relay.py"), signal.SIGSTOP)
    process.wait(LONG_SECONDS)
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == "one\ntwo\n"
    assert process.returncode == 0


def test_stopped_watcher_is_told_once(start: Start, tmp_path: Path) -> None:
    """A watcher that was stopped changes nothing for the job, and people are told."""
    log, enough, result = tmp_path / "out.log", tmp_path / "enough", tmp_path / "result"
    with log.open("w") as out:
        process = start("--", sys.executable, "-c", STEPS, str(enough), str(result), stdout=out)
        os.kill(wait_for_child(process.pid, "whyhang.engine.watcher"), signal.SIGSTOP)
        assert process.stderr is not None
        assert "nobody is watching this job" in process.stderr.readline()
        time.sleep(2.5 * TICK_SECONDS)  # for a second time that must not come
        enough.touch()
        errors = process.stderr.read()
    assert process.wait(LONG_SECONDS) == 9
    assert "nobody is watching this job" not in errors
    assert log.read_text().count("\n") == int(result.read_text().split()[0])


def test_full_disk_does_not_touch_the_job(start: Start, tmp_path: Path) -> None:
    """Where the log copy cannot grow, the output passes all the same, and people are told."""
    code = "for i in range(20000): print('step', i)\nprint(end='', flush=True)\ninput()"
    process = start(
        *("--", sys.executable, "-c", code),
        stdin=subprocess.PIPE,
        # Or its imports would leave cut .pyc files.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.append(stdout.read()))
    reader.start()
    assert "File too large" in stderr.readline()
    stdin.write("\n")
    stdin.flush()
    reader.join()
    assert "".join(printed) == "".join(f"step {i}\n" for i in range(20000))
    assert process.wait(LONG_SECONDS) == 0


def test_grandchild_with_the_pipe_does_not_hold_run(start: Start, tmp_path: Path) -> None:
    """`run` ends with the job, and what a background process prints later still arrives."""
    os.mkfifo(tmp_path / "gate")
    process = start("--", "sh", "-c", "(read line < gate; echo $line) & echo early")
    process.wait(LONG_SECONDS)
    (tmp_path / "gate").write_text("late\n")
    assert process.stdout is not None
    assert process.stdout.read() == "early\nlate\n"


def test_reader_that_goes_away_ends_an_endless_writer(start: Start) -> None:
    """When nobody reads any more the job gets SIGPIPE, as it would without us."""
    process = start("--", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(LONG_SECONDS) == 128 + signal.SIGPIPE


def test_reader_that_does_not_read_blocks_only_the_writing(start: Start) -> None:
    """Back-pressure reaches the job; once it is read, all is there and in order."""
    code = "for i in range(400000): print('step', i)"
    process = start("--", sys.executable, "-c", code)
    time.sleep(1.5)
    assert process.poll() is None
    output, _ = process.communicate(timeout=LONG_SECONDS)
    assert output == "".join(f"step {i}\n" for i in range(400000))


def test_job_outlives_a_killed_supervisor(start: Start, tmp_path: Path) -> None:
    """kill -9 of `run` itself takes neither the job nor its output away."""
    enough, result = tmp_path / "enough", tmp_path / "result"
    process = start("--", sys.executable, "-c", STEPS, str(enough), str(result))
    assert process.stdout is not None
    assert process.stdout.readline() == "step 0 loss 1.0\n"
    process.kill()
    process.wait(LONG_SECONDS)
    for step in range(1, 30):
        assert process.stdout.readline() == f"step {step} loss 1.0\n"
    enough.touch()
    rest = process.stdout.read()
    assert eventually(lambda: result.exists() and bool(result.read_text()))
    steps = int(result.read_text().split()[0])
    assert rest == "".join(f"step {step} loss 1.0\n" for step in range(30, steps))
