"""`watch`: the watch attached to a job that already runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import LONG_SECONDS
from whyhang.engine import modesty, stall, watcher
from whyhang.engine.cli.main import main

TRAIN = """
import sys, time

def publish_metrics():
    time.sleep(600)

for step in range(100, 112):
    print(f"step {step}/1000 loss 1.0", flush=True)
    time.sleep(0.2)
publish_metrics()
"""
CONFIG = """\
version: 1
detect: {stall: 2s, confirm: 1s}
on_hang: {action: stop}
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A job of one rank that writes to a file, and soon stands still."""
    environ = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    with (tmp_path / "train.log").open("wb") as log:
        child = subprocess.Popen([sys.executable, "-c", TRAIN], env=environ, stdout=log)
    yield child
    child.kill()
    child.wait()


@pytest.mark.integration
def test_a_running_job_is_watched(
    job: subprocess.Popen[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its log is found, its hang diagnosed, nothing is stopped; the watch ends with the job."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(stall, "BETWEEN_SAMPLES_SECONDS", 1.0)
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(modesty, "be_modest", lambda: None)
    (tmp_path / "hang.yaml").write_text(CONFIG)
    ended: list[bool] = []

    def end_after_the_verdict() -> None:
        deadline = time.monotonic() + LONG_SECONDS
        while time.monotonic() < deadline and not list(tmp_path.glob("store/*/verdict.json")):
            time.sleep(0.1)
        ended.append(job.poll() is None)
        job.kill()
        job.wait()

    thread = threading.Thread(target=end_after_the_verdict)
    thread.start()
    assert main(["watch", "--pid", str(job.pid), "--store", "store"]) == 0
    thread.join()
    assert ended == [True]
    (incident,) = tmp_path.glob("store/*/incident.json")
    index = json.loads(incident.read_text())
    assert (index["trigger"], index["progress"]["step"]) == ("stall", 111)
    said = capfd.readouterr().err
    assert "stops nothing" in said
    assert f"reports: {incident.parent}" in said
    assert not list((tmp_path / "tmp").glob("whyhang-spool-*/*"))


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_leaving_the_watch_leaves_the_job(
    job: subprocess.Popen[bytes], tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C, and what ends a sidecar, end the watch alone; nothing of it is left."""
    words = [sys.executable, "-m", "whyhang.engine", "watch", "--pid", str(job.pid)]
    child = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert child.stderr is not None
    assert b"Ctrl-C" in child.stderr.readline()
    while "advancing" not in "".join(x.read_text() for x in tmp_path.rglob("watcher.log")):
        time.sleep(0.05)
    child.send_signal(number)
    child.communicate(timeout=LONG_SECONDS)
    assert child.returncode == 0
    assert job.poll() is None
    assert not list(tmp_path.glob("whyhang-spool-*/*"))


@pytest.mark.integration
def test_what_cannot_be_watched_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process without ranks and a job without a log are errors with a hint."""
    monkeypatch.chdir(tmp_path)
    environ = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    for command, env, told in (
        (["sleep", "600"], dict(os.environ), "no process with a rank"),
        ([sys.executable, "-c", "input()"], environ, "writes to no file"),
    ):
        with subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            time.sleep(0.3)
            status = main(["watch", "--pid", str(child.pid)])
            child.kill()
        assert status == 2
        assert told in capsys.readouterr().err
