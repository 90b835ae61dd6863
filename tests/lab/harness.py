"""Plays scenarios: a real training job, a real fault, whyhang around it or called to it.

Whatever happens, a scenario leaves nothing behind: file systems are thawed and unmounted, and
every process that carries the scenario's token in its environment is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab import stopwatch
from tests.lab.job import START_SECONDS, Job, LabError
from tests.lab.machine import children, harm, states
from tests.lab.mounts import Mount, mounted
from tests.lab.scenarios import Scenario
from whyhang.engine.incidents import read_incident
from whyhang.schemas.process import Process

# The stall time under ``run``, and for ``collect``, where no slow step must be forgiven.
RUN_STALL_SECONDS = 15
COLLECT_STALL_SECONDS = 5
VERDICT_SECONDS = 150.0
COLLECT_SECONDS = 120.0
# What a job must do after its collector was killed, and how soon.
STEPS_AFTER_KILL = 5
FREE_SECONDS = 30.0
_NATIVE = Path(__file__).with_name("native.c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a scenario.

    ``exit_code`` is None for a job that still hung at the end; ``output`` is what job and whyhang
    wrote and ``journal`` what the watcher noted; ``incidents`` are the directories in the store
    that were opened after the fault; ``verdict`` is the first one's document and ``processes``
    its last sample. ``seconds`` is what the collection took, ``stops`` the longest stop of each
    process meanwhile, in seconds, and ``harmed`` tells of processes that did not survive it.
    """

    scenario: Scenario
    exit_code: int | None
    output: str
    journal: str
    incidents: tuple[Path, ...] = ()
    verdict: dict[str, Any] | None = None
    processes: tuple[Process, ...] = ()
    seconds: float | None = None
    stops: dict[int, float] = field(default_factory=dict)
    harmed: tuple[str, ...] = ()

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

    @property
    def longest_stop(self) -> float | None:
        """The longest time, in seconds, that any process of the job was stopped."""
        return max(self.stops.values(), default=None)


