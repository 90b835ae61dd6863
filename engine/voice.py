"""How the watcher speaks: to its own log, beside the job's output, and to those to be notified."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.schemas.config import OnHangConfig

if TYPE_CHECKING:
    from whyhang.engine.notify import Notifier
    from whyhang.engine.stall import Stall
    from whyhang.schemas.diagnosis import Diagnosis

# Whatever goes wrong for months, our log does not fill a disk.
JOURNAL_BYTES = 8 << 20


class Voice:
    """``directories`` are where the log may stand, the first one that takes it."""

    def __init__(self, directories: Sequence[Path], config: OnHangConfig) -> None:
        self._journal = open_journal(directories)
        self._left = JOURNAL_BYTES
        self._config = config
        self._notifier: Notifier | None = None

    def note(self, text: str) -> None:
        """Write a line to our own log."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"{stamp} {text}\n".encode("utf-8", "replace")
        self._left -= len(line)
        if self._left > 0:
            with contextlib.suppress(OSError):
                os.write(self._journal, line)

    def say(self, text: str) -> None:
        """Tell people something beside the job's output."""
        self.note(text)
        with contextlib.suppress(OSError):
            os.write(2, "".join(f"whyhang: {line}\n" for line in text.splitlines()).encode())

    def tell(self, diagnosis: Diagnosis) -> None:
        """Say what the verdict is."""
        verdict = diagnosis.verdict
        self.say(
            f"{verdict.verdict} ({verdict.category}, {verdict.confidence} confidence): "
            f"{verdict.headline}"
        )

    def notify(self, stall: Stall, diagnosis: Diagnosis, *, event: str) -> None:
        """Start telling those whom ``on_hang: notify`` names."""
        from whyhang.engine.notify import Notifier

        self._notifier = self._notifier or Notifier(self._config, self._journal)
        if not self._notifier.is_wanted:
            return
        try:
            self._notifier.tell(
                diagnosis.verdict, event=event, place=stall.final, spool=stall.directory
            )
        except OSError as error:
            self.note(f"nobody could be notified: {error}")

    def wait(self, seconds: float) -> None:
        """Let what was started be told, for a bounded time."""
        if self._notifier is not None:
            self._notifier.wait(seconds)


def open_journal(directories: Sequence[Path]) -> int:
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
