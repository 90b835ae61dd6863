"""A small job of two plain Python processes, and what whyhang says of it in a situation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import eventually
from tests.rights.situations import SECONDS, child_of, with_group

TRAIN = """
import os, sys, time
def load_shard():
    open(f"{sys.argv[1]}.{os.environ['RANK']}", "w").close()
    time.sleep(300)
if os.environ["RANK"] == "0":
    with open(sys.argv[1], "a") as log:
        for step in range(1, 4):
            print(f"step {step}/100 loss 0.1", file=log)
    os.utime(sys.argv[1], (time.time() - 1200,) * 2)
load_shard()
"""
START = """
import os, random, subprocess, sys
train, log, *before = sys.argv[1:]
os.environ.pop("PYTHONUNBUFFERED", None)
# Jobs with one meeting place would be one job.
port = str(random.SystemRandom().randrange(20000, 60000))
shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
ranks = [
    subprocess.Popen(
        [*(before if rank else ()), sys.executable, train, log],
        env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
    )
    for rank in range(2)
]
for process in ranks:
    process.wait()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Two ranks that stand still, the program that started them, and rank 0's log."""

    root: int
    ranks: tuple[int, int]
    log: Path


StartJob = Callable[..., AbstractContextManager[Job]]


@pytest.fixture
def start_job(tmp_path: Path) -> StartJob:
    """Starts the job below ``before``; ``second`` are the words before rank 1 only."""

    @contextmanager
    def start(*, before: Sequence[str] = (), second: Sequence[str] = ()) -> Iterator[Job]:
        for name, text in (("start.py", START), ("train.py", TRAIN)):
            (tmp_path / name).write_text(text)
        log = tmp_path / "log.txt"
        words = [sys.executable, str(tmp_path / "start.py"), str(tmp_path / "train.py"), str(log)]
        process = subprocess.Popen([*before, *words, *second], start_new_session=True)
        try:
            assert eventually(lambda: all(Path(f"{log}.{rank}").exists() for rank in range(2)))
            root = child_of(process.pid) if "unshare" in before else process.pid
            first, other = Path(f"/proc/{root}/task/{root}/children").read_text().split()
            time.sleep(0.3)  # past the last system call of their start
            yield Job(root=root, ranks=(int(first), int(other)), log=log)
        finally:
            with_group(process.pid, signal.SIGKILL)
            process.wait()

    return start


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one run of a whyhang command left: its status, its words and its files."""

    status: int
    text: str
    errors: str
    verdict: dict[str, Any]
    processes: list[dict[str, Any]]
    files: frozenset[str]

    @property
    def words(self) -> str:
        """The text with its line breaks undone."""
        return " ".join(self.text.split())


@pytest.fixture
def whyhang(tmp_path: Path) -> Callable[..., Told]:
    """Runs ``whyhang collect`` in a situation; ``before`` are the words that make it."""
    place = tmp_path / "place"
    place.mkdir()

    def collect(
        *options: str, before: Sequence[str] = (), python: str = sys.executable, path: str = ""
    ) -> Told:
        environ = {**os.environ, "HOME": str(place), "TMPDIR": str(place)}
        if path:
            environ["PATH"] = path
        place.chmod(0o777)
        command = [
            *before,
            python,
            "-m",
            "whyhang.engine",
            "collect",
            "--store",
            str(place / "store"),
        ]
        done = subprocess.run(
            [*command, "--samples", "2", "--interval", "1s", *options],
            cwd=place, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        incidents = sorted((place / "store").glob("*/")) if (place / "store").exists() else []
        if not incidents:
            return Told(status=done.returncode, text=done.stdout, errors=done.stderr, verdict={},
                        processes=[], files=frozenset())  # fmt: skip
        last = incidents[-1]
        samples = sorted((last / "samples/1").glob("*.jsonl*"))
        return Told(
            status=done.returncode,
            text=done.stdout,
            errors=done.stderr,
            verdict=json.loads((last / "verdict.json").read_text()),
            processes=[json.loads(line) for line in samples[0].read_text().splitlines()],
            files=frozenset(path.name for path in last.iterdir()),
        )

    return collect
