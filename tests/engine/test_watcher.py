"""The watcher's loop around real processes: what follows a verdict, a restart, an end."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.patience import LONG_SECONDS
from whyhang.engine import aftermath, early, stall, watcher
from whyhang.engine.configure import config_to
from whyhang.engine.watcher import Watcher
from whyhang.schemas.config import Config, DetectConfig, OnHangConfig

pytestmark = pytest.mark.integration

# Starts its one rank again when that ends, as a launcher does.
LAUNCH = """
import os, subprocess, sys
environ = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
for attempt in range(3):
    subprocess.call([sys.executable, sys.argv[1]], env=environ)
"""
TRAIN = """
import time

def publish_metrics():
    time.sleep(600)

publish_metrics()
"""
TIMEOUT = (
    "[rank0]:[E1128 21:11:49.041188078 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600038 milliseconds before timing out.\n"
)


class Scene:
    """A job of one rank, its log, and the watcher, whose steps the test takes."""

    def __init__(self, root: Path, **config: Any) -> None:
        self.log, self.store = root / "train.log", root / "store"
        self.log.write_text("")
        (root / "launch.py").write_text(LAUNCH)
        (root / "train.py").write_text(TRAIN)
        self.job = subprocess.Popen(
            [sys.executable, str(root / "launch.py"), str(root / "train.py")],
            start_new_session=True,
        )
        settings = {
            "config": config_to(Config(**config)),
            "pid": self.job.pid,
            "logs": [[str(self.log), 0]],
            "scratch": [str(root / "scratch")],
            "store": str(self.store),
            "rules": None,
            "marker": "none",
        }
        self.journal = root / "scratch" / "watcher.log"
        self.requests = os.open(os.devnull, os.O_WRONLY)
        self.watcher = Watcher(settings, self.requests)

    def close(self) -> None:
        """End everything."""
        os.killpg(self.job.pid, signal.SIGKILL)
        self.job.wait()
        os.close(self.requests)

    @property
    def trainer(self) -> int:
        """The pid of the rank; waits for it."""
        children = Path(f"/proc/{self.job.pid}/task/{self.job.pid}/children")
        deadline = time.monotonic() + LONG_SECONDS
        while time.monotonic() < deadline:
            for pid in children.read_text().split():
                if b"train.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
            time.sleep(0.05)
        raise AssertionError("no trainer")

    def until(self, reached: Callable[[], object], seconds: float = LONG_SECONDS) -> None:
        """Take steps until something is so."""
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, self.journal.read_text()
            self.watcher._step()
            time.sleep(0.05)

    def train(self, first: int = 1) -> None:
        """Six steps in the log, each seen."""
        for step in range(first, first + 6):
            with self.log.open("a") as file:
                file.write(f"step {step}/1000 loss 1.0\n")
            self.watcher._step()
            time.sleep(0.1)

    @property
    def state(self) -> str:
        """The state of the watch."""
        return self.watcher._log.watch.state

    def noted(self, text: str) -> bool:
        """Whether it stands in the watcher's log."""
        return text in self.journal.read_text()

    def incidents(self) -> list[Path]:
        """Those that were published."""
        return sorted(path.parent for path in self.store.glob("*/verdict.json"))


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scene]]:
    """Starts scenes with a spool of their own, and short waits."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(stall, "BETWEEN_SAMPLES_SECONDS", 0.5)
    monkeypatch.setattr(watcher, "TRAINERS_SECONDS", 0.2)
    monkeypatch.setattr(watcher, "SUCCESSORS_SECONDS", 0.2)
    quick = functools.partial(aftermath.Aftermath, looks=(0.5, 4.0), between=0.5)
    monkeypatch.setattr(aftermath, "Aftermath", quick)
    scenes = []

    def start(**config: Any) -> Scene:
        scenes.append(Scene(tmp_path, **config))
        return scenes[-1]

    yield start
    for scene in scenes:
        scene.close()


def spooled(root: Path) -> list[Path]:
    """The incidents in the spool."""
    return list((root / "tmp").glob("whyhang-spool-*/*"))


def test_a_hang_is_looked_at_again(play: Callable[..., Scene], tmp_path: Path) -> None:
    """More samples grow the same incident; people are told once, and again of another verdict."""
    told = tmp_path / "told"
    scene = play(
        detect=DetectConfig(stall=2.0, confirm=0.2),
        on_hang=OnHangConfig(notify_run=f"echo $WHYHANG_EVENT $WHYHANG_CATEGORY >> {told}"),
    )
    assert scene.trainer
    scene.train()
    scene.until(lambda: scene.noted("looked again"))
    (incident,) = scene.incidents()
    assert len(list((incident / "samples").iterdir())) == 4
    assert len(spooled(tmp_path)) == 1
    scene.watcher._voice.wait(20)
    first = told.read_text().split()
    assert first[0] == "hang"
    assert len(first) == 2
    os.kill(scene.trainer, signal.SIGSTOP)
    scene.until(lambda: len(list((incident / "samples").iterdir())) == 6)
    scene.watcher._voice.wait(20)
    assert told.read_text().split()[2:] == ["changed", "stopped_process"]
    verdict = json.loads((incident / "verdict.json").read_text())
    assert verdict["category"] == "stopped_process"
    # No look is left: nothing stays in the spool.
    assert spooled(tmp_path) == []
    os.kill(scene.trainer, signal.SIGCONT)
    scene.train(first=7)
    scene.until(lambda: scene.state == "advancing")
    assert scene.watcher._stall is None
    assert scene.incidents() == [incident]


def test_another_attempt_begins_anew(play: Callable[..., Scene], tmp_path: Path) -> None:
    """Ranks that were started again clear the watch; what they had stood still in is reported."""
    scene = play(detect=DetectConfig(stall=2.0, confirm=600.0))
    before = scene.trainer
    scene.train(first=100)
    scene.until(lambda: scene.state == "suspect")
    os.kill(before, signal.SIGKILL)
    scene.until(lambda: scene.noted("another attempt"))
    assert scene.state == "warming"
    assert not scene.watcher._log.has_steps
    (incident,) = scene.incidents()
    index = json.loads((incident / "incident.json").read_text())
    assert index["trigger"] == "stall"
    assert index["progress"]["step"] == 105
    assert scene.trainer != before
    scene.train(first=1)
    assert scene.state == "advancing"
    assert [p.pid for p in scene.watcher._known or () if p.kind == "trainer"] == [scene.trainer]
    assert scene.journal.read_text().count("another attempt") == 1
    assert spooled(tmp_path) == []


def test_a_timeout_before_the_threshold_is_diagnosed(
    play: Callable[..., Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collective's timeout ends the job: the early samples show where it stood."""
    monkeypatch.setattr(early, "SHARE_OF_TIMEOUT", 0.5 / 600)
    monkeypatch.setattr(early, "LEAST_SECONDS", 0.0)
    scene = play(detect=DetectConfig(stall=600.0))
    scene.watcher._early.expect(None)
    assert scene.trainer
    scene.train()
    scene.until(lambda: scene.watcher._early.stall is not None)
    with scene.log.open("a") as file:
        file.write(TIMEOUT)
    os.killpg(scene.job.pid, signal.SIGKILL)
    scene.watcher._finish({"exit": 1})
    (incident,) = scene.incidents()
    index = json.loads((incident / "incident.json").read_text())
    assert (index["trigger"], index["progress"]["state"]) == ("stall", "stalled")
    assert "publish_metrics" in (incident / "stacks.folded").read_text()
    assert spooled(tmp_path) == []


