"""Threads and stacks as py-spy's JSON has them, of any of its releases. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from whyhang.schemas.frame import Frame, is_address
from whyhang.schemas.lenient import decode_leniently
from whyhang.schemas.stack import Stack, Thread
from whyhang.schemas.wire import reader


class _Frame(Struct):
    name: str | None = None
    filename: str | None = None
    short_filename: str | None = None
    line: int | None = None
    module: str | None = None


class ThreadWire(Struct):
    """A thread as the document has it, its frames still bytes."""

    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    frames: Raw = Raw(b"[]")
    truncated: bool | None = None


class StackReader:
    """Decodes threads, reading each distinct stack once.

    A thousand ranks that hang show a handful of stacks: frames are kept as raw bytes until they
    prove to be new. Equal stacks come out as the same object. ``ignored`` tells of values that
    were not what they should be and count as unknown.
    """

    def __init__(self) -> None:
        self.ignored: list[str] = []
        self._frames: dict[tuple[bytes, bool], Stack] = {}
        self._stacks: dict[Stack, Stack] = {}
        self._interned: dict[Frame, Frame] = {}
        self._threads = msgspec.json.Decoder(list[ThreadWire], strict=False)
        self._frame_list = msgspec.json.Decoder(list[_Frame] | None, strict=False)

    def threads(self, data: bytes) -> tuple[Thread, ...]:
        """Decode what ``py-spy dump --json`` prints. Raises FormatError."""
        wires, ignored = decode_leniently(data, reader(self._threads, "a py-spy dump"))
        self.ignored += ignored
        return self.from_wires(wires)

    def from_wires(self, wires: Iterable[ThreadWire]) -> tuple[Thread, ...]:
        """The threads of a document that was decoded already."""
        return tuple(
            Thread(
                name=wire.thread_name or None,
                tid=wire.os_thread_id,
                active=wire.active,
                owns_gil=wire.owns_gil,
                stack=self._stack(bytes(wire.frames), bool(wire.truncated)),
            )
            for wire in wires
        )

    def _stack(self, raw: bytes, truncated: bool) -> Stack:
        known = self._frames.get((raw, truncated))
        if known is None:
            wires, ignored = decode_leniently(raw, reader(self._frame_list, "a list of frames"))
            self.ignored += ignored
            frames = tuple(self._frame(wire) for wire in wires or ())
            stack = Stack(frames, truncated)
            known = self._stacks.setdefault(stack, stack)
            self._frames[raw, truncated] = known
        return known

    def _frame(self, wire: _Frame) -> Frame:
        name = wire.name or "?"
        if wire.module is not None and is_address(name):
            # An address differs in every process: kept, no two ranks would share a stack.
            name = "?" + wire.module.rsplit("/", 1)[-1]
        frame = Frame(name, wire.filename, wire.short_filename, wire.line or 0, wire.module)
        return self._interned.setdefault(frame, frame)


def decode_threads(data: bytes) -> tuple[Thread, ...]:
    """Decode one ``py-spy dump --json``. Raises FormatError."""
    return StackReader().threads(data)


def thread_wire(pid: int, thread: Thread) -> dict[str, Any]:
    """A thread of process ``pid`` as the document has it."""
    wire: dict[str, Any] = {
        "pid": pid,
        "thread_id": thread.tid,
        "thread_name": thread.name,
        "os_thread_id": thread.tid,
        "active": thread.active,
        "owns_gil": thread.owns_gil,
        "frames": [
            {
                "name": frame.name,
                "filename": frame.filename,
                "module": frame.module,
                "short_filename": frame.short_filename,
                "line": frame.line,
            }
            for frame in thread.stack.frames
        ],
    }
    if thread.stack.truncated:
        wire["truncated"] = True
    return wire
