"""What the supervisor tells the watcher: JSON lines on its stdin, the settings first."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Orders:
    """Waits for what is told. Without a supervisor the job's process is looked at instead.

    ``blind``: nothing comes through the job's log any more.
    """

    def __init__(self, pid: int, note: Callable[[str], None], *, supervised: bool = True) -> None:
        self._pid = pid
        self._note = note
        self._supervised = supervised
        self._unread = b""
        self.blind = False

    def wait(self, seconds: float) -> Mapping[str, Any] | None:
        """Wait that long; how the job ended, if it has (its exit code None: nobody knows)."""
        if not self._supervised:
            time.sleep(seconds)
            return None if Path(f"/proc/{self._pid}").exists() else {"exit": None}
        if not select.select([0], [], [], seconds)[0]:
            return None
        data = os.read(0, 1 << 16)
        if not data:
            # The supervisor was killed: the job is still worth watching.
            self._supervised = False
            self._note("the supervisor has gone")
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "blind" in order:
                self.blind = True
                self._note(f"no log any more: {order['blind']}")
            if "exit" in order:
                return dict(order)
        return None


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
