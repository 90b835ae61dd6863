"""Copies a job's output pipe on to where it was going, and a second time into a log file.

A program of its own: started by path with ``python -I -S``, it imports nothing of whyhang and as
little as possible else. Bytes never rest in this process: ``splice`` moves them from pipe to pipe
inside the kernel, so that a relay killed at any moment loses none, and its successor goes on where
it stopped. ``tee`` duplicates them for the log, and where the log cannot keep up its copy is
dropped, never the job's.

Arguments: SOURCE TARGET PULSE LOG…. The first three are file descriptors, PULSE a small shared
file (see :class:`Pulse`); LOG are paths of which the first that can be written is used.
Exit status: 0 at the end of the stream, 32 where the reader of TARGET has gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import sys
import threading
from pathlib import Path

CHUNK_BYTES = 1 << 16
LOG_LIMIT_BYTES = 16 << 20
READER_GONE = 32
SPLICE_F_NONBLOCK = 2
# An idle relay shows this often that it lives.
BEAT_MILLISECONDS = 1000
# What the log still holds back is given this long at the end; the job's own bytes have left.
FINISH_SECONDS = 2.0

_libc = ctypes.CDLL(None, use_errno=True)


class Pulse:
    """A counter and a flag in a shared memory file, read by the supervisor without waiting."""

    LAYOUT = struct.Struct("qq")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._beats = 0
        self._log_failed = 0

    def beat(self) -> None:
        """Tell that the loop turned once more."""
        self._beats += 1
        self._store()

    def log_failed(self, errno_value: int) -> None:
        """Tell that no log can be written any more, and why (an errno)."""
        self._log_failed = errno_value
        self._store()

    def _store(self) -> None:
        os.pwrite(self._fd, self.LAYOUT.pack(self._beats, self._log_failed), 0)


class LogCopy:
    """The file copy, written by a thread that may hang in a dead file system on its own.

    The thread is fed through a pipe; :attr:`inlet` is None once there is nothing to feed.
    """

    def __init__(self, paths: list[str], pulse: Pulse) -> None:
        self._paths = paths
        self._pulse = pulse
        self._outlet, self.inlet = os.pipe()
        os.set_blocking(self.inlet, False)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Let the thread write what it has, but not for long."""
        os.close(self.inlet)
        self._thread.join(FINISH_SECONDS)

    def _work(self) -> None:
        paths = iter(self._paths)
        target: int | None = None
        size = 0
        path = ""
        while data := os.read(self._outlet, CHUNK_BYTES):
            while data:
                try:
                    if target is None:
                        path = next(paths, "")
                        if not path:
                            break
                        target, size = open_log(path)
                    elif size > LOG_LIMIT_BYTES:
                        os.close(target)
                        Path(path).replace(path + ".1")
                        target, size = open_log(path)
                    written = os.write(target, data)
                    size += written
                    data = data[written:]
                except OSError as error:
                    # A full disk or no rights: the next place, and what was there stays.
                    if target is not None:
                        os.close(target)
                    target = None
                    self._pulse.log_failed(error.errno or errno.EIO)
            # With no place left the thread only empties its pipe.


def open_log(path: str) -> tuple[int, int]:
    """Open a log for appending, with its directory; answer the descriptor and the size so far."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    size = os.fstat(fd).st_size
    if size:
        # A predecessor may have died within a line.
        os.write(fd, b"\n")
    return fd, size


def tee(source: int, target: int) -> int | None:
    """Duplicate what waits in a pipe into another; None where there is no room, 0 at the end."""
    moved = int(_libc.tee(source, target, ctypes.c_size_t(CHUNK_BYTES), SPLICE_F_NONBLOCK))
    if moved >= 0:
        return moved
    code = ctypes.get_errno()
    if code in (errno.EAGAIN, errno.EINTR):
        return None
    raise OSError(code, os.strerror(code))


def move(source: int, target: int, amount: int) -> int:
    """Move up to ``amount`` bytes from pipe to pipe, waiting for room; 0 at the end."""
    while True:
        try:
            return os.splice(source, target, amount)
        except BlockingIOError:
            # The reader made the pipe nonblocking: wait as a blocking writer would.
            select.select([], [target], [])


def relay(source: int, target: int, pulse: Pulse, log: LogCopy | None) -> int:
    """Copy until the writers have closed; answer the exit status."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    # No event is asked for: an error is always told, and means that the reader has gone.
    poll.register(target, 0)
    try:
        while True:
            pulse.beat()
            ready = dict(poll.poll(BEAT_MILLISECONDS))
            if ready.get(target, 0) & select.POLLERR:
                return READER_GONE
            if source not in ready:
                continue
            copied = tee(source, log.inlet) if log else None
            left = copied or CHUNK_BYTES
            while left:
                moved = move(source, target, left)
                if not moved:
                    return 0
                left -= moved
                if not copied:
                    break
    except BrokenPipeError:
        return READER_GONE
    except OSError:
        # A sandbox without splice or tee.
        return relay_by_hand(source, target, pulse, log)


def relay_by_hand(source: int, target: int, pulse: Pulse, log: LogCopy | None) -> int:
    """As :func:`relay` with plain reads and writes: a kill between the two loses what was read."""
    while True:
        pulse.beat()
        if not select.select([source], [], [], BEAT_MILLISECONDS / 1000)[0]:
            continue
        data = os.read(source, CHUNK_BYTES)
        if not data:
            break
        if log:
            with contextlib.suppress(BlockingIOError):
                os.write(log.inlet, data)
        try:
            write_all(target, data)
        except BrokenPipeError:
            return READER_GONE
    return 0


def write_all(target: int, data: bytes) -> None:
    """Write everything, waiting where the reader made the pipe nonblocking."""
    while data:
        try:
            data = data[os.write(target, data) :]
        except BlockingIOError:
            select.select([], [target], [])


def main(arguments: list[str]) -> int:
    """Run the relay as the module's docstring says."""
    source, target, beat = map(int, arguments[:3])
    pulse = Pulse(beat)
    log = LogCopy(arguments[3:], pulse) if arguments[3:] else None
    status = relay(source, target, pulse, log)
    # Before anything that may take time: the end of the stream travels on.
    os.close(source)
    os.close(target)
    if log:
        log.finish()
    return status


if __name__ == "__main__":
    # A log thread that hangs must not keep the interpreter from ending.
    os._exit(main(sys.argv[1:]))
