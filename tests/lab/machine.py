"""What the lab does to the machine and how it undoes it: processes, a file system to freeze."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

# The variable by which all processes of a scenario are found again.
TOKEN = "WHYHANG_LAB"
GONE_SECONDS = 20.0


class StillThere(Exception):
    """Something that the lab started cannot be got rid of."""


def why_not_frozen() -> str | None:
    """Why no file system can be frozen here; None if one can."""
    if os.geteuid() != 0:
        return "mounting and freezing a file system needs root"
    missing = [tool for tool in ("fsfreeze", "mkfs.ext4", "mount") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not Path("/dev/loop-control").exists():
        return "no loop devices here"
    return None


@contextlib.contextmanager
def mounted_ext4(directory: Path) -> Iterator[Path]:
    """A small file system of its own on a loop device, unmounted at the end."""
    image, mount = directory / "disk.img", directory / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    # The loop device goes with the mount.
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True)
    try:
        yield mount
    finally:
        done = subprocess.run(["umount", str(mount)], capture_output=True)
        if done.returncode != 0:
            subprocess.run(["umount", "--lazy", str(mount)], check=True)
        image.unlink()


def thaw(mount: Path) -> None:
    """Let writes to the file system go on; nothing happens where it is not frozen."""
    subprocess.run(["fsfreeze", "--unfreeze", str(mount)], capture_output=True)


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
        time.sleep(0.2)


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    with contextlib.suppress(OSError):
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def state(pid: int) -> str:
    """The kernel's letter for a process; empty where it has gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
