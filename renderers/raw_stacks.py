"""The raw stacks of single processes, and those of two of them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from whyhang.renderers.clean import one_line, shorten
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Thread

LEAST_WIDTH = 60
_GAP = 3


def process_title(process: Process) -> str:
    """Who it is: ``gpu31 rank 3 dataloader 1, pid 4250``."""
    who = [process.node]
    if process.rank is not None:
        who.append(f"rank {process.rank}")
    who.append(process.kind)
    if process.worker is not None:
        who.append(str(process.worker))
    return one_line(f"{' '.join(who)}, pid {process.pid}")


def process_state(process: Process) -> str:
    """What the kernel says of it, as far as it was read."""
    words = [] if process.state is None else [f"state {process.state}"]
    if process.wchan:
        words.append(f"waits in {process.wchan}")
    if process.cpu_seconds is not None:
        words.append(f"{process.cpu_seconds:.1f} s of CPU")
    if process.dump is not None and process.dump.mode is not None:
        words.append(f"read {process.dump.mode}")
    return one_line(", ".join(words)) or "state unread"


def render_stacks(processes: Sequence[Process]) -> Iterator[str]:
    """Every thread of every process, innermost frame first, as dumps print them."""
    for number, process in enumerate(processes):
        if number:
            yield ""
        yield process_title(process)
        yield f"  {process_state(process)}"
        if process.cmdline:
            yield f"  {one_line(' '.join(process.cmdline))}"
        if process.dump is not None and process.dump.error:
            yield f"  {one_line(process.dump.error)}"
        if isinstance(process.threads, Missing):
            yield f"  no stack: {one_line(process.threads.reason)}"
            continue
        for thread in process.threads:
            yield f"  {_thread_title(thread)}"
            for frame in thread.stack.frames:
                yield f"    {frame_text(frame)}"


def frame_text(frame: Frame) -> str:
    """``Class.function (path:line)``, in full."""
    return one_line(f"{frame.name} ({frame.place})")


def render_side_by_side(left: Process, right: Process, *, width: int = 100) -> Iterator[str]:
    """Two processes in two columns, outermost frames first; ``|`` marks lines that differ."""
    width = max(width, LEAST_WIDTH)
    column = (width - _GAP) // 2

    def line(one: str, two: str, mark: str = " ") -> str:
        return f"{shorten(one, column):<{column}} {mark} {shorten(two, column)}".rstrip()

    yield line(process_title(left), process_title(right))
    yield line(process_state(left), process_state(right))
    threads, others = _by_name(left), _by_name(right)
    for name in dict.fromkeys((*threads, *others)):
        yield ""
        one, two = threads.get(name), others.get(name)
        yield line(*(_thread_title(t) if t else "(no such thread)" for t in (one, two)))
        for first, second, same in _align(_outermost_first(one), _outermost_first(two)):
            yield line(f"  {first}" if first else "", f"  {second}" if second else "", "| "[same])
    for process in (left, right):
        if isinstance(process.threads, Missing):
            yield ""
            yield f"{process_title(process)}: no stack: {one_line(process.threads.reason)}"


def _align(one: Sequence[str], two: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Lines beside each other, equal ones on one row."""
    for tag, a, b, c, d in SequenceMatcher(a=one, b=two, autojunk=False).get_opcodes():
        for first, second in zip_longest(one[a:b], two[c:d], fillvalue=""):
            yield first, second, tag == "equal"


def _outermost_first(thread: Thread | None) -> list[str]:
    """Python frames only: one of the two may have been read without native ones."""
    return [] if thread is None else [frame_text(f) for f in reversed(thread.stack.python)]


def _by_name(process: Process) -> dict[str, Thread]:
    """The threads by name; of equal names by number."""
    found: dict[str, Thread] = {}
    for thread in () if isinstance(process.threads, Missing) else process.threads:
        name = key = thread.name or "unknown"
        number = 1
        while key in found:
            number += 1
            key = f"{name} {number}"
        found[key] = thread
    return found


def _thread_title(thread: Thread) -> str:
    name = one_line(thread.name or "unnamed")
    words = [word for flag, word in ((thread.active, "active"), (thread.owns_gil, "gil")) if flag]
    more = f" ({'+'.join(words)})" if words else ""
    return f'Thread {"?" if thread.tid is None else thread.tid} "{name}"{more}'
