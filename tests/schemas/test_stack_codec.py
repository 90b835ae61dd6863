"""Threads of py-spy's JSON: every release is read."""

from __future__ import annotations

import json

import pytest

from whyhang.schemas.stack_codec import StackReader


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "f", "filename": "a.py", "module": None, "short_filename": "a.py", "line": 3},
        {"name": "f", "filename": "a.py", "line": 3, "locals": [], "is_entry": True},
        {"name": "f", "filename": "a.py", "line": 3},
    ],
)
def test_every_release_of_py_spy_is_read(shape: dict[str, object]) -> None:
    """All but name, filename and line of a frame are optional."""
    data = json.dumps([{"thread_name": None, "frames": [shape]}]).encode()
    (thread,) = StackReader().threads(data)
    assert thread.stack.python[0].name == "f"
    assert thread.stack.python[0].line == 3
