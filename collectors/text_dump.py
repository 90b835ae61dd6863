"""Reads stacks that people paste: py-spy's text in all its shapes, and what other tools print.

Known are ``py-spy dump`` (edited, quoted, wrapped and grouped by hand), faulthandler, tracebacks,
gdb with Python support, and pystack. The values of locals are dropped. Foreign text never raises;
the time is linear in its length.
"""

from __future__ import annotations

import re
from dataclasses import replace

from whyhang.collectors.masking import shorten_homes
from whyhang.collectors.text_dump_blocks import MAX_THREADS, BlockDraft, ProcessBlock, ThreadDraft
from whyhang.collectors.text_dump_frames import (
    gdb_frame,
    is_elision,
    is_of_traceback,
    parse_file_line,
    parse_frames,
    parse_numbered,
)
from whyhang.collectors.text_dump_headers import (
    Header,
    ThreadHeader,
    gathered_header,
    group_header,
    mentioned,
    parent_header,
    process_header,
    python_header,
    thread_header,
)
from whyhang.collectors.text_dump_lines import Line, clean_lines
from whyhang.collectors.text_dump_tables import is_table_head, table_row
from whyhang.schemas.frame import Frame
from whyhang.schemas.rankset import RankSet

_MAX_STREAMS = 4096
_MAX_WRAPPED = 64
_MAX_ERRORS = 6
_MAX_ERROR = 300

_TRACEBACK = re.compile(r"(?:.*\s)?Traceback \(most recent call (last|first)\):\Z")
_CHAINED = re.compile(r"(?:During handling of the above|The above exception was the direct cause)")
_ERROR = re.compile(
    r"(?:Error|Reason|Caused by|Permission Denied|Failed to|thread '.*' panicked)\b|\d+: \S"
)
_FATAL = re.compile(r"(?:Fatal Python error|Timeout \()")
_C_STACK = "Current thread's C stack trace (most recent call first):"
_RULE = re.compile(r"-{8,}\Z")
_DIGIT = re.compile(r"\d")
_OUTERMOST_FIRST = ("pystack", "traceback")
_LOCALS = frozenset(("Arguments:", "Locals:"))


def parse_text_dump(text: str) -> tuple[ProcessBlock, ...]:
    """The processes of a paste, in their order; empty where the text holds no stack."""
    streams: dict[str, _Stream] = {}
    blocks: list[BlockDraft] = []
    for line in clean_lines(shorten_homes(text)):
        key = line.stream if line.stream in streams or len(streams) < _MAX_STREAMS else ""
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = _Stream(blocks)
        stream.feed(line)
    for stream in streams.values():
        stream.end()
    return tuple(
        part.build() for block in _last_of_each(blocks) if block.is_worth for part in block.split()
    )


def _last_of_each(blocks: list[BlockDraft]) -> list[BlockDraft]:
    """Without the earlier dumps of a process that printed its threads again.

    A forked worker's threads have the numbers of its parent's, so it must be no other kind.
    """
    kept: list[BlockDraft] = []
    for block in blocks:
        idents = block.idents
        if idents:
            kept = [
                before
                for before in kept
                if (before.header, before.section) != (block.header, block.section)
                or before.is_worker != block.is_worker
                or idents.isdisjoint(before.idents)
            ]
        kept.append(block)
    return kept


