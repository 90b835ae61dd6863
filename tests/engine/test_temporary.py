"""Temporary files have a place on machines that let nobody write to their disks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from whyhang.collectors.bounded_child import MAX_OUTPUT_BYTES, run_bounded
from whyhang.engine import doctor
from whyhang.engine.temporary import MEMORY, temporary_directory


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory takes a temporary file."""

    def refuse() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")


@pytest.mark.usefixtures("read_only")
def test_memory_is_used_where_no_disk_takes_files() -> None:
    """A read-only container is no reason to fail."""
    assert temporary_directory() == MEMORY


@pytest.mark.usefixtures("read_only")
def test_programs_are_asked_without_a_disk() -> None:
    """What a child prints needs no room on any disk, and is bounded."""
    assert run_bounded(["echo", "hello"], 5.0).stdout == "hello\n"
    assert len(run_bounded(["head", "-c", "20000000", "/dev/zero"], 20.0).stdout) == (
        MAX_OUTPUT_BYTES
    )


def test_spool_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` names the place; it does not fail."""

    def refuse() -> Path:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(doctor, "spool_root", refuse)
    monkeypatch.setattr(doctor, "temporary_directory", lambda: tmp_path / "file")
    (tmp_path / "file").write_text("")
    check = doctor._check_spool()
    assert check.status == "fail"
    assert check.cure == "set TMPDIR"
