"""Tells people of a verdict as ``on_hang: notify`` wants: a command, a web hook, or both.

A process of its own does it, in a session of its own and for a bounded time: neither a mail server
that does not answer nor a command that never ends keeps the watcher from watching.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whyhang.collectors.own_module import module_command
from whyhang.engine.spawn import spawn_helper
from whyhang.schemas.config import OnHangConfig
from whyhang.schemas.verdict import Verdict
from whyhang.schemas.verdict_codec import encode_verdict

VERDICT = "verdict.json"
# The store's copy follows the verdict at once, or it does not come.
SETTLE_SECONDS = 10.0
RUN_SECONDS = 60.0
REAP_SECONDS = 1.0
POST_SECONDS = 15.0
# Whatever happens, the process is gone after this.
LIFE_SECONDS = 90
_MODULE = "whyhang.engine.notify"
_TOLD_CHARACTERS = 300
_SCHEMES = ("http://", "https://")


class Notifier:
    """Starts the process; ``journal`` is the descriptor that its troubles are written to."""

    def __init__(self, config: OnHangConfig, journal: int) -> None:
        self._config = config
        self._journal = journal
        self._pids: list[int] = []

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants to be told."""
        return bool(self._config.notify_run or self._config.notify_post)

    def tell(self, verdict: Verdict, *, event: str, place: Path, spool: Path) -> None:
        """Start telling. Raises OSError.

        The incident stands in ``spool`` and will stand in ``place``, unless the store is on the
        file system that hangs.
        """
        self._reap()
        order = {
            "run": self._config.notify_run,
            "post": self._config.notify_post,
            "verdict": encode_verdict(verdict).decode(),
            "environ": environ_of(verdict, event),
            "place": str(place),
            "spool": str(spool),
        }
        file = os.memfd_create("whyhang-notify", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(file), "wb") as stream:
                stream.write(json.dumps(order).encode())
            os.lseek(file, 0, os.SEEK_SET)
            self._pids.append(
                spawn_helper(module_command(_MODULE), streams={0: file, 2: self._journal})
            )
        finally:
            os.close(file)

    def wait(self, seconds: float) -> None:
        """Let those that tell come to their end, for a bounded time."""
        deadline = time.monotonic() + seconds
        while self._reap() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _reap(self) -> int:
        """Collect those that have ended; how many have not."""
        for pid in list(self._pids):
            try:
                ended = os.waitpid(pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                ended = True
            if ended:
                self._pids.remove(pid)
        return len(self._pids)


def environ_of(verdict: Verdict, event: str) -> dict[str, str]:
    """What the command finds in its environment, beside ``WHYHANG_PATH``."""
    return {
        "WHYHANG_EVENT": event,
        "WHYHANG_PRINT_ID": verdict.print_id or "",
        "WHYHANG_JOB_ID": verdict.job_id or "",
        "WHYHANG_VERDICT": verdict.verdict,
        "WHYHANG_CATEGORY": verdict.category,
        "WHYHANG_CONFIDENCE": verdict.confidence,
        "WHYHANG_HEADLINE": verdict.headline,
        "WHYHANG_RANKS": str(verdict.suspects.ranks),
    }


def main(arguments: list[str]) -> int:
    """Read the order from stdin and carry it out; trouble goes to stderr, our log."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIFE_SECONDS)
    order = json.loads(sys.stdin.buffer.read())
    where = settled(Path(order["place"]), Path(order["spool"]), order["verdict"].encode())
    environ = {**order["environ"], "WHYHANG_PATH": str(where)}
    troubles = []
    # The web hook first: it ends sooner.
    if order["post"]:
        troubles.append(post(order["post"], json.loads(order["verdict"]), environ))
    if order["run"]:
        troubles.append(run(order["run"], order["verdict"], environ))
    for trouble in filter(None, troubles):
        sys.stderr.write(f"notify: {trouble}\n")
    return 1 if any(troubles) else 0


def settled(place: Path, spool: Path, verdict: bytes) -> Path:
    """Where the reports of a verdict can be read: in the store as soon as they are there.

    A store that hangs costs a thread, and after some seconds the spool is the answer.
    """
    there = threading.Event()

    def look() -> None:
        while not there.is_set():
            with contextlib.suppress(OSError):
                if (place / VERDICT).read_bytes() == verdict:
                    there.set()
            time.sleep(0.1)

    threading.Thread(target=look, daemon=True).start()
    found = there.wait(SETTLE_SECONDS)
    there.set()
    return place if found else spool


def run(command: str, verdict: str, environ: Mapping[str, str]) -> str | None:
    """Run a shell command with the verdict on its stdin; what went wrong, if anything."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(verdict.encode())
        given.seek(0)
        child = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **environ},
            start_new_session=True,
        )
        try:
            status: int | None = child.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(REAP_SECONDS)
        if status == 0:
            return None
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TOLD_CHARACTERS))
        said = errors.read().decode("utf-8", "replace").strip().replace("\n", " | ")
    how = f"took more than {RUN_SECONDS:g} s" if status is None else f"ended with status {status}"
    return f"the command {how}{': ' if said else ''}{said}"


def post(url: str, verdict: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    """Send the verdict as JSON; what went wrong, if anything.

    ``text`` and ``path`` are added: chat services show the one, people look for the other.
    """
    # Only here: the watcher, which imports this module, needs none of it.
    import urllib.request

    if not url.startswith(_SCHEMES):
        return "the address of the web hook must begin with http:// or https://"
    headline = environ["WHYHANG_HEADLINE"]
    body = {
        "text": f"whyhang: {environ['WHYHANG_VERDICT']}: {headline}",
        "event": environ["WHYHANG_EVENT"],
        "path": environ["WHYHANG_PATH"],
        **verdict,
    }
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "whyhang"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=POST_SECONDS):
            return None
    except (OSError, ValueError) as error:
        return f"the web hook does not take it: {error}"
