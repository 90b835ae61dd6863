"""Damaged incident directories: partial evidence or a clear error, never a crash."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collectors.test_dump_fuzz import corrupt
from whyhang.engine import evidence_files
from whyhang.engine.diagnose import diagnose
from whyhang.engine.incidents import read_evidence
from whyhang.renderers.markdown import render_markdown
from whyhang.rules.load import load_ruleset
from whyhang.schemas.errors import FormatError, UsageError
from whyhang.schemas.incident_codec import encode_index
from whyhang.schemas.process_codec import encode_process

RECORDED = sorted((Path(__file__).parents[1] / "data" / "incidents").iterdir())
RULES = load_ruleset()
NOISE = (b"", b"{", b"]", b'"', b"\0", b"\xff", b"9" * 40, b"e", b"-", b"\n")


def damage(chance: random.Random, data: bytes) -> bytes:
    """Corrupt one JSON document of a file, or its bytes."""
    lines = data.splitlines() if chance.random() < 0.5 else [data]
    number = chance.randrange(len(lines)) if lines else 0
    if lines and chance.random() < 0.7:
        try:
            document = corrupt(chance, json.loads(lines[number]))
            lines[number] = json.dumps(document).encode()
            return b"\n".join(lines)
        except (ValueError, IndexError):
            pass
    start = chance.randint(0, len(data))
    return data[:start] + chance.choice(NOISE) + data[start + chance.choice((0, 1, 9, 500)) :]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recorded=st.sampled_from(RECORDED), chance=st.randoms(use_true_random=False))
def test_damaged_incidents_are_read_or_refused(
    recorded: Path, chance: random.Random, tmp_path: Path
) -> None:
    """What is left is judged, rendered and can be written again."""
    copy = tmp_path / "incident"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(recorded, copy)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    for _ in range(chance.randint(1, 4)):
        file = chance.choice(files)
        file.write_bytes(damage(chance, file.read_bytes()))
    try:
        incident = read_evidence(copy)
    except (FormatError, UsageError):
        return
    render_markdown(diagnose(incident, RULES))
    encode_index(incident)
    for sample in incident.samples:
        for process in sample.processes:
            encode_process(process)


def test_an_archive_that_unpacks_without_end_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes on disk may not fill the memory."""
    copy = tmp_path / "incident"
    shutil.copytree(RECORDED[0], copy)
    (copy / "samples" / "0" / "bomb.jsonl.gz").write_bytes(gzip.compress(b"\n" * 3_000_000))
    monkeypatch.setattr(evidence_files, "MOST_BYTES", 2_000_000)
    told = read_evidence(copy).sources["files"].reason or ""
    assert "bomb.jsonl.gz: holds more than" in told
