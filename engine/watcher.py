"""The watcher process: follows the log, samples when steps stop, judges, reports.

Its input is a pipe of JSON lines from the supervisor: the settings, then what happens to the job.
It is a bystander: whatever goes wrong here is written to its log and changes nothing for the job.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import select
import shutil
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyhang.engine.configure import config_from
from whyhang.engine.log_watch import LogWatch
from whyhang.engine.streams import LogFile
from whyhang.engine.watch import Transition

if TYPE_CHECKING:
    from whyhang.engine.stall import Stall
    from whyhang.schemas.diagnosis import Diagnosis
    from whyhang.schemas.process import Process

POLL_SECONDS = 1.0
NICENESS = 10
# The kernel shall prefer us to the training when memory runs out.
OOM_SCORE = "500"
# A collective's timeout (ten minutes, often) destroys the evidence before a slow job's threshold.
EARLY_SECONDS = 240.0
EARLY_SAMPLES = 3
# The relay's copy of the last lines may still be on its way.
LAST_LINES_SECONDS = 0.3


class Watcher:
    """The loop and what it knows. ``requests`` is the descriptor towards the supervisor."""

    def __init__(self, settings: Mapping[str, Any], requests: int) -> None:
        self._settings = settings
        self._requests = requests
        self._config = config_from(settings["config"])
        self._pid = int(settings["pid"])
        logs = [LogFile(path=path, start=start) for path, start in settings["logs"]]
        self._log = LogWatch(logs, self._config, time.monotonic())
        self._journal = open_journal([Path(path) for path in settings["scratch"]])
        self._stall: Stall | None = None
        self._early: Stall | None = None
        self._early_due = EARLY_SECONDS
        self._known: tuple[Process, ...] | None = None
        self._blind = False
        self._orders = b""
        self._supervised = True

    def run(self) -> int:
        """Watch until the job has ended."""
        self.note(f"watching process {self._pid}")
        for directory in self._settings["scratch"]:
            sweep(Path(directory).parent, time.time() - self._config.store.keep)
        while True:
            ending = self._listen()
            try:
                if ending is not None:
                    self._finish(ending)
                    return 0
                self._step()
            except Exception:  # noqa: BLE001 (nothing may end the watch)
                self.note(traceback.format_exc())
                if ending is not None:
                    return 1

    def note(self, text: str) -> None:
        """Write a line to our own log."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with contextlib.suppress(OSError):
            os.write(self._journal, f"{stamp} {text}\n".encode("utf-8", "replace"))

    def say(self, text: str) -> None:
        """Tell people something beside the job's output."""
        self.note(text)
        with contextlib.suppress(OSError):
            os.write(2, "".join(f"whyhang: {line}\n" for line in text.splitlines()).encode())

    def _listen(self) -> Mapping[str, Any] | None:
        """Wait for the next poll; answer how the job ended, if it has."""
        if not self._supervised:
            time.sleep(POLL_SECONDS)
            return None if Path(f"/proc/{self._pid}").exists() else {"exit": 0}
        if not select.select([0], [], [], POLL_SECONDS)[0]:
            return None
        data = os.read(0, 1 << 16)
        if not data:
            # The supervisor was killed: the job is still worth watching.
            self._supervised = False
            self.note("the supervisor has gone")
            return None
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "blind" in order:
                self._blind = True
                self.note(f"no log any more: {order['blind']}")
            if "exit" in order:
                return dict(order)
        return None

    def _catch_up(self) -> float:
        """Read the log and act on what it tells; answer the time (monotonic)."""
        now = time.monotonic()
        self._log.poll(now)
        for change in self._log.transitions(now):
            self._react(change, now)
        return now

    def _step(self) -> None:
        now = self._catch_up()
        if self._stall is None:
            self._sample_early(now)
        elif self._is_due(now):
            self._conclude(self._stall)

    def _react(self, change: Transition, now: float) -> None:
        self.note(
            f"{change.previous} -> {change.state}: silent {change.silent_seconds:.0f} s, "
            f"threshold {change.threshold_seconds:.0f} s, phase {change.phase}"
        )
        if change.state == "advancing" and self._known is None:
            self._take_census()
        if change.state == "suspect" and not self._blind:
            if self._config.detect.mode == "log":
                self.say(
                    f"no step for {change.silent_seconds:.0f} s "
                    f"(threshold {change.threshold_seconds:.0f} s)"
                )
                return
            try:
                self._stall = self._open()
                self._stall.look(self._log, deep=False)
            except OSError as error:
                self.say(f"the job stands still, but no evidence can be written: {error}")
        elif change.state == "healed" and self._stall is not None:
            if self._stall.is_concluded:
                self.say("the job makes progress again")
            else:
                self._stall.discard()
            self._stall = None

    def _is_due(self, now: float) -> bool:
        stall = self._stall
        return (
            stall is not None
            and not stall.is_concluded
            and self._log.watch.state == "confirmed"
            and now >= stall.deep_due
        )

    def _conclude(self, stall: Stall) -> None:
        # Once only, whatever happens: a deep sample stops processes for a moment. Before the first
        # step they are still importing and joining, and none is stopped.
        stall.deep_due = math.inf
        try:
            stall.look(self._log, deep=self._log.has_steps)
            self._catch_up()
            if self._stall is not stall:
                return  # a step came while we sampled
            diagnosis = stall.conclude(self._log, "stall")
        except Exception:
            self.say(f"the job stands still, but the diagnosis failed; evidence: {stall.directory}")
            raise
        self._tell(diagnosis)
        if self._wants_stop(diagnosis):
            os.write(self._requests, json.dumps({"stop": stall.print_id}).encode() + b"\n")
        self.say(f"reports: {stall.publish(self._log)}")

    def _wants_stop(self, diagnosis: Diagnosis) -> bool:
        """Only a hang that is certain, and that nothing has moved since."""
        return (
            self._config.on_hang.action == "stop"
            and diagnosis.verdict.is_hang
            and diagnosis.verdict.confidence == "high"
            and self._log.watch.phase != "load"
            and self._log.watch.state == "confirmed"
        )

    def _sample_early(self, now: float) -> None:
        """Keep evidence of a long silence that is not suspect yet: the job may end in it."""
        silent = self._log.watch.silent_for(now)
        if silent < EARLY_SECONDS:
            if self._early is not None:
                self._early.discard()
                self._early = None
            self._early_due = EARLY_SECONDS
        elif silent >= self._early_due and not self._blind:
            self._early_due = silent + EARLY_SECONDS
            if self._early is not None and self._early.samples >= EARLY_SAMPLES:
                self._early.discard()
                self._early = None
            self._early = self._early or self._open()
            self._early.look(self._log, deep=False)

    def _finish(self, ending: Mapping[str, Any]) -> None:
        """The job has ended: a failure is an incident of its own."""
        code = int(ending["exit"])
        self.note(f"the job ended with exit code {code}")
        self._catch_up()
        stall = self._stall or self._early
        if stall is not None and stall.diagnosis is not None:
            if stall.diagnosis.verdict.is_hang:
                return
            # What stood still then was no hang; that the job failed is a story of its own.
            stall = self._stall = None
        # An interrupted job is no incident, unless it stood still at that time.
        if code == 0 or (ending.get("interrupted") and self._stall is None):
            if stall is not None:
                stall.discard()
            self._drop_copies()
            return
        time.sleep(LAST_LINES_SECONDS)
        self._log.poll(time.monotonic())
        trained = self._known or self._log.events() or self._log.has_steps
        if stall is None and not trained:
            # A command that failed before it trained: its own words say all there is to say.
            return
        stall = stall or self._open()
        self._tell(stall.conclude(self._log, "exit"))
        self.say(f"reports: {stall.publish(self._log)}")

    def _take_census(self) -> None:
        """Remember who trains here: a rank that is gone later was one of them."""
        from whyhang.collectors.process_table import list_processes

        self._known = list_processes(
            node=platform.node() or "localhost",
            root=self._pid,
            exclude=(os.getppid(), os.getpid()),
            marker=self._settings["marker"],
        )
        self._log.watch.worked(time.monotonic())

    def _open(self) -> Stall:
        from whyhang.engine.stall import Stall

        rules = self._settings["rules"]
        return Stall(
            config=self._config,
            rules=Path(rules) if rules else None,
            store=Path(self._settings["store"]),
            root=self._pid,
            marker=self._settings["marker"],
            exclude=(os.getppid(), os.getpid()),
            known=self._known or (),
        )

    def _tell(self, diagnosis: Diagnosis) -> None:
        verdict = diagnosis.verdict
        self.say(
            f"{verdict.verdict} ({verdict.category}, {verdict.confidence} confidence): "
            f"{verdict.headline}"
        )

    def _drop_copies(self) -> None:
        """A job that went well needs no copy of its output."""
        for directory in map(Path, self._settings["scratch"]):
            for copy in directory.glob("std*.log*"):
                with contextlib.suppress(OSError):
                    copy.unlink()


def sweep(directory: Path, before: float) -> None:
    """Delete what runs left in a directory of jobs that nothing was written to since a time."""
    with contextlib.suppress(OSError):
        for job in directory.iterdir():
            if all(path.stat().st_mtime < before for path in (job, *job.iterdir())):
                shutil.rmtree(job, ignore_errors=True)


def open_journal(directories: list[Path]) -> int:
    """Open our log in the first directory that takes it; else what is written goes nowhere."""
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            return os.open(
                directory / "watcher.log",
                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
                0o600,
            )
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def read_settings() -> dict[str, Any]:
    """The first line of our input, byte by byte: what follows it belongs to the loop."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        line += byte
    settings: dict[str, Any] = json.loads(line)
    return settings


def main(arguments: list[str]) -> int:
    """Run the watcher; the argument is the descriptor towards the supervisor."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    return Watcher(read_settings(), int(arguments[0])).run()
