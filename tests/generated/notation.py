"""Reads the stacks in ``stacks/*.txt``: sections of frames, innermost first, as in a dump.

``path:line qualified.name`` is a Python frame, ``! library name`` a native one and ``> section``
all frames of another section of the same file or of ``torch.txt``. ``@@`` stands for the job's
script and ``@path`` for a file of its own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STACKS = Path(__file__).parent / "stacks"


@dataclass(frozen=True, slots=True)
class Line:
    """A frame: ``path`` is relative to its package root, or a library where ``native``."""

    path: str
    number: int
    name: str
    native: bool = False


Sections = Mapping[str, tuple[str, ...]]


def parse_line(text: str) -> Line:
    """The frame that a line describes."""
    place, _, name = text.partition(" ")
    if place == "!":
        library, _, name = name.partition(" ")
        return Line(library, 0, name, native=True)
    path, _, number = place.rpartition(":")
    return Line(path, int(number), name)


@cache
def read_sections(framework: str) -> Sections:
    """The sections of a framework, over those of torch."""
    found: dict[str, list[str]] = {}
    for name in ("torch", framework):
        current: list[str] = []
        for raw in (STACKS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            line = raw.strip()
            if line.startswith("["):
                current = found[line[1:-1]] = []
            elif line and not line.startswith("#"):
                current.append(line)
    return {name: tuple(lines) for name, lines in found.items()}


@cache
def expand(framework: str, section: str, backend: str) -> tuple[Line, ...]:
    """The frames of a section, those it refers to included."""
    sections = read_sections(framework)
    frames: list[Line] = []
    for text in sections[section]:
        if text.startswith("> "):
            frames.extend(expand(framework, text[2:].replace("$", backend), backend))
        else:
            frames.append(parse_line(text))
    return tuple(frames)


def bare_name(qualified: str) -> str:
    """The name of the code alone, as older Pythons give it."""
    inner = qualified.rpartition(".<locals>.")[2]
    return inner if inner.startswith("<") else inner.rpartition(".")[2]
