"""A scenario's job: started, watched from outside, ended."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tests.lab.machine import GONE_SECONDS, TOKEN, descendants, end_processes
from tests.lab.mounts import Mount
from tests.lab.scenarios import Scenario

ROOT = Path(__file__).parents[2]
TRAIN = "tests.lab.train"
# On two busy cores four ranks take 20 s to import torch and meet.
START_SECONDS = 150.0
END_SECONDS = 180.0
# Lines that must have been printed before something is done to a healthy job.
RHYTHM_LINES = 8
_POLL_SECONDS = 0.1
# Starts the ranks one by one, without an agent; fails once all have ended and one failed.
_BARE = """\
for rank in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$rank LOCAL_RANK=$rank "$@" & pids="$pids $!"
done
code=0; for pid in $pids; do wait "$pid" || code=1; done; exit $code
"""


class LabError(Exception):
    """A scenario did not come about; says nothing about whyhang's verdict."""


class Job:
    """The processes of one scenario, in a directory of its own."""

    def __init__(
        self,
        scenario: Scenario,
        directory: Path,
        curtain: threading.Event,
        *,
        program: str = TRAIN,
    ) -> None:
        self.scenario = scenario
        self.program = program
        self.directory = directory
        self.log = directory / "log.txt"
        self._curtain = curtain
        self._token = str(uuid.uuid4())
        self._copier: threading.Thread | None = None
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The job's first process."""
        assert self._popen is not None
        return self._popen.pid

    def start(self, mount: Mount | None, library: Path | None) -> None:
        """Start it as the scenario says."""
        command = self._launcher()
        command += ["--workdir", str(self.directory), "--fault", self.scenario.fault]
        command += ["--fault-ranks", ",".join(map(str, self.scenario.fault_ranks)) or "all"]
        command += self.scenario.options
        if mount is not None:
            command += ["--mount", str(mount.path)]
        if library is not None:
            command += ["--native-library", str(library)]
        if self.scenario.under == "run":
            whyhang = [sys.executable, "-m", "whyhang.engine", "run", "-c", "hang.yaml", "--"]
            command = whyhang + command
        with contextlib.ExitStack() as ours:
            output = self._open_output(ours)
            self._popen = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def end(self) -> None:
        """Kill whatever of it is left."""
        try:
            end_processes(self._token)
        finally:
            if self._popen is not None:
                self._popen.wait(GONE_SECONDS)
            if self._copier is not None:
                self._copier.join(GONE_SECONDS)

    def environ(self) -> dict[str, str]:
        """What its processes, and those who look at it, get."""
        return {
            **os.environ,
            TOKEN: self._token,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "TORCHINDUCTOR_COMPILE_THREADS": "2",
            "TORCHINDUCTOR_CACHE_DIR": str(self.directory / "inductor"),
        }

    def wait(self, arrived: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until something has arrived; the job must not end before."""
        assert self._popen is not None
        deadline = time.monotonic() + seconds
        while not arrived():
            self._check(self._popen.poll() is None, f"{what} before the job ended")
            self._check(time.monotonic() < deadline, f"{what} within {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def await_end(self) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._popen is not None
        deadline = time.monotonic() + END_SECONDS
        while self._popen.poll() is None:
            self._check(time.monotonic() < deadline, "end of the job")
            time.sleep(_POLL_SECONDS)
        return self._popen.returncode

    def await_faults(self) -> None:
        """Wait until every rank with a planted fault has run into it."""
        ranks = self.scenario.fault_ranks or range(self.scenario.world_size)
        marks = [self.directory / f"met-fault-{rank}" for rank in ranks]
        self.wait(lambda: all(mark.exists() for mark in marks), START_SECONDS, "planted fault")

    def await_training(self) -> None:
        """Wait until a healthy job goes on steadily."""
        self.wait(self._runs_well, START_SECONDS, "steady training")

    def await_first_step(self) -> None:
        """Wait until the watcher, where there is one, has seen the first step."""
        self.wait(self._has_stepped, START_SECONDS, "first step")

    def rank_pids(self) -> dict[int, int]:
        """The trainers."""
        return {
            int(path.stem.removeprefix("rank")): int(path.read_text())
            for path in self.directory.glob("rank*.pid")
        }

    def targets(self) -> tuple[int, ...]:
        """Every process that whyhang may look at: trainers and all below them."""
        return tuple(pid for trainer in self.rank_pids().values() for pid in descendants(trainer))

    def log_age(self) -> float:
        """Seconds since something was last written to the log."""
        with contextlib.suppress(FileNotFoundError):
            return time.time() - self.log.stat().st_mtime
        return float("inf")

    def output(self) -> str:
        """What job and whyhang wrote."""
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text(errors="replace")
        return ""

    def steps(self) -> int:
        """How many iterations the log tells of."""
        return self.output().count("] iteration ")

    def journal(self) -> str:
        """What the watcher noted."""
        logs = sorted((self.directory / "incidents").glob("jobs/*/watcher.log"))
        return "".join(log.read_text() for log in logs)

    def _launcher(self) -> list[str]:
        size = str(self.scenario.world_size)
        if self.scenario.launcher == "bare":
            variables = [f"WORLD_SIZE={size}", "MASTER_ADDR=127.0.0.1"]
            variables += [f"MASTER_PORT={_free_port()}"]
            ranks = ["sh", "-c", _BARE, "sh", sys.executable, "-m", self.program]
            return ["env", *variables, *ranks]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        torchrun += ["--local-addr", "127.0.0.1", "--nproc-per-node", size]
        return [*torchrun, "-m", self.program]

    def _open_output(self, ours: contextlib.ExitStack) -> int | IO[bytes]:
        if self.scenario.output == "null":
            return subprocess.DEVNULL
        if self.scenario.output == "file":
            return ours.enter_context(self.log.open("ab"))
        # The write end of a pipe whose other end goes to the log, as a container's would.
        reader, writer = os.pipe()
        ours.callback(os.close, writer)
        self._copier = threading.Thread(target=_copy, args=(reader, self.log), daemon=True)
        self._copier.start()
        return writer

    def _runs_well(self) -> bool:
        return self.steps() >= RHYTHM_LINES and self._has_stepped()

    def _has_stepped(self) -> bool:
        return self.scenario.under != "run" or first_step(self.journal()) is not None

    def _check(self, fine: bool, what: str) -> None:
        if self._curtain.is_set():
            raise LabError("the lab was closed")
        if not fine:
            raise LabError(f"no {what}; {self.directory} has:\n{self.output()[-4000:]}")


def first_step(journal: str) -> int | None:
    """Where in the watcher's notes the first step stands; None before it."""
    match = re.search(r"-> (?:advancing|healed)", journal)
    return None if match is None else match.end()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _copy(reader: int, path: Path) -> None:
    with os.fdopen(reader, "rb", buffering=0) as source, path.open("ab", buffering=0) as target:
        while data := source.read(1 << 16):
            target.write(data)
