"""Follows growing logs by polling: reads at an offset, survives rotation, truncation and rewriting.

Polling is the base because inotify does not report writes of other hosts on shared file systems.
"""

from __future__ import annotations

import glob
import os
import stat
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whyhang.collectors.waker import start_waker

# Only the newest progress matters, so a flood is skipped rather than read.
MAX_POLL_BYTES = 1 << 20
_MAX_LINE_BYTES = 64 * 1024
_RESCAN_SECONDS = 10.0
_TENTATIVE_SECONDS = 2.0
# Network file systems revalidate at open: an idle file is opened anew to see its true size.
_REOPEN_SECONDS = 60.0
_FINGERPRINT_BYTES = 64
_OPEN_FILES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """New bytes of one file, cut at line ends (``\\n`` or ``\\r``).

    ``tentative``: a last line without an end that has stood for two seconds; it is not given again
    unless it grows; a chunk that begins with a line end ends it. ``skipped``: how many bytes before
    it were passed over. ``restarted``: the file was truncated, rewritten or rotated before these
    bytes.
    """

    source: str
    data: bytes
    tentative: bool = False
    skipped: int = 0
    restarted: bool = False


class Tailer:
    """Reads what is new in files and globs.

    ``start="end"`` gives only what is written from now on; ``"begin"`` gives an old file's last
    1 MiB too. Files that appear later are read from their begin. Paths that do not exist yet, or
    cannot be read, are tried again at each poll. ``wake``: where the kernel tells of new entries in
    the globs' directories, look for new files at once, not only every ten seconds.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        start: Literal["begin", "end"] = "begin",
        wake: bool = False,
    ) -> None:
        names = tuple(os.fspath(path) for path in paths)
        self._globs = tuple(name for name in names if glob.has_magic(name) and not _exists(name))
        self._start = start
        self._files: dict[str, _Followed] = {
            name: _Followed(name) for name in names if name not in self._globs
        }
        self._open: OrderedDict[str, _Followed] = OrderedDict()
        self._scanned: float | None = None
        self._first = True
        self._waker = start_waker(self._globs) if wake and self._globs else None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files followed so far; also those that do not exist yet."""
        return tuple(self._files)

    def poll(self, now: float) -> tuple[Chunk, ...]:
        """What is new in all files; ``now`` is monotonic seconds. Never raises OSError."""
        self._rescan(now)
        chunks: list[Chunk] = []
        for name, followed in self._files.items():
            chunks += followed.poll(now, at_end=self._first and self._start == "end")
            if followed.is_open:
                self._open[name] = followed
                self._open.move_to_end(name)
            else:
                self._open.pop(name, None)
            while len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        self._first = False
        return tuple(chunks)

    def close(self) -> None:
        """Close all files."""
        if self._waker is not None:
            self._waker.stop()
            self._waker = None
        for followed in self._files.values():
            followed.close()
        self._open.clear()

    def _rescan(self, now: float) -> None:
        woken = self._waker is not None and self._waker.woken()
        if self._scanned is not None and now - self._scanned < _RESCAN_SECONDS and not woken:
            return
        self._scanned = now
        if self._waker is not None:
            self._waker.follow()
        for pattern in self._globs:
            for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 (a whole pattern, `**` too)
                if name not in self._files:
                    self._files[name] = _Followed(name)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What ``stat`` said of a file; a change means that there may be something to read."""

    size: int
    modified_ns: int
    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Seen:
        return cls(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)

    def same_file(self, other: _Seen) -> bool:
        return (self.device, self.inode) == (other.device, other.inode)


class _Followed:
    """One file: its offset, the line that was begun, and the fingerprint of what was read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._fd: int | None = None
        self._seen: _Seen | None = None
        self._offset = 0
        self._fingerprint = b""
        self._held = b""
        self._held_since = 0.0
        self._held_given = False
        self._opened_at = 0.0
        self._restarted = False
        self._mid_line = False

    @property
    def is_open(self) -> bool:
        return self._fd is not None

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def poll(self, now: float, *, at_end: bool) -> list[Chunk]:
        try:
            return self._poll(now, at_end=at_end)
        except OSError:
            # Gone, stale handle or no permission: the next poll tries again.
            self.close()
            return self._idle(now)

    def _poll(self, now: float, *, at_end: bool) -> list[Chunk]:
        chunks: list[Chunk] = []
        current = _stat(self._name)
        if self._fd is not None:
            mine = _Seen.of(os.fstat(self._fd))
            if current is None or current.same_file(mine):
                # A file that was unlinked is still being written by those who hold it.
                chunks += self._read(now, self._fd, mine)
                if current is not None and now - self._opened_at >= _REOPEN_SECONDS:
                    self.close()
                return chunks or self._idle(now)
            # Rotated: drain the old one, then go on with the new one at its begin.
            chunks += self._read(now, self._fd, mine)
            chunks += self._finish_line()
            self.close()
            self._forget()
        if current is None:
            return chunks or self._idle(now)
        if self._seen is not None and not current.same_file(self._seen):
            self._forget()
        if current == self._seen:
            return chunks or self._idle(now)
        self._fd = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        self._opened_at = now
        mine = _Seen.of(os.fstat(self._fd))
        if at_end and self._seen is None:
            self._skip_to(mine.size)
            self._seen = mine
        chunks += self._read(now, self._fd, mine)
        return chunks or self._idle(now)

    def _read(self, now: float, fd: int, mine: _Seen) -> list[Chunk]:
        if mine == self._seen and mine.size == self._offset:
            return []
        if mine.size < self._offset or not self._fingerprint_holds(fd):
            self._forget()
        self._seen = mine
        skipped = 0
        if mine.size - self._offset > MAX_POLL_BYTES:
            skipped = mine.size - MAX_POLL_BYTES - self._offset
            self._skip_to(mine.size - MAX_POLL_BYTES)
        data = os.pread(fd, mine.size - self._offset, self._offset)
        if not data:
            return []
        self._offset += len(data)
        mark = data[-_FINGERPRINT_BYTES:]
        self._fingerprint = (self._fingerprint + mark)[-_FINGERPRINT_BYTES:]
        return self._cut(now, data, skipped)

    def _cut(self, now: float, data: bytes, skipped: int) -> list[Chunk]:
        if self._mid_line:
            # The reader came in the midst of a line, whose rest would be misread.
            first = min((at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0), default=-1)
            if first < 0:
                return []
            data = data[first:]
            self._mid_line = False
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end == 0:
            self._hold(now, self._held + data)
            return []
        ends_tentative = self._held_given and data[:1] in (b"\n", b"\r")
        begun = b"" if ends_tentative else self._held
        # One copy, not two: it is up to a mebibyte.
        whole = begun + memoryview(data)[:end]
        self._hold(now, data[end:])
        if whole.isspace() and not ends_tentative:
            return []
        chunk = Chunk(source=self._name, data=whole, skipped=skipped, restarted=self._restarted)
        self._restarted = False
        return [chunk]

    def _hold(self, now: float, held: bytes) -> None:
        if len(held) > _MAX_LINE_BYTES:
            half = _MAX_LINE_BYTES // 2
            held = held[:half] + held[-half:]
        self._held = held
        self._held_since = now
        self._held_given = False

    def _idle(self, now: float) -> list[Chunk]:
        if self._held_given or now - self._held_since < _TENTATIVE_SECONDS:
            return []
        return self._finish_line()

    def _finish_line(self) -> list[Chunk]:
        if self._held_given or not self._held.strip(b"\0 \t"):
            return []
        self._held_given = True
        chunk = Chunk(source=self._name, data=self._held, tentative=True, restarted=self._restarted)
        self._restarted = False
        return [chunk]

    def _skip_to(self, offset: int) -> None:
        self._offset = offset
        self._fingerprint = b""
        self._held = b""
        self._held_given = False
        self._mid_line = offset > 0 and not self._at_line_end(offset)

    def _at_line_end(self, offset: int) -> bool:
        return self._fd is not None and os.pread(self._fd, 1, offset - 1) in (b"\n", b"\r")

    def _fingerprint_holds(self, fd: int) -> bool:
        mark = self._fingerprint
        return not mark or os.pread(fd, len(mark), self._offset - len(mark)) == mark

    def _forget(self) -> None:
        """Begin anew at 0: this is another file than the one that was read."""
        self._skip_to(0)
        self._restarted = self._seen is not None
        self._seen = None


def _stat(name: str) -> _Seen | None:
    try:
        status = os.stat(name)  # noqa: PTH116 (a thousand files a second)
    except OSError:
        return None
    return _Seen.of(status) if stat.S_ISREG(status.st_mode) else None


def _exists(name: str) -> bool:
    """Whether a name with brackets or stars in it is a file of just that name."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False
