"""Plays scenarios: a real torchrun job, a real fault, whyhang around it or called to it.

Whatever happens, a scenario leaves nothing behind: file systems are thawed and unmounted, and
every process that carries the scenario's token in its environment is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from tests.lab.machine import (
    GONE_SECONDS,
    TOKEN,
    children,
    end_processes,
    mounted_ext4,
    state,
    thaw,
)

TRAIN = Path(__file__).with_name("train.py")
WORLD_SIZE = 4
# Not 0, which leads, nor the last one, which writes Megatron's lines.
FAULT_RANK = 2
STALL_SECONDS = 20
HANG_YAML = f"""\
version: 1
detect: {{stall: {STALL_SECONDS}s}}
store: {{path: incidents}}
"""
# On two busy cores four ranks take 20 s to import torch and meet.
START_SECONDS = 120.0
VERDICT_SECONDS = 150.0
END_SECONDS = 180.0
COLLECT_SECONDS = 120.0
# Lines that must have been printed before something is done to a healthy job.
RHYTHM_LINES = 8
# Shorter than any stop for a dump: py-spy needs that long only to find its way.
LOOK_SECONDS = 0.005
TRACED_OR_STOPPED = frozenset("Tt")


class LabError(Exception):
    """A scenario did not come about; says nothing about whyhang's verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A job and what happens to it.

    ``options`` are those of train.py. ``under`` is who starts it; ``collect`` is called to a job
    that was started plainly. ``act`` is done from outside once the job runs well. A job that
    ``ends`` is waited for, of the others whyhang's verdict is. ``looks`` keeps an eye on whether
    any process of a rank is ever stopped.
    """

    options: tuple[str, ...] = ()
    under: Literal["run", "collect", "nothing"] = "run"
    output: Literal["file", "pipe", "null"] = "file"
    act: Literal["none", "sigstop", "kill9", "freeze"] = "none"
    ends: bool = False
    looks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a scenario.

    ``exit_code`` is None for a job that still hung at the end; ``output`` is what job and whyhang
    wrote and ``journal`` what the watcher noted; ``incidents`` are the directories in the store
    that were opened after the fault, and ``verdict`` is the first one's document; ``stopped`` are
    the ranks of which a process was seen stopped or traced after it.
    """

    exit_code: int | None
    output: str
    journal: str
    incidents: tuple[Path, ...]
    verdict: dict[str, Any] | None
    stopped: frozenset[int]

    @property
    def suspects(self) -> list[int]:
        """The ranks that the verdict accuses."""
        assert self.verdict is not None
        ranks: list[int] = self.verdict["suspects"]["rank_list"]
        return ranks

    @property
    def positions(self) -> list[tuple[str, str]]:
        """Kind of process and function of each position, in the verdict's order."""
        assert self.verdict is not None
        return [
            (position["kind"], position["frame"].split(" ")[0])
            for position in self.verdict["suspects"]["positions"]
        ]