def test_rules_that_were_broken_meanwhile_are_told(
    play: Callable[..., Scene], tmp_path: Path
) -> None:
    """The built-in rules give a verdict then, and nothing is stopped by it."""
    scene = play(detect=DetectConfig(stall=2.0, confirm=0.2), on_hang=OnHangConfig(action="stop"))
    broken = tmp_path / "hang.yaml"
    broken.write_text("version: [\n")
    scene.watcher._settings = {**scene.watcher._settings, "rules": str(broken)}
    asked, scene.watcher._requests = os.pipe()
    os.set_blocking(asked, False)
    assert scene.trainer
    scene.train()
    scene.until(lambda: scene.watcher._stall is not None and scene.watcher._stall.is_concluded)
    assert scene.noted("judged by the built-in rules: ")
    hanging = scene.watcher._stall
    assert hanging is not None
    assert hanging.diagnosis is not None
    verdict = replace(hanging.diagnosis.verdict, verdict="global_hang", confidence="high")
    diagnosis = replace(hanging.diagnosis, verdict=verdict)
    assert scene.watcher._wants_stop(diagnosis)
    scene.watcher._act_on(hanging, diagnosis, event="changed")
    with pytest.raises(BlockingIOError):
        os.read(asked, 1)
    hanging.trouble = ""
    scene.watcher._act_on(hanging, diagnosis, event="changed")
    assert b"stop" in os.read(asked, 100)
    os.close(asked)
    os.close(scene.watcher._requests)


def test_by_the_log_alone(
    play: Callable[..., Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mode: log` tells that steps stop and go on; it samples nothing and names nobody."""
    monkeypatch.setattr(early, "SHARE_OF_TIMEOUT", 0.5 / 600)
    monkeypatch.setattr(early, "LEAST_SECONDS", 0.0)
    scene = play(detect=DetectConfig(mode="log", stall=2.0, confirm=0.2))
    scene.watcher._early.expect(None)
    assert scene.trainer
    scene.train()
    scene.until(lambda: scene.state == "confirmed")
    assert re.search(r"no step for \d+ s \(threshold 2 s\)", scene.journal.read_text())
    scene.train(first=7)
    scene.until(lambda: scene.noted("the job makes progress again"))
    scene.until(lambda: scene.state == "confirmed")
    scene.watcher._finish({"exit": 1})
    assert scene.watcher._early.stall is None
    assert scene.incidents() == spooled(tmp_path) == []
