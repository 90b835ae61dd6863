"""Modesty: the watch gives way to the training, what others wait for does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from whyhang.engine.modesty import NICENESS

pytestmark = pytest.mark.integration

# In a process of its own: neither the priority nor the score is had back.
PROGRAM = """
import os
from whyhang.engine.modesty import Foreground

seen = []

def note():
    child = os.popen("nice")
    seen.append((os.getpriority(os.PRIO_PROCESS, 0), int(child.read())))

def fail():
    raise ValueError("odd")

def watch():
    note()
    foreground.do(note)
    try:
        foreground.do(fail)
    except ValueError as error:
        seen.append(str(error))
    return "ended"

foreground = Foreground()
note()
print(foreground.host(watch))
note()
print(seen)
"""


def test_only_the_watch_itself_is_modest() -> None:
    """What it hands over, and what follows it, has the priority that the process began with."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ended, seen = done.stdout.splitlines()
    assert ended == "ended"
    nice = subprocess.run(["nice"], capture_output=True, text=True, check=True)
    own = int(nice.stdout)
    full, modest = (own, own), (min(own + NICENESS, 19),) * 2
    assert seen == str([full, modest, full, "odd", full])


def test_a_watch_that_fails_ends_all() -> None:
    """Nobody waits for a thread that is gone."""
    code = "from whyhang.engine.modesty import Foreground; Foreground().host(lambda: 1 / 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
