"""Looks at a healthy job: one collection each, judged with its log and without."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from tests.lab.job import Job
from tests.lab.scenarios import Scenario
from tests.quiet.names import ORDER, SO_FAR, STARTING, VISIBLE
from whyhang.engine.incidents import read_incident
from whyhang.engine.judge import judge
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.incident import Incident, Source
from whyhang.schemas.progress import Progress
from whyhang.schemas.verdict import Verdict

PROGRAM = "tests.quiet.train"
RANKS = 4
SILENT_SECONDS = 900.0
HANGS = ("local_hang", "global_hang")
COLLECT_SECONDS = 180.0
FOUND_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One collection: what the job did meanwhile, and what whyhang says under each view."""

    number: int
    situations: tuple[str, ...]
    seconds: float
    path: Path
    verdicts: Mapping[str, Verdict]

    @property
    def situation(self) -> str:
        """What the job did, in words."""
        return " -> ".join(self.situations)

    @property
    def wrong(self) -> tuple[str, ...]:
        """The views under which a hang was seen."""
        return tuple(view for view, given in self.verdicts.items() if given.verdict in HANGS)


def views(incident: Incident, situations: Sequence[str]) -> Iterator[tuple[str, Incident]]:
    """The same collection with less or worse news from its log."""
    yield "log", incident
    yield "no log", without_log(incident)
    if all(situation in VISIBLE for situation in situations):
        yield "silent log", with_silent_log(incident)


def without_log(incident: Incident) -> Incident:
    """As it is where the job's output cannot be read."""
    sources = {**incident.sources, "log": Source(ok=False, reason="no log")}
    return replace(incident, progress=Progress(), sources=sources, history=(), log_excerpt=())


def with_silent_log(incident: Incident) -> Incident:
    """As it is where the situation has lasted much longer than the job's rhythm explains."""
    assert incident.progress is not None
    progress = replace(
        incident.progress,
        state="stalled",
        stalled_seconds=SILENT_SECONDS,
        threshold_seconds=SILENT_SECONDS / 2,
    )
    return replace(incident, progress=progress)


def look(incident: Incident, situations: Sequence[str]) -> dict[str, Verdict]:
    """What the built-in rules say of a collection under each view."""
    return {view: judge(_ruleset(), seen) for view, seen in views(incident, situations)}


@lru_cache(maxsize=1)
def _ruleset() -> Ruleset:
    return load_ruleset()


class Lookout:
    """A job in a directory of its own, and somebody who looks at it now and then."""

    def __init__(self, directory: Path, order: Sequence[str], *, interval: str) -> None:
        self.directory = directory
        self.interval = interval
        directory.mkdir(parents=True)
        (directory / ORDER).write_text("\n".join(order))
        (directory / "hang.yaml").write_text("version: 1\n")
        self._job = Job(
            Scenario(
                summary="a healthy job", world_size=RANKS, options=("--start-method", "spawn")
            ),
            directory,
            threading.Event(),
            program=PROGRAM,
        )

    def looks(self, moments: Sequence[float]) -> Iterator[Look]:
        """One look after each of these pauses, given in seconds; the job is ended at the end."""
        self._job.start(None, None)
        try:
            for number, pause in enumerate(moments):
                self._await(pause)
                yield self._look(number)
        finally:
            self._job.end()

    def _await(self, pause: float) -> None:
        deadline = time.monotonic() + pause
        self._job.wait(lambda: time.monotonic() >= deadline, pause + FOUND_SECONDS, "moment")

    def _look(self, number: int) -> Look:
        deadline = time.monotonic() + FOUND_SECONDS
        while True:
            before, began = len(self.so_far()), time.monotonic()
            path = self._collect(number)
            if path is not None:
                break
            # Its ranks have not started yet.
            assert time.monotonic() < deadline
            time.sleep(1)
        situations = tuple(self.so_far()[before - 1 :])
        return Look(
            number=number,
            situations=situations,
            seconds=time.monotonic() - began,
            path=path,
            verdicts=look(read_incident(path), situations),
        )

    def so_far(self) -> list[str]:
        """The situations that have begun, the present one last."""
        path = self.directory / SO_FAR
        return [STARTING, *(path.read_text().splitlines() if path.exists() else ())]

    def _collect(self, number: int) -> Path | None:
        """The incident of a ``whyhang collect``; None where no rank was found."""
        store = self.directory / "incidents" / f"{number:03d}"
        command = [sys.executable, "-m", "whyhang.engine", "collect", "-c", "hang.yaml"]
        command += ["--pid", str(self._job.pid), "--interval", self.interval]
        command += ["--store", str(store), "--format", "json"]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._job.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COLLECT_SECONDS,
            check=False,
        )
        if done.returncode == 2 and "no process with a rank" in done.stderr:
            return None
        if done.returncode != 0:
            raise RuntimeError(f"collect ended with {done.returncode}:\n{done.stderr}")
        return store / str(json.loads(done.stdout)["print_id"])


def random_moments(seed: int, count: int, longest: float) -> tuple[float, ...]:
    """Pauses before the looks, between none and the longest."""
    chance = random.Random(seed)
    return tuple(chance.uniform(0, longest) for _ in range(count))
