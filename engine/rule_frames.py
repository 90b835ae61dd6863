"""Frames as rule tests write them, as py-spy would report them.

``module.function`` with an optional ``:line``, or ``path.py:line function``. Frames of known
libraries stand below site-packages, those of Python itself below its own root, all others are the
training code in ``/workspace``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from whyhang.engine.positions import LIBRARIES
from whyhang.schemas.frame import Frame
from whyhang.schemas.stack import Stack

PACKAGES = "/opt/venv/lib/python3.12/site-packages/"
STDLIB = "/usr/lib/python3.12/"
USER = "/workspace/"
NATIVE_LIBRARY = "libpython3.12.so"

_PLACE = re.compile(r"(?P<path>.*?)(?::(?P<line>\d+))?\Z")


def python_frame(text: str) -> Frame:
    """The frame that a text stands for; its line is 1 where the text tells none."""
    place, blank, name = text.strip().rpartition(" ")
    match = _PLACE.match(place if blank else text.strip())
    assert match is not None
    path, line = match["path"].strip(), int(match["line"] or 1)
    if not blank:
        module, _, name = path.rpartition(".")
        path = module.replace(".", "/") + ".py" if module else ""
    if not path:
        return Frame(name, None, None, line)
    for root in ("site-packages/", "dist-packages/"):
        if path.startswith(root):
            return Frame(name, PACKAGES + path.removeprefix(root), path.removeprefix(root), line)
    if path.startswith(("/", "~", "<")):
        return Frame(name, path, path.rpartition("/")[2], line)
    top = path.removesuffix(".py").partition("/")[0]
    if top in LIBRARIES:
        return Frame(name, PACKAGES + path, path, line)
    if top in sys.stdlib_module_names:
        return Frame(name, STDLIB + path, path, line)
    return Frame(name, USER + path, path, line)


def native_frame(text: str) -> Frame:
    """``function``, or ``library.so function``."""
    library, _, name = text.strip().rpartition(" ")
    return Frame(name, None, None, 0, library or NATIVE_LIBRARY)


def build_stack(python: Iterable[str], native: Iterable[str], version: int = 0) -> Stack:
    """A stack from frames outermost first; each ``version`` stands at another line."""
    frames = [python_frame(text) for text in reversed(tuple(python))]
    if version and frames:
        top = frames[0]
        frames[0] = Frame(top.name, top.filename, top.short_filename, top.line + version)
    return Stack((*(native_frame(text) for text in reversed(tuple(native))), *frames))
