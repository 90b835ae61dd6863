"""Incidents on disk: written piece by piece, published whole, read back, pruned."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.incidents import read_evidence
from whyhang.engine.store import (
    IncidentWriter,
    file_name,
    incident_directories,
    prune,
)
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import LogEvent, ProgressEvent
from whyhang.schemas.rankset import RankSet

Build = Callable[[Mapping[str, Any]], Incident]
HUNG = {"trainers": {"*": "backward", 2: "data"}, "workers": {2: "worker_blocked"}}
PRINT_ID = "1780890495107774003"
DAY = 86400.0


def write(incident: Incident, store: Path, spool: Path) -> Path:
    """Write and publish an incident."""
    assert incident.print_id
    writer = IncidentWriter(store, incident.print_id, spool=spool)
    for sample in incident.samples:
        writer.write_sample(sample.index, sample.processes)
    writer.write_index(incident)
    writer.write_log("train", incident.log_excerpt or ["step 1"])
    return writer.publish()


def test_written_is_read_back(build_incident: Build, tmp_path: Path) -> None:
    """An incident survives the way to disk and back with all its evidence."""
    from dataclasses import replace

    incident = replace(
        build_incident(HUNG),
        history=(ProgressEvent(at="x", monotonic_seconds=1.0, step=3),),
        events=(LogEvent(kind="oom_kill", line="x", ranks=RankSet([2])),),
        log_excerpt=("step 3", "step 4"),
    )
    place = write(incident, tmp_path / "store", tmp_path / "spool")
    assert place == tmp_path / "store" / PRINT_ID
    assert not list((tmp_path / "spool").iterdir())
    assert read_evidence(place) == incident


def test_torn_lines_cost_themselves(build_incident: Build, tmp_path: Path) -> None:
    """A broken line is reported as such; everything else is still read."""
    place = write(build_incident(HUNG), tmp_path / "store", tmp_path / "spool")
    sample = place / "samples" / "1" / "node0.jsonl"
    sample.write_bytes(sample.read_bytes() + b'{"pid": 99, "ra')
    read = read_evidence(place)
    assert len(read.samples[1].processes) == 5
    assert "node0.jsonl:6" in (read.sources["files"].reason or "")


def test_compressed_samples_are_read(build_incident: Build, tmp_path: Path) -> None:
    """A sample may be compressed."""
    place = write(build_incident(HUNG), tmp_path / "store", tmp_path / "spool")
    sample = place / "samples" / "0" / "node0.jsonl"
    (sample.parent / "node0.jsonl.gz").write_bytes(gzip.compress(sample.read_bytes()))
    sample.unlink()
    assert len(read_evidence(place).samples[0].processes) == 5


def test_an_unwritable_store_keeps_the_spool(build_incident: Build, tmp_path: Path) -> None:
    """Evidence that cannot be published stays where it is, and its place is told."""
    blocked = tmp_path / "store"
    blocked.write_text("a file where the store should be")
    place = write(build_incident(HUNG), blocked, tmp_path / "spool")
    assert place == tmp_path / "spool" / PRINT_ID
    assert (place / "incident.json").is_file()


def test_directory_of_dumps_is_read(tmp_path: Path) -> None:
    """Plain py-spy dumps whose names carry the rank are one sample."""
    dump = '[{"thread_name": "MainThread", "frames": [{"name": "f", "filename": "a.py"}]}]'
    for name in ("rank3.json", "worker-0-gpu-5.json", "7.json"):
        (tmp_path / name).write_text(dump)
    incident = read_evidence(tmp_path)
    assert incident.print_id is None
    assert sorted(p.rank or 0 for p in incident.samples[0].processes) == [3, 5, 7]


def test_wrong_paths_are_explained(tmp_path: Path) -> None:
    """No incident, no dump, a foreign index: each a clear error."""
    with pytest.raises(UsageError, match=r"no such directory"):
        read_evidence(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"neither incident\.json nor"):
        read_evidence(tmp_path)
    (tmp_path / "incident.json").write_text("{}")
    with pytest.raises(FormatError, match=r"incident\.json"):
        read_evidence(tmp_path)


def test_pruning_keeps_what_is_young_and_fits(tmp_path: Path) -> None:
    """Expired incidents go, then the oldest until the store fits; the newest always stays."""
    now = 40 * int(DAY) * 10**9 + 10**18
    ages = (35, 20, 10, 1)
    for age in ages:
        directory = tmp_path / f"{now - int(age * DAY * 1e9):019d}"
        directory.mkdir()
        (directory / "data").write_bytes(bytes(1000))
    (tmp_path / "notes").mkdir()
    deleted = prune(tmp_path, now_ns=now, keep_seconds=30 * DAY, max_bytes=10**6)
    assert len(deleted) == 1
    prune(tmp_path, now_ns=now, keep_seconds=30 * DAY, max_bytes=1500)
    assert len(list(incident_directories(tmp_path))) == 1
    prune(tmp_path, now_ns=now + 10**18, keep_seconds=0, max_bytes=0)
    assert len(list(incident_directories(tmp_path))) == 1
    assert (tmp_path / "notes").is_dir()


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/evil", "a/b", ".", "..", "", "é\u202e", "n" * 300]
)
def test_names_of_nodes_stay_in_their_directory(
    name: str, build_incident: Build, tmp_path: Path
) -> None:
    """Whatever a machine is called, its file lies in the sample and is read back as it was."""
    from dataclasses import replace

    incident = build_incident(HUNG)
    renamed = replace(
        incident,
        nodes=tuple(replace(node, name=name or "node0") for node in incident.nodes),
        samples=tuple(
            replace(
                sample,
                processes=tuple(replace(line, node=name) for line in sample.processes),
            )
            for sample in incident.samples
        ),
    )
    place = write(renamed, tmp_path / "store", tmp_path / "spool")
    files = {path.parent for path in tmp_path.rglob("*.jsonl")}
    assert files == {place / "samples" / "0", place / "samples" / "1"}
    if name:
        assert read_evidence(place).samples == renamed.samples


def test_nodes_do_not_share_a_file() -> None:
    """Two names that must both be changed stay two; a plain one stays as it is."""
    assert file_name("a/b") != file_name("a:b")
    assert file_name("gpu-31.cluster") == "gpu-31.cluster"


def test_published_again_it_grows_in_place(build_incident: Build, tmp_path: Path) -> None:
    """While more may come the spool stays; what others put beside the reports stays, too."""
    incident = build_incident(HUNG)
    writer = IncidentWriter(tmp_path / "store", PRINT_ID, spool=tmp_path / "spool")
    writer.write_sample(0, incident.samples[0].processes)
    writer.write_index(incident)
    place = writer.publish(keep=True)
    (place / "my notes.txt").write_text("asked the storage people")
    before = (place / "samples" / "0").stat().st_mtime_ns
    writer.write_sample(1, incident.samples[1].processes)
    writer.write_ras(0, b"{}", "json")
    writer.write_flight(3, b"dump")
    writer.write_report("diagnosis.md", "again")
    assert writer.publish(keep=True) == place
    assert (place / "my notes.txt").exists()
    assert (place / "samples" / "0").stat().st_mtime_ns == before
    assert read_evidence(place).samples == incident.samples
    assert (place / "nccl_ras" / "0.json").read_bytes() == b"{}"
    assert (place / "fr" / "3").read_bytes() == b"dump"
    assert not list(place.rglob("*.part"))
    assert writer.directory.exists()
    writer.release()
    assert not writer.directory.exists()


def test_what_was_never_published_is_not_released(build_incident: Build, tmp_path: Path) -> None:
    """Where the store takes nothing the spool is all there is."""
    (tmp_path / "file").write_text("")
    writer = IncidentWriter(tmp_path / "file" / "store", PRINT_ID, spool=tmp_path / "spool")
    writer.write_index(build_incident(HUNG))
    assert writer.publish(keep=True) == writer.directory
    writer.release()
    assert (writer.directory / "incident.json").exists()
