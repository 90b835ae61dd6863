"""Printing a diagnosis: colours and width only where a person looks at a terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from whyhang.renderers.terminal import render_terminal
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.errors import UsageError


def write_out(text: str) -> None:
    """Write to stdout; what its encoding lacks (a terminal of Latin 1) is replaced."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_file(path: Path, text: str) -> None:
    """Write to a file or device that the user named. Raises UsageError where that fails."""
    with _told(path):
        path.write_bytes(text.encode("utf-8", "replace"))


def replace_file(path: Path, text: str) -> None:
    """Write a report among evidence, whole or not at all. Raises UsageError where that fails.

    Evidence may be from anywhere: a link that stands in the place of the report is not followed.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with _told(path):
        try:
            with partial.open("xb") as file:
                file.write(text.encode("utf-8", "replace"))
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="`whyhang render PATH --as FORM -o FILE` writes a single output elsewhere",
        ) from error


def print_diagnosis(
    diagnosis: Diagnosis, files: Sequence[str] = (), *, command: str | None = None
) -> None:
    """Print the short form of a diagnosis to stdout."""
    interactive = sys.stdout.isatty()
    color = interactive and "NO_COLOR" not in os.environ
    width = min(shutil.get_terminal_size().columns, 120) if interactive else 100
    for line in render_terminal(diagnosis, color=color, files=files, command=command, width=width):
        write_out(line + "\n")
