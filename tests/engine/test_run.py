"""``whyhang run`` as a watcher: its configuration, and the incidents that it writes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.demo import prepare
from whyhang.engine.orphans import kill_marked, marked_processes
from whyhang.schemas.environment import MARKER, is_marked, nested

pytestmark = pytest.mark.integration

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run ``whyhang run`` to its end in a directory of its own; nothing of it is left."""
    mark = str(tmp_path)

    def start(*words: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "whyhang.engine", "run", *words],
            cwd=tmp_path,
            env={**os.environ, "TEST_MARK": mark},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
        )

    yield start
    for pid in marked_processes(mark, "TEST_MARK"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def incidents(store: Path) -> list[dict[str, Any]]:
    """The verdicts of a store."""
    return [json.loads(path.read_text()) for path in sorted(store.glob("*/verdict.json"))]


def test_broken_configuration_starts_the_job_with_a_warning(run: Run, tmp_path: Path) -> None:
    """A mistake in hang.yaml costs no training time, and all findings are shown."""
    (tmp_path / "hang.yaml").write_text("version: 1\nrulez: []\ndetect: {stall: nonsense}\n")
    done = run("--", "echo", "trained")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "rulez" in done.stderr
    assert "nonsense" in done.stderr
    assert "WARNING" in done.stderr


@pytest.mark.parametrize("words", [("--strict",), ("--strict", "-c", "missing.yaml")])
def test_strict_refuses_to_start(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """With --strict a broken or missing configuration is exit status 2 and no job."""
    (tmp_path / "hang.yaml").write_text("version: 1\nrulez: []\n")
    done = run(*words, "--", "touch", "started")
    assert done.returncode == 2
    assert not (tmp_path / "started").exists()


def test_missing_named_configuration_is_told(run: Run) -> None:
    """A file that was asked for and is not there is no silent default."""
    done = run("-c", "missing.yaml", "--", "echo", "trained")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "missing.yaml: no such file" in done.stderr


def test_no_log_is_told_at_once(tmp_path: Path) -> None:
    """On a terminal, without a log's name, `run` says what to do, and starts the job."""
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "whyhang.engine", "run", "--", "echo", "trained"]
    subprocess.run(command, cwd=tmp_path, stdout=terminal, stderr=terminal, timeout=30, check=True)
    os.close(terminal)
    said = b""
    with contextlib.suppress(OSError):  # a terminal ends with EIO
        while data := os.read(ours, 4096):
            said += data
    os.close(ours)
    assert b"no log to watch" in said
    assert b"trained" in said


def test_pause_that_heals_is_no_incident(run: Run, tmp_path: Path) -> None:
    """A job that goes on between suspicion and verdict leaves nothing but a line in our log."""
    (tmp_path / "hang.yaml").write_text(
        'version: 1\ninclude: ["builtin:pytorch@1"]\ndetect: {stall: 2s, confirm: 2s}\n'
    )
    # The pause lasts until it has made the watcher suspect something, the rest until it is eased.
    code = """
import pathlib, time
def wait_for(words):
    while not any(words in log.read_text() for log in pathlib.Path("store").rglob("watcher.log")):
        time.sleep(0.1)
for step in range(8):
    print(f"step {step}/99 loss 1.0")
    if step > 4:
        wait_for("advancing -> suspect" if step == 5 else "suspect -> healed")
    time.sleep(0.3)
"""
    done = run("--store", "store", "--", sys.executable, "-c", code)
    assert done.returncode == 0
    assert incidents(tmp_path / "store") == []
    (journal,) = (tmp_path / "store").rglob("watcher.log")
    text = journal.read_text()
    assert "suspect -> healed" in text
    assert done.stderr == ""


def test_store_that_cannot_be_written_does_not_touch_the_job(run: Run, tmp_path: Path) -> None:
    """A store in an impossible place: the job runs, and its failure is still reported."""
    (tmp_path / "file").write_text("")
    steps = "".join(f"step {step}/9 loss 1\n" for step in range(1, 5))
    done = run("--store", "file/store", "--", "sh", "-c", f"printf '{steps}'; exit 5")
    assert (done.returncode, done.stdout) == (5, steps)
    assert "no_hang" in done.stderr


def test_failed_job_is_an_incident(run: Run, tmp_path: Path) -> None:
    """A job that ends by itself with an error is no hang; the report says who ended."""
    report = (
        "E1129 17:14:09.123000 4091 torch/distributed/elastic/multiprocessing/api.py:874] failed "
        "(exitcode: -9) local_rank: 2 (pid: 4157) of binary: /usr/bin/python3"
    )
    code = f"""
for step in range(5): print(f"step {{step}}/9 loss 1.0")
print({report!r})
raise SystemExit(1)
"""
    done = run("--store", "store", "--", sys.executable, "-c", code)
    assert done.returncode == 1
    (verdict,) = incidents(tmp_path / "store")
    assert (verdict["verdict"], verdict["category"]) == ("no_hang", "exited_rank")
    assert verdict["suspects"]["rank_list"] == [2]
    index = next((tmp_path / "store").glob("*/incident.json"))
    assert json.loads(index.read_text())["trigger"] == "exit"


def test_job_that_ends_well_leaves_nothing_to_read(run: Run, tmp_path: Path) -> None:
    """No incident and no copy of the output."""
    done = run("--store", "store", "--", "sh", "-c", "echo step 1/9; sleep 0.5")
    assert done.returncode == 0
    assert incidents(tmp_path / "store") == []
    assert not list((tmp_path / "store").rglob("stdout.log"))


def test_certain_hang_is_stopped_where_that_is_wanted(run: Run, tmp_path: Path) -> None:
    """`on_hang: stop`: evidence and verdict first, then the job ends and `run` returns 75."""
    job = prepare(tmp_path / "job")
    rules = (files("whyhang.engine.demo") / "hang.yaml").read_text()
    (job / "hang.yaml").write_text(
        rules.replace("6s", "3s") + "\non_hang: {action: stop, grace: 2s}\n"
    )
    done = run(
        *("-c", "job/hang.yaml", "--store", "store", "--"),
        *(sys.executable, "job/launch.py", "--ranks", "4", "--hang-rank", "2"),
        *("--hang-step", "6"),
        seconds=90,
    )
    assert done.returncode == 75, done.stderr
    assert done.stdout.splitlines()[-1].startswith("step 5/")
    (verdict,) = incidents(tmp_path / "store")
    assert (verdict["verdict"], verdict["category"]) == ("local_hang", "dataloader")
    assert verdict["suspects"]["rank_list"] == [2]
    (incident,) = (path.parent for path in (tmp_path / "store").glob("*/verdict.json"))
    assert {path.name for path in (incident / "samples").iterdir()} == {"0", "1"}
    assert (incident / "diagnosis.md").is_file()
    shutil.rmtree(job)


def test_a_run_inside_a_run_belongs_to_both(run: Run) -> None:
    """What is stopped from outside is found, although a `run` within has marked it, too."""
    look = "import os; print(os.environ['WHYHANG_JOB'])"
    done = run(
        *("--no-watch", "--", sys.executable, "-m", "whyhang.engine", "run", "--no-watch", "--"),
        *(sys.executable, "-c", look),
    )
    outer, inner = done.stdout.strip().split(",")[-2:]
    assert is_marked(done.stdout.strip(), outer)
    assert is_marked(done.stdout.strip(), inner)
    assert not is_marked(outer, inner)
    sleeper = subprocess.Popen(
        ["sleep", "100"], env={**os.environ, MARKER: nested(outer, inner)}, start_new_session=True
    )
    kill_marked(outer)
    assert sleeper.wait(timeout=10) == -signal.SIGKILL


def test_command_that_never_trained_is_no_incident(run: Run, tmp_path: Path) -> None:
    """A command that fails at once speaks for itself: nothing is added to its words."""
    done = run("--store", "store", "--", "sh", "-c", "echo usage; exit 3")
    assert done.returncode == 3
    assert "no_hang" not in done.stderr
    assert incidents(tmp_path / "store") == []


@pytest.mark.parametrize("ras", ["auto", "never"])
def test_variables_are_added_where_unset(run: Run, tmp_path: Path, ras: str) -> None:
    """Unbuffered output, and a port of the job's own for NCCL RAS unless that is switched off."""
    (tmp_path / "hang.yaml").write_text(f"version: 1\ncollect: {{ras: {ras}}}\n")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    done = run("--store", "store", "--", sys.executable, "-c", code)
    environ = json.loads(done.stdout)
    assert environ["PYTHONUNBUFFERED"] == os.environ.get("PYTHONUNBUFFERED", "1")
    address = environ.get("NCCL_RAS_ADDR", "")
    assert address.startswith("localhost:") if ras == "auto" else not address
