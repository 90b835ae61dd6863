"""Where a trainer's flight recorder leaves its dump, and how to ask for one.

PyTorch writes a dump when a collective times out, and, in jobs that switched the pipe on
(``TORCH_NCCL_DEBUG_INFO_PIPE_FILE``), whenever something is written to it. Nothing else makes it
write one: jobs without the pipe are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISFIFO

from whyhang.collectors.flight_recorder import MAX_BYTES
from whyhang.collectors.patient_read import read_patiently
from whyhang.collectors.procfs import PROC
from whyhang.schemas.missing import Missing

_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE",)
_BUFFERS = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_DEFAULT_NAMES = ("comm_lib_trace_rank_", "nccl_trace_rank_")
_READ_SECONDS = 2.0


def dump_paths(environ: Mapping[str, str], rank: int) -> tuple[str, ...]:
    """Where the dump of a rank may stand, as its process names the place, likeliest first."""
    return tuple(f"{prefix}{rank}" for prefix in dict.fromkeys(_prefixes(environ)))


def _prefixes(environ: Mapping[str, str]) -> Iterator[str]:
    told = [environ[name] for name in _PREFIXES if environ.get(name)]
    yield from told
    if not told:
        cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME') or '/tmp'}/.cache"
        for name in _DEFAULT_NAMES:
            yield f"{cache}/torch/{name}"
            yield f"/tmp/{name}"


def is_recording(environ: Mapping[str, str]) -> bool | None:
    """Whether the job records collectives; None where it leaves that to its release."""
    for name in _BUFFERS:
        if environ.get(name):
            return environ[name].strip() != "0"
    return None


def read_dump_of(
    pid: int, rank: int, environ: Mapping[str, str], *, not_before: float
) -> bytes | Missing:
    """The newest dump of a process; ``not_before`` is a time of the wall clock.

    An older file is of an earlier attempt, or of another job on this host.
    """
    stale = False
    for path in dump_paths(environ, rank):
        if not path.startswith("/"):
            continue  # relative to a directory that the process has left by now, perhaps
        inside = f"{PROC}/{pid}/root{path}"
        data = read_patiently(
            inside,
            limit_seconds=_READ_SECONDS,
            read=lambda name: _read_fresh(name, not_before),
        )
        if data:
            return data
        stale |= data == b""
    if stale:
        return Missing("its dump is older than this hang")
    if is_recording(environ) is False:
        return Missing("it keeps no record: the job set the size of its buffer to 0")
    return Missing("it has left no dump")


def _read_fresh(path: str, not_before: float) -> bytes | None:
    """The file's content; empty where it is too old or too large."""
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_mtime < not_before or status.st_size > MAX_BYTES:
                return b""
            return file.read(MAX_BYTES)
    except (OSError, ValueError):
        return None


def ask_for_dump(pid: int, rank: int, environ: Mapping[str, str]) -> Missing | None:
    """Ask a process for a dump through the pipe that the job switched on; None when asked.

    Never waits: a pipe that nobody reads is left alone.
    """
    prefix = next((environ[name] for name in _PIPES if environ.get(name)), None)
    if prefix is None:
        return Missing("the job has no dump pipe (TORCH_NCCL_DEBUG_INFO_PIPE_FILE)")
    path = f"{prefix}{rank}.pipe"
    if not path.startswith("/"):
        return Missing("the job's dump pipe is not an absolute path")
    try:
        file = os.open(f"{PROC}/{pid}/root{path}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return Missing(f"its dump pipe cannot be opened: {error}")
    try:
        if not S_ISFIFO(os.fstat(file).st_mode):
            return Missing("its dump pipe is not a pipe")
        os.write(file, b"1\n")
    except OSError as error:
        return Missing(f"its dump pipe cannot be written: {error}")
    finally:
        os.close(file)
    return None
