"""Asks once for the newest checkpoint, beside the stacks, never waiting for a disk that hangs."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import replace

from whyhang.collectors.bounded_child import run_bounded
from whyhang.collectors.own_module import module_command
from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.config import CheckpointConfig
from whyhang.schemas.incident import Source

LIMIT_SECONDS = 8.0
_SLACK_SECONDS = 2.0
_MODULE = "whyhang.collectors.checkpoints"


class CheckpointInquiry:
    """Looks below ``progress.checkpoint.path`` in a thread, from :meth:`start` on."""

    def __init__(
        self, config: CheckpointConfig | None, limit_seconds: float = LIMIT_SECONDS
    ) -> None:
        self._config = config
        self._limit_seconds = limit_seconds
        self._thread: threading.Thread | None = None
        self._found: Checkpoint | None = None
        self._reason: str | None = "nobody looked for it"

    def start(self) -> None:
        """Look, at the first call."""
        if self._config is None or self._config.path is None or self._thread is not None:
            return
        self._reason = "no answer in time: its file system may hang"
        command = module_command(_MODULE, self._config.path)
        self._thread = threading.Thread(
            target=self._ask, args=(command,), name="whyhang-checkpoint", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # no more threads: it stays unread
            self._thread.start()

    def checkpoint(self) -> Checkpoint | None:
        """What was found, once it is known or the time is over."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(self._limit_seconds + _SLACK_SECONDS)
        return self._found

    @property
    def source(self) -> Source | None:
        """Whether it could be read; None where none is configured."""
        if self._config is None or self._config.path is None:
            return None
        return Source(ok=self._found is not None, reason=self._reason)

    def _ask(self, command: list[str]) -> None:
        run = run_bounded(command, self._limit_seconds)
        if run.status is None:
            return
        try:
            answer = json.loads(run.stdout)
        except ValueError:
            self._reason = (run.stderr.strip().splitlines() or ["no answer"])[-1][:200]
            return
        if "reason" in answer:
            self._reason = answer["reason"]
            return
        found = Checkpoint(**answer)
        limit = None if self._config is None else self._config.max_age
        self._found, self._reason = replace(found, max_age_seconds=limit), None
