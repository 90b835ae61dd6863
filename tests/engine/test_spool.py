"""The local place of evidence: ours alone, whole files, and memory where the disk takes no more."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine import conclude as concluding
from whyhang.engine import spool as spooling
from whyhang.engine.incidents import read_evidence
from whyhang.engine.spool import Spool, spool_root
from whyhang.engine.store import IncidentWriter
from whyhang.rules.load import load_ruleset
from whyhang.schemas.incident import Incident

Build = Callable[[Mapping[str, Any]], Incident]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that stands for memory."""
    place = tmp_path / "shm"
    place.mkdir()
    monkeypatch.setattr(spooling, "MEMORY", place)
    return place


def fill(monkeypatch: pytest.MonkeyPatch, *places: Path) -> None:
    """Let nothing be written below some directories any more."""
    write = Path.write_bytes

    def refuse(path: Path, data: bytes) -> int:
        if any(place in path.parents for place in places):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", refuse)


def test_a_spool_that_is_not_ours_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that another user laid in the directory for temporary files is not followed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"whyhang-spool-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    root = spool_root()
    assert root.resolve() != (tmp_path / "elsewhere").resolve()
    assert root.stat().st_mode & 0o077 == 0


def test_a_full_disk_moves_the_evidence_to_memory(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written before comes along, what follows is written there."""
    spool = Spool("1", tmp_path / "disk")
    spool.write("samples/0/n.jsonl", b"{}")
    (spool.directory / "torn.part").write_bytes(b"{")
    fill(monkeypatch, tmp_path / "disk")
    spool.write("samples/1/n.jsonl", b"[]")
    assert spool.directory == memory / f"whyhang-spool-{os.getuid()}" / "1"
    assert (spool.directory / "samples/0/n.jsonl").read_bytes() == b"{}"
    assert (spool.directory / "samples/1/n.jsonl").read_bytes() == b"[]"
    assert not (spool.directory / "torn.part").exists()
    assert not (tmp_path / "disk" / "1").exists()


def test_a_disk_that_takes_no_directory_is_none(tmp_path: Path, memory: Path) -> None:
    """A read-only disk is noticed at once."""
    (tmp_path / "file").write_text("")
    spool = Spool("1", tmp_path / "file")
    assert memory in spool.directory.parents


@pytest.mark.usefixtures("memory")
def test_nowhere_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is full as well, whoever writes is told."""
    spool = Spool("1", tmp_path / "disk")
    fill(monkeypatch, tmp_path)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            spool.write("incident.json", b"{}")


def test_a_fault_in_a_report_costs_no_verdict(
    build_incident: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence and verdict are kept and given, whatever happens to the pictures."""

    def fail(diagnosis: object) -> dict[str, str]:
        raise RuntimeError("a bug in a picture")

    monkeypatch.setattr(concluding, "render_reports", fail)
    incident = build_incident({"trainers": {"*": "backward", 2: "data"}})
    writer = IncidentWriter(tmp_path / "store", "1780890495107774003", spool=tmp_path / "spool")
    writer.write_sample(0, incident.samples[0].processes)
    diagnosis = concluding.conclude(incident, load_ruleset(None), writer)
    assert diagnosis.verdict.verdict == "local_hang"
    assert b"local_hang" in (writer.directory / "verdict.json").read_bytes()
    assert "a bug in a picture" in (writer.directory / "error.txt").read_text()
    assert read_evidence(writer.directory).samples
