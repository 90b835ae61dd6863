"""Decides what happens to the job's output streams and which files tell of its progress."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

STDOUT = 1
STDERR = 2
StreamKind = Literal["file", "pipe", "terminal", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One of our output descriptors. ``path`` and ``size`` are those of a regular file."""

    fd: int
    kind: StreamKind
    identity: tuple[int, int] = (0, 0)
    path: str | None = None
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file or glob to tail, and how many bytes of it are older than the job."""

    path: str
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """``relayed`` are the descriptors to put a relay behind; equal pipes stand in one tuple."""

    logs: tuple[LogFile, ...] = ()
    relayed: tuple[tuple[int, ...], ...] = ()


def inspect_stream(fd: int) -> Stream:
    """What one of our own descriptors is."""
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return Stream(
                fd=fd,
                kind="file",
                identity=(status.st_dev, status.st_ino),
                path=str(Path(f"/proc/self/fd/{fd}").readlink()),
                size=status.st_size,
            )
        if stat.S_ISFIFO(status.st_mode):
            return Stream(fd=fd, kind="pipe", identity=(status.st_dev, status.st_ino))
        return Stream(fd=fd, kind="terminal" if os.isatty(fd) else "nothing")
    except OSError:
        return Stream(fd=fd, kind="nothing")


def find_logs(patterns: Sequence[str]) -> tuple[LogFile, ...]:
    """The logs that the user named, with what stands in them before the job starts."""
    return tuple(
        LogFile(path=pattern, start=sum(map(_size, glob.iglob(pattern, recursive=True))))  # noqa: PTH207 (a whole pattern)
        for pattern in patterns
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def plan_streams(streams: Sequence[Stream], known_logs: Sequence[LogFile]) -> StreamPlan:
    """Files that the user named win; then regular files; a relay only where neither is known.

    A stream that is a pipe gets a relay beside a file: progress bars go to stderr.
    """
    if known_logs:
        return StreamPlan(logs=tuple(known_logs))
    files = {
        stream.identity: LogFile(path=stream.path, start=stream.size)
        for stream in streams
        if stream.kind == "file" and stream.path is not None
    }
    pipes: dict[tuple[int, int], list[int]] = {}
    for stream in streams:
        if stream.kind == "pipe":
            pipes.setdefault(stream.identity, []).append(stream.fd)
    return StreamPlan(logs=tuple(files.values()), relayed=tuple(map(tuple, pipes.values())))


def copy_paths(directories: Sequence[Path], fds: Sequence[int]) -> tuple[Path, ...]:
    """Where a relay may write its log copy, best place first."""
    name = "stderr.log" if tuple(fds) == (STDERR,) else "stdout.log"
    return tuple(directory / name for directory in directories)
