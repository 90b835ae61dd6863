"""A driver that does not answer: whoever asks it is given up in time."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.machine import processes_of, state, why_not
from tests.lab.mounts import mounted
from whyhang.collectors import nvml
from whyhang.collectors.gpu_facts import read_gpus
from whyhang.schemas.missing import Missing

LIMIT = 2.0


def program(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvidia-smi of our own, found before any other."""
    file = folder / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr(nvml, "is_installed", lambda: False)


@pytest.mark.integration
def test_a_program_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ignores every polite signal; what it had said counts for nothing but itself."""
    program(tmp_path, "trap '' TERM INT HUP; while :; do sleep 1; done", monkeypatch)
    started = time.monotonic()
    found = read_gpus(LIMIT)
    assert time.monotonic() - started < LIMIT + 5
    assert found == Missing("nvidia-smi: no answer within 2 s: a sick driver?")


@pytest.mark.integration
@pytest.mark.skipif(why_not(["freeze"]) is not None, reason=str(why_not(["freeze"])))
def test_a_program_that_cannot_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In uninterruptible sleep it outlives SIGKILL: it is left behind, and nobody waits for it."""
    monkeypatch.setenv("WHYHANG_LAB", "sick-driver")
    with mounted("ext4", tmp_path) as mount:
        program(tmp_path, f"exec touch {mount.path}/held", monkeypatch)
        subprocess.run(["fsfreeze", "--freeze", str(mount.path)], check=True)
        try:
            started = time.monotonic()
            found = read_gpus(LIMIT)
            assert time.monotonic() - started < LIMIT + 5
            assert isinstance(found, Missing) and "no answer within 2 s" in found.reason
            assert [state(pid) for pid in processes_of("sick-driver")] == ["D"]
        finally:
            mount.release()