class Play:
    """One performance of a scenario in a directory of its own."""

    def __init__(self, scenario: Scenario, directory: Path, curtain: threading.Event) -> None:
        self.scenario = scenario
        self.directory = directory
        self.log = directory / "log.txt"
        self.curtain = curtain
        self.token = str(uuid.uuid4())
        self.fault_ns = 0
        self.copier: threading.Thread | None = None

    def perform(self) -> Outcome:
        """Play it to its end and clear up."""
        self.directory.mkdir(parents=True)
        (self.directory / "hang.yaml").write_text(HANG_YAML)
        with contextlib.ExitStack() as cleanup:
            mount = None
            if self.scenario.act == "freeze":
                mount = cleanup.enter_context(mounted_ext4(self.directory))
            job = self._start(mount)
            cleanup.callback(self._end, job, mount)
            stopped = cleanup.enter_context(self._look())
            self._act(job, mount)
            # The stall time counts while torch is being imported, too: what a slow start on a
            # busy machine brings about is none of a scenario's business.
            self.fault_ns = time.time_ns()
            stopped.clear()
            verdict = self._collect(job) if self.scenario.under == "collect" else None
            exit_code = self._await_end(job) if self.scenario.ends else None
            if self.scenario.under == "run" and not self.scenario.ends:
                self._wait(job, lambda: bool(self._verdicts()), VERDICT_SECONDS, "verdict")
            if verdict is None and self._verdicts():
                verdict = json.loads(self._verdicts()[0].read_text())
        if self.copier is not None:
            self.copier.join(GONE_SECONDS)
        return Outcome(
            exit_code=exit_code,
            output=self._output(),
            journal=self._journal(),
            incidents=self._incidents(),
            verdict=verdict,
            stopped=frozenset(stopped),
        )

    def _start(self, mount: Path | None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--local-addr", "127.0.0.1", "--nproc-per-node", str(WORLD_SIZE), str(TRAIN)]
        command += ["--workdir", str(self.directory), "--fault-rank", str(FAULT_RANK)]
        command += self.scenario.options
        if mount is not None:
            command += ["--checkpoint-dir", str(mount)]
        if self.scenario.under == "run":
            whyhang = [sys.executable, "-m", "whyhang.engine", "run", "-c", "hang.yaml", "--"]
            command = whyhang + command
        with contextlib.ExitStack() as ours:
            output: int | IO[bytes] = subprocess.DEVNULL
            if self.scenario.output == "file":
                output = ours.enter_context(self.log.open("ab"))
            elif self.scenario.output == "pipe":
                output = self._pipe(ours)
            return subprocess.Popen(
                command,
                cwd=self.directory,
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _end(self, job: subprocess.Popen[bytes], mount: Path | None) -> None:
        if mount is not None:
            # Nobody in uninterruptible sleep can be killed.
            thaw(mount)
        try:
            end_processes(self.token)
        finally:
            job.wait(GONE_SECONDS)

    def _environ(self) -> dict[str, str]:
        environ = {**os.environ, TOKEN: self.token}
        return {**environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}

    def _pipe(self, ours: contextlib.ExitStack) -> int:
        """The write end of a pipe whose other end goes to the log, as a container's would."""
        reader, writer = os.pipe()
        ours.callback(os.close, writer)
        self.copier = threading.Thread(target=_copy, args=(reader, self.log), daemon=True)
        self.copier.start()
        return writer

    def _act(self, job: subprocess.Popen[bytes], mount: Path | None) -> None:
        """Wait for the fault, or do to the job what a scenario does from outside."""
        act = self.scenario.act
        if act == "freeze":
            asked = self.directory / "please-freeze"
            self._wait(job, asked.exists, START_SECONDS, "checkpoint")
            subprocess.run(["fsfreeze", "--freeze", str(mount)], check=True)
            (self.directory / "frozen").touch()
        elif act in ("sigstop", "kill9"):
            self._wait(job, self._runs_well, START_SECONDS, "steady training")
            number = signal.SIGSTOP if act == "sigstop" else signal.SIGKILL
            os.kill(self._rank_pids()[FAULT_RANK], number)
        elif self.scenario.ends:
            self._wait(job, self._is_training, START_SECONDS, "first step")
        else:
            met = self.directory / "met-fault"
            self._wait(job, met.exists, START_SECONDS, "planted fault")

    def _collect(self, job: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Call ``whyhang collect`` once the log is silent, as somebody who looks after a job."""
        began = time.monotonic()
        self._wait(
            job,
            lambda: min(self._log_age(), time.monotonic() - began) > STALL_SECONDS + 3,
            END_SECONDS,
            "silent log",
        )
        collect = [sys.executable, "-m", "whyhang.engine", "collect", "-c", "hang.yaml"]
        # The lab plays more than one job at a time.
        collect += ["--pid", str(job.pid), "--format", "json"]
        done = subprocess.run(
            collect,
            cwd=self.directory,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COLLECT_SECONDS,
        )
        if done.returncode != 0:
            raise LabError(f"collect ended with {done.returncode}:\n{done.stderr.decode()}")
        with self.log.open("ab") as log:
            log.write(done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _await_end(self, job: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + END_SECONDS
        while job.poll() is None:
            self._check(time.monotonic() < deadline, "end of the job")
            time.sleep(0.1)
        return job.returncode

    def _wait(
        self,
        job: subprocess.Popen[bytes],
        arrived: Callable[[], bool],
        seconds: float,
        what: str,
    ) -> None:
        """Wait until something has arrived; the job must not end before."""
        deadline = time.monotonic() + seconds
        while not arrived():
            self._check(job.poll() is None, f"{what} before the job ended")
            self._check(time.monotonic() < deadline, f"{what} within {seconds:.0f} s")
            time.sleep(0.1)

    def _check(self, fine: bool, what: str) -> None:
        if self.curtain.is_set():
            raise LabError("the lab was closed")
        if not fine:
            raise LabError(f"no {what}; {self.directory} has:\n{self._output()[-4000:]}")

    @contextlib.contextmanager
    def _look(self) -> Iterator[set[int]]:
        """The ranks that were seen stopped; filled until the end of the context."""
        stopped: set[int] = set()
        if not self.scenario.looks:
            yield stopped
            return
        over = threading.Event()
        looker = threading.Thread(target=self._keep_looking, args=(stopped, over))
        looker.start()
        try:
            yield stopped
        finally:
            over.set()
            looker.join()

    def _keep_looking(self, stopped: set[int], over: threading.Event) -> None:
        ranks: dict[int, int] = {}
        refresh = 0.0
        while not over.wait(LOOK_SECONDS):
            if time.monotonic() > refresh:
                refresh = time.monotonic() + 2.0
                ranks = {
                    pid: rank
                    for rank, trainer in self._rank_pids().items()
                    for pid in (trainer, *children(trainer))
                }
            stopped.update(rank for pid, rank in ranks.items() if state(pid) in TRACED_OR_STOPPED)

    def _runs_well(self) -> bool:
        return self._output().count("] iteration ") >= RHYTHM_LINES and self._is_training()

    def _is_training(self) -> bool:
        """Whether the watcher, where there is one, has seen the first step."""
        return self.scenario.under != "run" or first_step(self._journal()) is not None

    def _rank_pids(self) -> dict[int, int]:
        return {
            int(path.stem.removeprefix("rank")): int(path.read_text())
            for path in self.directory.glob("rank*.pid")
        }

    def _log_age(self) -> float:
        with contextlib.suppress(FileNotFoundError):
            return time.time() - self.log.stat().st_mtime
        return float("inf")

    def _output(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text(errors="replace")
        return ""

    def _journal(self) -> str:
        logs = sorted((self.directory / "incidents").glob("jobs/*/watcher.log"))
        return "".join(log.read_text() for log in logs)

    def _incidents(self) -> tuple[Path, ...]:
        found = sorted((self.directory / "incidents").glob("[0-9]" * 19))
        return tuple(path for path in found if int(path.name) > self.fault_ns)

    def _verdicts(self) -> list[Path]:
        files = [incident / "verdict.json" for incident in self._incidents()]
        return [path for path in files if path.exists()]


def first_step(journal: str) -> int | None:
    """Where in the watcher's notes the first step stands; None before it."""
    match = re.search(r"-> (?:advancing|healed)", journal)
    return None if match is None else match.end()


def _copy(reader: int, path: Path) -> None:
    with os.fdopen(reader, "rb", buffering=0) as source, path.open("ab", buffering=0) as target:
        while data := source.read(1 << 16):
            target.write(data)
