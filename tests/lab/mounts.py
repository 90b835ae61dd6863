"""File systems of the lab's own that can be made to stand still: an ext4 to freeze, a dead FUSE."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MountKind = Literal["ext4", "fuse_direct", "fuse_cached"]
_SERVER = Path(__file__).with_name("dead_fuse.py")
_GONE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system; ``release`` frees whoever waits for it, so that it can be killed."""

    path: Path
    release: Callable[[], None]


def mounted(kind: MountKind, directory: Path) -> contextlib.AbstractContextManager[Mount]:
    """A file system below the directory, unmounted at the end."""
    if kind == "ext4":
        return _mounted_ext4(directory)
    return _mounted_fuse(directory, kind.removeprefix("fuse_"))


@contextlib.contextmanager
def _mounted_ext4(directory: Path) -> Iterator[Mount]:
    image, place = directory / "disk.img", directory / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    # The loop device goes with the mount.
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield Mount(place, lambda: _thaw(place))
    finally:
        _unmount(place)
        image.unlink()


@contextlib.contextmanager
def _mounted_fuse(directory: Path, mode: str) -> Iterator[Mount]:
    place = directory / "storage"
    place.mkdir()
    command = [sys.executable, "-I", "-S", str(_SERVER), str(place), mode]
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert server.stdout is not None
        if server.stdout.readline() != b"mounted\n":
            raise OSError(f"no FUSE file system could be mounted on {place}")
        yield Mount(place, server.kill)
    finally:
        server.kill()
        server.wait(_GONE_SECONDS)
        assert server.stdout is not None
        server.stdout.close()
        _unmount(place)


def _thaw(place: Path) -> None:
    # Answers with an error where nothing is frozen.
    subprocess.run(["fsfreeze", "--unfreeze", str(place)], capture_output=True)


def _unmount(place: Path) -> None:
    done = subprocess.run(["umount", str(place)], capture_output=True)
    if done.returncode != 0 and place.is_mount():
        subprocess.run(["umount", "--lazy", str(place)], check=True)
