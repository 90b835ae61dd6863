"""What watchers that were killed left behind is deleted once it is past its time."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from whyhang.engine import sweep as sweeping
from whyhang.engine.sweep import sweep_spools, sweep_stagings

PRINT_ID = "1780890495107774003"


def leave(path: Path, age: float) -> Path:
    """A directory of evidence of some age in seconds."""
    (path / "samples" / "0").mkdir(parents=True)
    (path / "incident.json").write_text("{}")
    moment = time.time() - age
    for each in (path / "incident.json", path / "samples", path):
        os.utime(each, (moment, moment))
    return path


def test_spools_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old evidence goes, that of a running watcher and what is not ours to judge stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(sweeping, "MEMORY", tmp_path / "shm")
    for place in ("tmp", "shm"):
        (tmp_path / place).mkdir()
    old = [
        leave(tmp_path / "tmp" / f"whyhang-spool-{os.getuid()}" / PRINT_ID, 5000),
        leave(tmp_path / "shm" / "whyhang-spool-abc" / PRINT_ID, 5000),
    ]
    kept = [
        leave(tmp_path / "tmp" / f"whyhang-spool-{os.getuid()}" / "1880890495107774003", 100),
        leave(tmp_path / "tmp" / "others" / PRINT_ID, 5000),
    ]
    (tmp_path / "tmp" / "whyhang-spool-link").symlink_to(tmp_path / "tmp" / "others")
    sweep_spools(time.time() - 1000)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept)


def test_half_copies_are_swept(tmp_path: Path) -> None:
    """A copy to the store that was never finished goes, incidents and other files stay."""
    half = leave(tmp_path / f".{PRINT_ID}.4711", 2 * 86400)
    fresh = leave(tmp_path / f".{PRINT_ID}.4712", 100)
    whole = leave(tmp_path / PRINT_ID, 2 * 86400)
    hidden = leave(tmp_path / ".git", 2 * 86400)
    sweep_stagings(tmp_path, time.time())
    assert not half.exists()
    assert all(path.exists() for path in (fresh, whole, hidden))
    sweep_stagings(tmp_path / "missing", time.time())
