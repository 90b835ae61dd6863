"""Plays scenarios ahead of the tests that ask for them, a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.harness import Outcome, Play
from tests.lab.scenarios import Scenario


@dataclass(slots=True)
class Stage:
    """A pool of scenarios in play.

    Most of a scenario's time is waiting, so that two cost little more than one.
    """

    directory: Path
    scenarios: dict[str, Scenario]
    at_once: int = 2
    _curtain: threading.Event = field(default_factory=threading.Event)
    _futures: dict[str, Future[Outcome]] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.at_once)

    def announce(self, names: Iterable[str]) -> None:
        """Begin to play these, in their order."""
        for name in names:
            if name not in self._futures:
                play = Play(self.scenarios[name], self.directory / name, self._curtain)
                self._futures[name] = self._pool.submit(play.perform)

    def outcome(self, name: str) -> Outcome:
        """Wait for the end of a scenario. Raises LabError where it did not come about."""
        self.announce([name])
        return self._futures[name].result()

    def close(self) -> None:
        """End all that still plays."""
        self._curtain.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