class _Stream:
    """Reads the lines of one printer."""

    def __init__(self, blocks: list[BlockDraft]) -> None:
        self._blocks = blocks
        self._block: BlockDraft | None = None
        self._thread: ThreadDraft | None = None
        # Thread heads that still wait for their frames.
        self._heads: list[ThreadDraft] = []
        self._pending: Header | None = None
        self._node: str | None = None
        self._head_indent = 0
        self._frame_indent: int | None = None
        self._in_locals = False
        self._in_table = False
        # An exception's traceback, and whether lines of source stand between the frames.
        self._traceback = False
        self._has_source = False
        self._chained = False
        self._wrapped = 0
        self._half: tuple[str, bool] | None = None
        self._after_blank = False
        # A rule stood in the line before: clush and dshbak set a node's name between two.
        self._after_rule = False
        # The heading of a new dump of faulthandler has come.
        self._died = False
        # What the last line of prose says of whose stack comes next.
        self._mention: Header | None = None
        self._section = 0
        # Prose stood behind the last stack: frames without a heading are another process's.
        self._prose = False

    def feed(self, line: Line) -> None:
        """Read one line."""
        text = line.text
        if not text:
            self._blank()
            return
        if self._head(line) or self._body(line):
            self._mention = None
        else:
            self._noise(line)
            if not _FATAL.match(text):
                self._mention = mentioned(text)
        self._after_blank = False
        self._after_rule = _RULE.match(text) is not None

    def end(self) -> None:
        """The paste ends here: a frame that was cut in two has outer ones that are lost."""
        if self._half is not None and self._thread is not None:
            self._thread.truncated = True

    def _blank(self) -> None:
        self._after_blank = True
        self._wrapped = 0
        self._half = None
        self._in_table = False

    # -- heads ------------------------------------------------------------------------------

    def _head(self, line: Line) -> bool:
        """Whether the line opens a process, a thread or a group of ranks."""
        text = line.text
        if self._in_locals and line.indent > self._head_indent:
            return False  # a value may look like anything
        if "rocess " in text and self._process(line):
            return True
        version = python_header(text) if text.startswith("Python v") else None
        if version is not None:
            self._open(line).python = version
            self._wrapped = 0
            return True
        if text == _C_STACK:
            self._open_c_stack()
            return True
        header = thread_header(text)
        if header is not None:
            self._open_thread(line, header)
            return True
        if "raceback" in text and self._open_traceback(line):
            return True
        return self._group(line)

    def _process(self, line: Line) -> bool:
        parent = parent_header(line.text)
        if parent is not None:
            if self._block is not None:
                self._block.ppid = parent
            self._wrapped = 0
            return True
        found = process_header(line.text)
        if found is None:
            return False
        self._close()
        self._block = None
        block = self._open(line)
        block.pid, block.command = found
        block.titled = True
        self._wrapped = 1
        self._head_indent = line.indent
        return True

    def _open(self, line: Line) -> BlockDraft:
        """The block that the line belongs to; a new one where a heading came before it."""
        mention = self._mention
        if mention is not None and self._block is not None:
            # More of a process that has been named is said between its threads.
            mention = None if mention.ranks == self._block.header.ranks else mention
        if self._block is not None and self._pending is None and mention is None:
            return self._block
        header = self._pending or mention or Header()
        if not header.ranks and line.rank is not None:
            header = replace(header, ranks=RankSet((line.rank,)))
        if header.node is None:
            header = replace(header, node=line.node or self._node)
        self._pending = None
        self._mention = None
        self._block = BlockDraft(header=header, pid=line.pid, section=self._section)
        self._blocks.append(self._block)
        self._chained = False
        return self._block

    def _open_thread(self, line: Line, header: ThreadHeader) -> None:
        block = self._open(line)
        if self._begins_anew(block, header):
            self._block, self._pending = None, block.header
            block = self._open(line)
        self._died = False
        last = self._thread
        alone = last is None or bool(last.frames) or last.truncated or self._after_blank
        if alone or (last is not None and not _alike(last.header, header)):
            self._heads = []
        self._close()
        thread = ThreadDraft(header, reversed=header.style in _OUTERMOST_FIRST)
        if len(block.threads) < MAX_THREADS:
            block.threads.append(thread)
        block.tool = header.style
        self._heads.append(thread)
        self._thread = thread
        self._prose = False
        self._has_source = header.style in _OUTERMOST_FIRST
        self._head_indent = line.indent
        if header.frame:
            frame = gdb_frame(header.frame)
            if frame is not None:
                self._add((frame,), line)

    def _begins_anew(self, block: BlockDraft, header: ThreadHeader) -> bool:
        """Whether a thread is of another dump than those before it: of another process or time."""
        if header.style != "faulthandler" or not block.threads:
            return False
        return self._died or header.ident in block.idents

    def _open_c_stack(self) -> None:
        """Below all threads Python 3.14 prints the native frames of the one that failed."""
        threads = [] if self._block is None else self._block.threads
        current = next((thread for thread in threads if thread.header.current), None)
        alone = threads[0] if len(threads) == 1 else None
        self._close()
        # Its lines stand in no thread of their own; those of an unknown thread are dropped.
        self._thread = ThreadDraft(ThreadHeader(style="faulthandler"))
        if current or alone:
            (current or alone or self._thread).native = self._thread
        self._heads = [self._thread]
        self._has_source = True

    def _open_traceback(self, line: Line) -> bool:
        match = _TRACEBACK.match(line.text[-200:])
        if match is None:
            return False
        if match[1] == "first" and self._thread is not None:
            # gdb's py-bt below the head of its thread: its frames come on top of the native ones.
            self._thread.frames = [frame for frame in self._thread.frames if frame.is_native]
            self._has_source = True
            return True
        chained, self._chained = self._chained, False
        self._close()
        block = self._open(line)
        if block.threads and not chained and block.tool != "traceback":
            self._block = None
            block = self._open(line)
        block.tool = "traceback"
        self._thread = ThreadDraft(ThreadHeader(style="py-spy"), reversed=match[1] == "last")
        self._heads = [self._thread]
        # Of chained exceptions the first tells where it happened.
        if not chained and len(block.threads) < MAX_THREADS:
            block.threads.append(self._thread)
        self._traceback = self._has_source = True
        self._head_indent = line.indent
        return True

    def _group(self, line: Line) -> bool:
        text = line.text
        if self._in_table or "|" in text or "  " in text:
            if is_table_head(text):
                self._in_table = True
                return True
            if self._in_table and self._row(line):
                return True
        if _DIGIT.search(text, 0, 80) is None:
            return False
        header = (gathered_header(text) if self._after_rule else None) or group_header(text)
        if header is None:
            return False
        if header.node is not None:
            self._node = header.node
        if header.is_boundary:
            # The name of a node alone: it holds until another is named.
            self._section += 1
            self._close()
            self._block = None
            return True
        self._close()
        self._block = None
        before = self._pending or self._mention
        if before is not None and not header.ranks and before.ranks and header.count == 1:
            header = replace(header, ranks=before.ranks)
        self._pending = replace(header, node=header.node or self._node)
        self._head_indent = line.indent
        if header.frame:
            self._frames(line._replace(text=header.frame), strict=True)
            self._close()
        return True

    def _row(self, line: Line) -> bool:
        """A row of a table of workers, pids and places."""
        row = table_row(line.text)
        if row is None:
            return not line.text.strip("|-+=: ")
        self._close()
        self._pending = Header(ranks=row.ranks, pid=row.pid, node=self._node)
        self._open(line)
        self._add(row.frames, line)
        self._close()
        return True

    # -- frames -----------------------------------------------------------------------------

    def _body(self, line: Line) -> bool:
        """Whether the line belongs to the stack that is being read."""
        text = line.text
        if text in _LOCALS:
            self._in_locals = self._thread is not None
            return self._in_locals
        if self._in_locals and not self._ends_locals(line):
            return True
        frame = parse_file_line(text)
        if frame is None and text.startswith("#"):
            frame = parse_numbered(text)
        if frame is not None:
            if self._thread is None and not text.startswith("#") and not line.indent:
                return False  # `File "x", line 3` in prose
            fresh = self._thread is None or (
                not self._thread.frames and self._thread.header.style == "py-spy"
            )
            self._add((frame,), line)
            if fresh and is_of_traceback(text) and self._thread is not None:
                self._thread.reversed = self._has_source = True
            return True
        if self._wrapped and self._continue_command(line):
            return True
        indented = self._thread is not None and line.indent > self._head_indent
        if not self._has_source and self._frames(line, strict=not indented):
            return True
        if self._thread is not None and is_elision(text):
            self._thread.truncated = True
            return True
        if self._has_source and line.indent > self._head_indent:
            return True  # a line of source
        return indented and self._half_frame(line)

    def _ends_locals(self, line: Line) -> bool:
        """Whether the values are over: a frame stands where frames stand."""
        if self._frame_indent is None or line.indent != self._frame_indent:
            return False
        if parse_frames(line.text, strict=True) is None:
            return False
        self._in_locals = False
        return True

    def _frames(self, line: Line, *, strict: bool) -> bool:
        if self._half is not None and line.indent <= self._head_indent and self._join(line):
            return True
        found = parse_frames(line.text, strict=strict)
        if found is None:
            return False
        self._half = None
        headless = self._thread is None and not (line.indent or self._pending or line.stream)
        # Without any heading before it, only a frame of Python is taken for one.
        if headless and any(frame.is_native or not frame.line for frame in found.frames):
            return False
        self._add(found.frames, line)
        if found.edited and self._thread is not None:
            self._thread.truncated = True
        return True

    def _join(self, line: Line) -> bool:
        """Put a frame together again that a line break has split."""
        if self._half is None or not line.text.endswith(")"):
            return False
        head, padded = self._half
        found = parse_frames(head + (" " if padded else "") + line.text, strict=False)
        if found is None:
            return False
        self._half = None
        self._add(found.frames, line)
        return True

    def _half_frame(self, line: Line) -> bool:
        text = line.text
        if self._half is not None:
            head, padded = self._half
            text = head + (" " if padded else "") + text
        if len(text) > 4000 or not re.search(r"[<({,:]", text):
            return False
        self._half = (text, line.padded or len(line.text) < 60)
        return True

    def _add(self, frames: tuple[Frame, ...], line: Line) -> None:
        if self._prose and self._thread is None and self._block and self._block.threads:
            self._block = None
        block = self._open(line)
        if self._thread is None:
            self._thread = ThreadDraft(ThreadHeader(style="py-spy"))
            self._heads = [self._thread]
            if len(block.threads) < MAX_THREADS:
                block.threads.append(self._thread)
        if not self._thread.frames:
            self._frame_indent = line.indent
            for head in self._heads[:-1]:
                head.shares = self._thread
        self._thread.add(frames)
        self._wrapped = 0

    def _close(self) -> None:
        self._thread = None
        self._frame_indent = None
        self._in_locals = False
        self._traceback = self._has_source = False
        self._half = None

    # -- the rest ---------------------------------------------------------------------------

    def _continue_command(self, line: Line) -> bool:
        """A command line that the terminal has wrapped goes on until something known comes."""
        block = self._block
        if block is None or self._wrapped > _MAX_WRAPPED or _ERROR.match(line.text):
            self._wrapped = 0
            return False
        if line.indent > self._head_indent and parse_frames(line.text, strict=True) is not None:
            self._wrapped = 0
            return False
        self._wrapped += 1
        block.command += (" " if line.indent > self._head_indent else "") + line.text
        return True

    def _noise(self, line: Line) -> None:
        text = line.text
        if text.startswith("(gdb)"):
            return
        if _CHAINED.match(text):
            self._chained = True
            return
        block = self._block
        if block is None:
            return
        self._died |= _FATAL.match(text) is not None
        wanted = (block.titled and not block.threads) or _FATAL.match(text) or self._traceback
        if wanted and len(block.errors) < _MAX_ERRORS:
            block.errors.append(text[:_MAX_ERROR])
        if self._traceback and line.indent <= self._head_indent:
            self._close()
        elif self._after_blank and line.indent <= self._head_indent:
            # Prose: what comes after it is no longer of this stack.
            self._close()
            self._prose = True


def _alike(one: ThreadHeader, other: ThreadHeader) -> bool:
    """Whether two heads in a row can share a stack: merged by hand, both named or both not."""
    if one.style != "py-spy" or other.style != "py-spy":
        return False
    return (one.name is None) == (other.name is None) and one.active == other.active
