"""The processes of a paste: as they come out, and as they are put together line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from whyhang.collectors.masking import mask_cmdline, mask_text
from whyhang.collectors.text_dump_headers import Header, ThreadHeader, labels_in
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.stack import Stack, Thread

MAX_FRAMES = 4096
MAX_THREADS = 100_000
# Where a main thread begins.
_BEGINNINGS = ("<module>", "_run_module_as_main")
_OLDEST_LAST = ("pystack", "faulthandler", "gdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBlock:
    """One process of a paste, or ``count`` of them that share these stacks.

    ``ranks`` are those that a heading or a prefix names; ``labels`` coordinates such as
    ``PP2 TP1``. ``cmdline`` is masked. ``errors`` is what stood where the stacks should be.
    """

    pid: int | None = None
    ppid: int | None = None
    cmdline: tuple[str, ...] | None = None
    python: str | None = None
    ranks: RankSet = NOBODY
    node: str | None = None
    labels: tuple[tuple[str, int], ...] = ()
    count: int = 1
    tool: str = "py-spy"
    threads: tuple[Thread, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether frames of any thread were left out."""
        return any(thread.stack.truncated for thread in self.threads)


@dataclass(slots=True)
class ThreadDraft:
    """A thread whose frames are still coming in."""

    header: ThreadHeader
    frames: list[Frame] = field(default_factory=list)
    reversed: bool = False
    truncated: bool = False
    # Another thread whose frames are this one's too: heads that were merged by hand.
    shares: ThreadDraft | None = None
    # Native frames that the tool prints apart; they stand below the innermost of Python.
    native: ThreadDraft | None = None

    def add(self, frames: tuple[Frame, ...]) -> None:
        """Take in frames, up to a limit that no stack of a program reaches."""
        room = MAX_FRAMES - len(self.frames)
        self.truncated |= len(frames) > room
        self.frames += frames[:room]

    @property
    def is_main(self) -> bool:
        """Whether it begins in a module, as only a main thread does."""
        python = [frame for frame in self.frames if not frame.is_native]
        return bool(python) and python[0 if self.reversed else -1].name in _BEGINNINGS

    def build(self) -> Thread:
        """The thread, frames innermost first."""
        source = self.shares or self
        frames = tuple(source.frames[::-1] if source.reversed else source.frames)
        if self.native is not None:
            frames = (*(frame for frame in self.native.frames if frame.is_native), *frames)
        return Thread(
            name=self.header.name,
            tid=self.header.tid,
            active=self.header.active,
            owns_gil=self.header.owns_gil,
            stack=Stack(frames, self.truncated or source.truncated),
        )


@dataclass(slots=True)
class BlockDraft:
    """A process whose threads are still coming in; ``titled`` where a line named the process."""

    pid: int | None = None
    ppid: int | None = None
    command: str = ""
    python: str | None = None
    header: Header = Header()
    tool: str = "py-spy"
    titled: bool = False
    # Which of the files or commands of a paste it stands in.
    section: int = 0
    threads: list[ThreadDraft] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def idents(self) -> frozenset[str]:
        """What the interpreter calls the threads, where the tool tells it."""
        return frozenset(
            thread.header.ident for thread in self.threads if thread.header.ident is not None
        )

    @property
    def is_worker(self) -> bool:
        """Whether it loads data for another process."""
        return any(
            frame.function == "_worker_loop" for thread in self.threads for frame in thread.frames
        )

    def split(self) -> Iterator[BlockDraft]:
        """The processes that it holds: some tools put nothing between those of two commands.

        They list the newest thread first, so that a main thread ends its process.
        """
        ends = [at for at, thread in enumerate(self.threads, 1) if thread.is_main]
        if self.tool not in _OLDEST_LAST or len(ends) < 2 or ends[-1] != len(self.threads):
            yield self
            return
        for start, end in pairwise((0, *ends)):
            pid = self.pid if start == 0 else None
            header = self.header if start == 0 else replace(self.header, pid=None)
            yield replace(self, threads=self.threads[start:end], pid=pid, header=header)

    @property
    def is_worth(self) -> bool:
        """Whether anything is known of it."""
        return self.titled or bool(self.threads)

    def build(self) -> ProcessBlock:
        """The process, its secrets masked."""
        words = tuple(self.command.split())
        pid = self.pid if self.pid is not None else self.header.pid
        main = None if pid is not None else _debuggers_main(self.threads)
        threads = _with_main(
            tuple(thread.build() for thread in self.threads),
            main if pid is None else pid,
            named=self.tool == "py-spy",
        )
        return ProcessBlock(
            pid=pid,
            ppid=self.ppid,
            cmdline=mask_cmdline(words) if words else None,
            python=self.python,
            ranks=self.header.ranks,
            node=self.header.node,
            labels=self.header.labels or labels_in(words[0] if words else ""),
            count=self.header.count,
            tool=self.tool,
            threads=threads,
            errors=tuple(mask_text(error) for error in self.errors),
        )


def _debuggers_main(threads: list[ThreadDraft]) -> int | None:
    """The kernel's id of a debugger's thread 1, if it is the oldest of the process.

    In the image of a process that died, thread 1 is the one that failed.
    """
    known = [thread.header.tid for thread in threads if thread.header.tid is not None]
    first = [thread.header.tid for thread in threads if thread.header.number == 1]
    told = len(known) > 1 and len(first) == 1 and first[0] == min(known)
    return first[0] if told else None


def _with_main(
    threads: tuple[Thread, ...], pid: int | None, *, named: bool = True
) -> tuple[Thread, ...]:
    """Name the main thread where the tool does not: it alone begins in a module.

    ``named``: the tool gives Python's names, so that a process without a main thread has none.
    """
    if any(thread.name == "MainThread" or (thread.name and named) for thread in threads):
        return threads
    main = [thread for thread in threads if pid is not None and thread.tid == pid]
    if len(main) != 1:
        main = list(_starting_in_module(threads))
    if len(main) != 1:
        return threads
    return tuple(
        replace(thread, name="MainThread") if thread is main[0] else thread for thread in threads
    )


def _starting_in_module(threads: tuple[Thread, ...]) -> Iterator[Thread]:
    for thread in threads:
        python = thread.stack.python
        if python and python[-1].name in _BEGINNINGS:
            yield thread
