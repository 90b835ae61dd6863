"""What the watcher of a real, healthy job costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# A step a second, as a training prints it.
JOB = (
    "import time\n"
    "for step in range(1, 1_000_000):\n"
    "    print(f'step {step}/1000000 loss {9 / step:.4f}', flush=True)\n"
    "    time.sleep(1)\n"
)
_TICKS = os.sysconf("SC_CLK_TCK")
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU as a share of one core since the start, and memory at the end."""

    cpu: float
    rss_bytes: int
    seconds: float


def watch_job(seconds: float) -> Cost:
    """Start ``whyhang run`` on a small job and measure its watcher after that time."""
    with tempfile.TemporaryDirectory() as directory:
        with (Path(directory) / "train.log").open("wb") as log:
            command = [sys.executable, "-m", "whyhang.engine", "run", "--"]
            run = subprocess.Popen(
                [*command, sys.executable, "-c", JOB],
                cwd=directory,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            watcher = _find_watcher(run.pid)
            time.sleep(seconds)
            return _cost(watcher)
        finally:
            os.killpg(run.pid, signal.SIGTERM)
            run.wait()


def _find_watcher(supervisor: int) -> int:
    """The child of the supervisor that is not the job."""
    deadline = time.monotonic() + _START_SECONDS
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children")
    while time.monotonic() < deadline:
        for pid in map(int, children.read_text().split()):
            if b"watcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        time.sleep(0.1)
    raise RuntimeError("no watcher was started")


def _cost(pid: int) -> Cost:
    """What this process used since it started, counted from its own start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / _TICKS
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    seconds = uptime - int(fields[19]) / _TICKS
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Cost(used / seconds, pages * os.sysconf("SC_PAGE_SIZE"), seconds)
