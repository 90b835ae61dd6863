"""Reads that do not wait for ever."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

import pytest

from whyhang.collectors import patient_read
from whyhang.collectors.patient_read import read_bytes, read_patiently


def test_a_read_that_hangs_is_given_up_and_not_repeated() -> None:
    """A file that blocks costs its limit once; while it blocks it is not tried again."""
    release, calls = threading.Event(), []

    def hang(path: str) -> bytes | None:
        calls.append(path)
        release.wait(30)
        return b"late"

    started = time.monotonic()
    assert read_patiently("/x/1/environ", limit_seconds=0.05, read=hang) is None
    assert read_patiently("/x/1/environ", limit_seconds=0.05, read=hang) is None
    assert time.monotonic() - started < 10
    assert calls == ["/x/1/environ"]
    release.set()
    deadline = time.monotonic() + 10
    answer = None
    while answer is None and time.monotonic() < deadline:
        answer = read_patiently("/x/1/environ", limit_seconds=1, read=lambda _: b"now")
    assert answer == b"now"


def test_a_read_that_only_lacks_a_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a runnable thread the limit tells how busy the machine is, not that the read hangs."""
    monkeypatch.setattr(patient_read, "_STARVED_TIMES", 1000.0)

    def work(_path: str) -> bytes:
        # One long call that keeps the CPU and lets go of Python's lock.
        return hashlib.sha256(bytes(50 << 20)).digest()

    assert read_patiently("/x/2/environ", limit_seconds=0.01, read=work) is not None


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    """A missing file and a directory answer None, a file its content."""
    (tmp_path / "file").write_bytes(b"x\0")
    assert read_bytes(str(tmp_path / "none")) is None
    assert read_patiently(str(tmp_path)) is None
    assert read_patiently(str(tmp_path / "file")) == b"x\0"