class Play:
    """One performance of a scenario in a directory of its own."""

    def __init__(self, scenario: Scenario, directory: Path, curtain: threading.Event) -> None:
        self.scenario = scenario
        self.directory = directory
        self.job = Job(scenario, directory, curtain)
        self._fault_ns = 0
        self._seconds: float | None = None
        self._stops: dict[int, float] = {}

    def perform(self) -> Outcome:
        """Play it to its end and clear up."""
        self.directory.mkdir(parents=True)
        stall = RUN_STALL_SECONDS if self.scenario.under == "run" else COLLECT_STALL_SECONDS
        (self.directory / "hang.yaml").write_text(
            f"version: 1\ndetect: {{stall: {stall}s}}\nstore: {{path: incidents}}\n"
        )
        with contextlib.ExitStack() as cleanup:
            library = self._build() if "compiler" in self.scenario.needs else None
            mount = None
            if self.scenario.mount is not None:
                mount = cleanup.enter_context(mounted(self.scenario.mount, self.directory))
            cleanup.callback(self.job.end)
            if mount is not None:
                # Nobody who waits for it uninterruptibly can be killed.
                cleanup.callback(mount.release)
            self.job.start(mount, library)
            self._act(mount)
            return self._observe()

    def _build(self) -> Path:
        """The job's C library."""
        library = self.directory / "native.so"
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(_NATIVE)]
        subprocess.run(command, check=True)
        return library

    def _act(self, mount: Mount | None) -> None:
        """Wait for the fault, and do to the job what the scenario does from outside."""
        act = self.scenario.act
        if act == "freeze":
            assert mount is not None
            asked = self.directory / "please-freeze"
            self.job.wait(asked.exists, START_SECONDS, "checkpoint")
            subprocess.run(["fsfreeze", "--freeze", str(mount.path)], check=True)
            (self.directory / "frozen").touch()
        elif self.scenario.fault != "none":
            self.job.await_faults()
        elif self.scenario.ends and act == "none":
            self.job.await_first_step()
        else:
            self.job.await_training()
        if act in ("sigstop", "sigstop_worker", "kill9"):
            victim = self.job.rank_pids()[self.scenario.victim]
            if act == "sigstop_worker":
                victim = children(victim)[0]
            os.kill(victim, signal.SIGKILL if act == "kill9" else signal.SIGSTOP)
        # The stall time counts while torch is being imported, too: what a slow start on a busy
        # machine brings about is none of a scenario's business.
        self._fault_ns = time.time_ns()

    def _observe(self) -> Outcome:
        """Let whyhang come to its answer, and look after the job meanwhile."""
        if self.scenario.under == "collect" and self.scenario.is_silent:
            self._await_silence()
        exit_code: int | None = None
        before = states(self.job.targets())
        with self._timed(tuple(before)):
            if self.scenario.under == "collect":
                self._collect()
            elif self.scenario.under == "killed_collect":
                self._kill_collector()
            elif self.scenario.ends:
                exit_code = self.job.await_end()
            else:
                self.job.wait(lambda: bool(self._verdicts()), VERDICT_SECONDS, "verdict")
        harmed = () if self.scenario.ends else harm(before)
        verdicts = self._verdicts()
        return Outcome(
            scenario=self.scenario,
            exit_code=exit_code,
            output=self.job.output(),
            journal=self.job.journal(),
            incidents=self._incidents(),
            verdict=json.loads(verdicts[0].read_text()) if verdicts else None,
            processes=_last_sample(verdicts[0].parent) if verdicts else (),
            seconds=self._seconds,
            stops=self._stops,
            harmed=harmed,
        )

    def _await_silence(self) -> None:
        """Until the log has been silent for long enough to look into it."""
        began = time.monotonic()
        self.job.wait(
            lambda: min(self.job.log_age(), time.monotonic() - began) > COLLECT_STALL_SECONDS + 1,
            START_SECONDS,
            "silent log",
        )

    def _collect(self) -> None:
        """Call ``whyhang collect``, as somebody who looks after a job."""
        began = time.monotonic()
        collector = self._start_collector()
        try:
            _, told = collector.communicate(timeout=COLLECT_SECONDS)
        finally:
            collector.kill()
        self._seconds = time.monotonic() - began
        if collector.returncode != 0:
            raise LabError(f"collect ended with {collector.returncode}:\n{told.decode()}")

    def _kill_collector(self) -> None:
        """Kill a collector while it holds a rank, and wait until the job has gone on."""
        targets = self.job.targets()
        collector = self._start_collector("--native", "always", "--samples", "1")
        try:
            held = _await_hold(targets, collector)
        finally:
            collector.kill()
            _, told = collector.communicate()
        if not held:
            raise LabError(f"the collector held no rank:\n{told.decode()}")
        steps = self.job.steps()
        self.job.wait(
            lambda: self.job.steps() >= steps + STEPS_AFTER_KILL, FREE_SECONDS, "further steps"
        )

    def _start_collector(self, *options: str) -> subprocess.Popen[bytes]:
        # The lab plays more than one job at a time.
        command = [sys.executable, "-m", "whyhang.engine", "collect", "-c", "hang.yaml"]
        return subprocess.Popen(
            [*command, "--pid", str(self.job.pid), "--format", "json", *options],
            cwd=self.directory,
            env=self.job.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    @contextlib.contextmanager
    def _timed(self, pids: tuple[int, ...]) -> Iterator[None]:
        """Measure how long processes are stopped until the end of the context."""
        command = [sys.executable, "-I", "-S", stopwatch.__file__, *map(str, pids)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watch:
            try:
                yield
            finally:
                told, _ = watch.communicate()
        self._stops = {int(pid): seconds for pid, seconds in json.loads(told).items()}

    def _incidents(self) -> tuple[Path, ...]:
        found = sorted((self.directory / "incidents").glob("[0-9]" * 19))
        return tuple(path for path in found if int(path.name) > self._fault_ns)

    def _verdicts(self) -> list[Path]:
        files = [incident / "verdict.json" for incident in self._incidents()]
        return [path for path in files if path.exists()]


def _await_hold(targets: Sequence[int], tracer: subprocess.Popen[bytes]) -> bool:
    """Wait until the tracer holds one of the processes; False where it ends before."""
    deadline = time.monotonic() + COLLECT_SECONDS
    while tracer.poll() is None and time.monotonic() < deadline:
        if "t" in states(targets).values():
            return True
        time.sleep(stopwatch.LOOK_SECONDS)
    return False


def _last_sample(incident: Path) -> tuple[Process, ...]:
    samples = read_incident(incident).samples
    return samples[-1].processes if samples else ()
