"""No described or recorded incident changes its verdict with what carries no meaning."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from tests.accuracy.__main__ import CASES, main
from tests.accuracy.answers import Question
from tests.accuracy.changes import CHANGES, hide_dump
from tests.accuracy.invariance import breaches
from tests.accuracy.questions import find_questions
from whyhang.engine.incidents import read_incident
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset

pytestmark = pytest.mark.long
RECORDED = CASES.parent / "incidents"
QUESTIONS = tuple(find_questions([CASES]))
DIRECTORIES = tuple(sorted(RECORDED.iterdir()))


@lru_cache(maxsize=1)
def built_in() -> Ruleset:
    """The built-in pack; no fixture, because its description of 100 kB stands in every failure."""
    return load_ruleset()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_described_incidents(question: Question) -> None:
    """Names, numbers, order, dump modes and idle threads leave each verdict as it is."""
    assert list(breaches(built_in(), question.load())) == []


@pytest.mark.parametrize("path", DIRECTORIES, ids=lambda path: path.name)
def test_incident_directories(path: Path) -> None:
    """The same holds for incidents with NCCL RAS replies, flight records and unknown ranks."""
    assert list(breaches(built_in(), read_incident(path))) == []


def test_every_change_changes_something() -> None:
    """A change that left all incidents as they are would prove nothing."""
    incidents = [question.load() for question in QUESTIONS]
    for change in CHANGES:
        assert any(change(incident) != incident for incident in incidents), change.__name__
    assert any(hide_dump(incident, 3) != incident for incident in incidents)


def test_the_command_prints_breaches(capsys: pytest.CaptureFixture[str]) -> None:
    """The command counts incidents and breaches, and fails where there is one."""
    assert main(["--invariance", str(CASES / "quiet.yaml")]) == 0
    assert "0 of 30 incidents" in capsys.readouterr().out
