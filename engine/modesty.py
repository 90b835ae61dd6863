"""Leaves CPU and memory to the training, and takes them back for what others wait for.

A priority that a process has given up is not had back without rights. But it belongs to each
thread: the main thread keeps the one that we were started with.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")

NICENESS = 10
# The kernel shall prefer us to the training when memory runs out.
OOM_SCORE = "500"


def be_modest() -> None:
    """Leave CPU and memory to the training: the memory of all, the CPU of the calling thread."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)


class Foreground:
    """Lets a modest thread have something done at full priority, by the thread that hosts it."""

    def __init__(self) -> None:
        self._handed_over: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def host(self, work: Callable[[], T]) -> T:
        """Do something modestly, and meanwhile here what it hands over; what it answers."""
        answers: list[T] = []

        def begin() -> None:
            try:
                be_modest()
                answers.append(work())
            finally:
                self._handed_over.put(None)

        thread = threading.Thread(target=begin, name="whyhang-watch")
        thread.start()
        while (task := self._handed_over.get()) is not None:
            task()
        thread.join()
        return answers[0]

    def do(self, work: Callable[[], object]) -> None:
        """Hand something over and wait for its end. Raises what it raises."""
        failures: list[Exception] = []
        done = threading.Event()

        def task() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 (raised where it was asked for)
                failures.append(error)
            finally:
                done.set()

        self._handed_over.put(task)
        done.wait()
        if failures:
            raise failures[0]


def at_once(work: Callable[[], object]) -> None:
    """Do it here, as whoever is not modest can."""
    work()
