"""The newest checkpoint, from the directory into the incident, the rules and the report."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from whyhang.engine import checkpoint_inquiry
from whyhang.engine.checkpoint_inquiry import CheckpointInquiry
from whyhang.engine.facts import ACCESSORS, Facts
from whyhang.engine.positions import Positions
from whyhang.engine.world import Subject, World
from whyhang.renderers.brief import _log
from whyhang.schemas.checkpoint import Checkpoint
from whyhang.schemas.config import CheckpointConfig
from whyhang.schemas.incident import Incident, Source
from whyhang.schemas.incident_codec import decode_index, encode_index
from whyhang.schemas.missing import Missing
from whyhang.schemas.progress import Progress


def ask(config: CheckpointConfig | None, limit: float = 8.0) -> CheckpointInquiry:
    """An inquiry that has ended."""
    inquiry = CheckpointInquiry(config, limit)
    inquiry.start()
    inquiry.checkpoint()
    return inquiry


@pytest.mark.integration
def test_a_real_directory(tmp_path: Path) -> None:
    """A process of its own finds it; the configured limit stays with it."""
    (tmp_path / "checkpoint-400").mkdir()
    found = ask(CheckpointConfig(path=str(tmp_path), max_age=60.0))
    assert found.source == Source(ok=True)
    checkpoint = found.checkpoint()
    assert checkpoint is not None
    assert (checkpoint.name, checkpoint.step) == ("checkpoint-400", 400)
    assert checkpoint.max_age_seconds == 60.0
    assert checkpoint.age_seconds is not None and checkpoint.age_seconds < 60.0


@pytest.mark.integration
def test_an_empty_directory_says_why(tmp_path: Path) -> None:
    """Nothing is made up where there is no checkpoint."""
    found = ask(CheckpointConfig(path=str(tmp_path)))
    assert found.checkpoint() is None
    assert found.source == Source(ok=False, reason=f"{tmp_path}: no checkpoint was found")


@pytest.mark.integration
def test_a_file_system_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks is given up after a limit, and the report says so."""
    sleeper = ["sh", "-c", "sleep 60"]
    monkeypatch.setattr(checkpoint_inquiry, "module_command", lambda *words: sleeper)
    began = time.monotonic()
    found = ask(CheckpointConfig(path=str(tmp_path)), limit=0.5)
    assert time.monotonic() - began < 10.0
    assert found.source == Source(ok=False, reason="no answer in time: its file system may hang")


@pytest.mark.parametrize("config", [None, CheckpointConfig(max_age=60.0)])
def test_nobody_asked(config: CheckpointConfig | None) -> None:
    """Without a path nothing is looked for and no source is named."""
    found = ask(config)
    assert (found.checkpoint(), found.source) == (None, None)


def test_it_is_kept_in_the_incident() -> None:
    """What was found comes back from disk; an incident without has none."""
    checkpoint = Checkpoint(name="step-1200", step=1200, age_seconds=10_800.0)
    with_one = Incident(print_id=None, checkpoint=checkpoint)
    assert decode_index(encode_index(with_one))[0].checkpoint == checkpoint
    without = Incident(print_id=None)
    assert decode_index(encode_index(without))[0].checkpoint is None


def field(incident: Incident, name: str) -> object:
    """What a rule sees."""
    facts = Facts(World(incident), Positions({}))
    return ACCESSORS[name](facts, Subject(), 0)


def test_rules_can_ask() -> None:
    """Age and step; unknown where there is none, or where its name tells no step."""
    incident = Incident(print_id=None, checkpoint=Checkpoint(name="last", age_seconds=5.0))
    assert field(incident, "checkpoint.age") == 5.0
    assert isinstance(field(incident, "checkpoint.step"), Missing)
    assert isinstance(field(Incident(print_id=None), "checkpoint.age"), Missing)


def test_the_report_tells_what_a_restart_loses() -> None:
    """Steps since the newest checkpoint, its age, and whether that is more than allowed."""
    checkpoint = Checkpoint(step=1200, age_seconds=10_800.0, max_age_seconds=3600.0)
    incident = Incident(print_id=None, progress=Progress(step=2000), checkpoint=checkpoint)
    assert list(_log(incident))[-1] == (
        "last checkpoint: step 1200, 3 h old (more than the 1 h of `max_age`); "
        "a restart loses 800 steps"
    )
