"""A thread's frames, and what makes two stacks the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from whyhang.schemas.frame import Frame


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames, innermost first.

    The identity of a stack is its Python frames alone (:attr:`python`): a process dumped plain,
    nonblocking and native is the same process, and a change of dump mode is no change of stack.
    ``truncated`` says that the report cut outer or inner frames.
    """

    frames: tuple[Frame, ...]
    truncated: bool = False
    python: tuple[Frame, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        python = tuple(frame for frame in self.frames if not frame.is_native)
        object.__setattr__(self, "python", python)

    @property
    def native(self) -> tuple[Frame, ...]:
        """The native frames below the innermost Python frame, innermost first.

        All frames of a stack without Python frames.
        """
        for number, frame in enumerate(self.frames):
            if not frame.is_native:
                return self.frames[:number]
        return self.frames

    @property
    def has_native(self) -> bool:
        """Whether any native frame was read."""
        return len(self.python) != len(self.frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One thread of a dump. ``tid`` is the operating system's; a flag is None where unknown."""

    name: str | None
    stack: Stack
    tid: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None
