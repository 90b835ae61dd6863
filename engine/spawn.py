"""Starts processes without a shell, a thread or code between fork and exec."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence

from whyhang.schemas.environment import INTERNAL


def spawn(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    streams: Mapping[int, int] | None = None,
    mask: Collection[int] = (),
    search_path: bool = False,
) -> int:
    """Start a program that shares our process group; answer its pid.

    ``streams`` maps the child's standard descriptors to ours. Python's own changes to signal
    handling (SIGPIPE and SIGXFSZ ignored) are undone. Raises OSError as exec does.
    """
    start = os.posix_spawnp if search_path else os.posix_spawn
    return start(
        argv[0],
        list(argv),
        environ,
        file_actions=_duplicate(streams or {}),
        setsigmask=mask,
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


def spawn_helper(
    argv: Sequence[str],
    *,
    keep: Iterable[int] = (),
    streams: Mapping[int, int] | None = None,
    mask: Collection[int] = (),
) -> int:
    """Start a process of our own in a session of its own, with no input; answer its pid.

    ``keep`` are descriptors that it inherits under their numbers.
    """
    kept = tuple(keep)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    wired = {0: null, 1: null, 2: null, **(streams or {})}
    try:
        for fd in kept:
            os.set_inheritable(fd, True)
        return os.posix_spawn(
            argv[0],
            list(argv),
            {**os.environ, INTERNAL: "1"},
            file_actions=_duplicate(wired),
            setsigmask=mask,
            setsid=True,
        )
    finally:
        for fd in kept:
            os.set_inheritable(fd, False)
        os.close(null)


def _duplicate(streams: Mapping[int, int]) -> list[tuple[int, int, int]]:
    return [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in streams.items()]
