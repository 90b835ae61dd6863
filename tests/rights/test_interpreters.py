"""Every Python that is installed here is read, and its frames have the same names."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.rights.situations import needs_ptrace, target
from whyhang.collectors import pyspy
from whyhang.schemas.missing import Missing

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
NESTED = """
import os, threading, time
class Loader:
    def fetch(self):
        def inner():
            os.write(1, b"ready\\n")
            time.sleep(300)
        (lambda: inner())()
threading.Thread(target=Loader().fetch, daemon=True).start()
def main():
    Loader().fetch()
main()
"""
MAIN = ["inner", "<lambda>", "fetch", "main", "<module>"]
THREAD = [
    "inner", "<lambda>", "fetch", "threading.run", "threading._bootstrap_inner",
    "threading._bootstrap",
]  # fmt: skip


@lru_cache(maxsize=1)
def _installed() -> dict[str, str]:
    """The interpreters of this machine by version: on PATH, in /usr/bin, of pyenv."""
    found = [shutil.which(f"python{version}") for version in VERSIONS]
    found += map(str, Path("/usr/bin").glob("python3.*"))
    found += map(str, (Path.home() / ".pyenv/versions").glob("*/bin/python3"))
    return {version: path for path in found if path for version in _version(path)}


def _version(path: str) -> list[str]:
    try:
        done = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return []
    return re.findall(r"^Python (3\.\d+)", done.stdout) if done.returncode == 0 else []


@pytest.mark.integration
@needs_ptrace
@pytest.mark.parametrize("version", VERSIONS)
def test_frames_have_one_name_in_every_python(version: str) -> None:
    """Qualified names of newer Pythons and bare ones of older come out the same."""
    python = _installed().get(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    with target(NESTED, python=python, ready=2) as pid:
        result = pyspy.dump(pid, "python", 30)
    assert not isinstance(result.threads, Missing), result.threads
    named = {
        tuple(frame.id.removeprefix("<string>.") for frame in thread.stack.python)
        for thread in result.threads
    }
    assert named == {tuple(MAIN), tuple(THREAD)}
