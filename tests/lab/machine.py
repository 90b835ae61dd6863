"""What the lab needs of the machine, and how it finds, inspects and ends its processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Need = Literal["torch", "freeze", "fuse", "compiler"]
# The variable by which all processes of a scenario are found again.
TOKEN = "WHYHANG_LAB"
GONE_SECONDS = 20.0
STOPPED = frozenset("Tt")


class StillThere(Exception):
    """Something that the lab started cannot be got rid of."""


def why_not(needs: Iterable[Need]) -> str | None:
    """Why something with these needs cannot be done here; None if it can."""
    checks = {
        "torch": _why_no_torch,
        "freeze": _why_not_frozen,
        "fuse": _why_no_fuse,
        "compiler": _why_no_compiler,
    }
    return next(filter(None, (checks[need]() for need in needs)), None)


def _why_no_torch() -> str | None:
    return "PyTorch is not installed" if find_spec("torch") is None else None


def _why_not_frozen() -> str | None:
    if os.geteuid() != 0:
        return "mounting and freezing a file system needs root"
    missing = [tool for tool in ("fsfreeze", "mkfs.ext4", "mount") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not Path("/dev/loop-control").exists():
        return "no loop devices here"
    return None


def _why_no_fuse() -> str | None:
    if os.geteuid() != 0:
        return "mounting a FUSE file system needs root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse: {error.strerror}"
    return None


def _why_no_compiler() -> str | None:
    return "gcc is not installed" if shutil.which("gcc") is None else None


def processes_of(token: str) -> list[int]:
    """Every living process whose environment carries the token."""
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


def end_processes(token: str) -> None:
    """Kill every process with the token. Raises StillThere for what does not go."""
    deadline = time.monotonic() + GONE_SECONDS
    while found := processes_of(token):
        if time.monotonic() > deadline:
            raise StillThere(f"processes that cannot be killed: {found}")
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    with contextlib.suppress(OSError):
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def descendants(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for child in children(pid):
        yield from descendants(child)


def state(pid: int) -> str:
    """The kernel's letter for a process; empty where it has gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def states(pids: Iterable[int]) -> dict[int, str]:
    """The kernel's letters for these processes."""
    return {pid: state(pid) for pid in pids}


def harm(before: Mapping[int, str]) -> tuple[str, ...]:
    """Which of these processes have ended or stand still that did not, as people read it."""
    found = []
    for pid, was in before.items():
        now = state(pid)
        if now in ("", "Z") and was not in ("", "Z"):
            found.append(f"process {pid} has ended")
        elif now in STOPPED and was not in STOPPED:
            found.append(f"process {pid} was left stopped ({now})")
    return tuple(found)
