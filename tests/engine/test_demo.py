"""``whyhang demo``: a real job really hangs, and the rank is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import LONG_SECONDS, eventually
from whyhang.engine.orphans import marked_processes

pytestmark = pytest.mark.integration


def start(*words: str) -> subprocess.Popen[str]:
    """Start the demo in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "whyhang.engine", "demo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def assert_nothing_runs(directory: Path) -> None:
    """Nothing that the demo started is left."""
    assert eventually(lambda: not list(marked_processes(str(directory), "WHYHANG_DEMO")))


@pytest.mark.timeout(180)
def test_names_the_rank_that_hangs(tmp_path: Path) -> None:
    """The verdict names the planted rank and the function it stands in."""
    directory = tmp_path / "demo"
    demo = start("--rank", "5", "--format", "json", "--keep", str(directory))
    output, errors = demo.communicate(timeout=150)
    assert demo.returncode == 0, errors
    verdict = json.loads(output)
    assert verdict["verdict"] == "local_hang"
    assert verdict["category"] == "dataloader"
    assert verdict["suspects"]["rank_list"] == [5]
    assert any("read_shard" in position["frame"] for position in verdict["suspects"]["positions"])
    assert_nothing_runs(directory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C ends everything that the demo started."""
    directory = tmp_path / "demo"
    demo = start("--keep", str(directory))
    log = directory / "train.log"
    assert eventually(lambda: log.exists() and log.stat().st_size > 0)
    os.killpg(demo.pid, number)
    demo.communicate(timeout=LONG_SECONDS)
    assert demo.returncode == 130
    assert_nothing_runs(directory)


def test_rank_that_does_not_exist_is_refused() -> None:
    """The demo has eight ranks."""
    demo = start("--rank", "8")
    _, errors = demo.communicate(timeout=LONG_SECONDS)
    assert demo.returncode == 2
    assert "0 to 7" in errors
