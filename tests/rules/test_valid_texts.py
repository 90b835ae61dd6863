"""Files that the schema found nothing in are not asked again, others always are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whyhang.rules.load import check_files
from whyhang.rules.valid_texts import HANG_SCHEMA, remember_valid, was_valid

PACKS = Path(__file__).parents[2] / "rules" / "packs"
GOOD = "version: 1\ndetect: {stall: 10m}\n"
BAD = "version: 1\ndetect: {stahl: 10m}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def codes(file: Path, text: str) -> list[str]:
    """What `whyhang check` finds in a file of this text."""
    file.write_text(text, encoding="utf-8")
    return [finding.code for finding in check_files([file])]


def test_a_valid_file_is_not_asked_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second check of an unchanged file does without jsonschema, that of a changed one not."""
    file = home / "hang.yaml"
    assert codes(file, GOOD) == []
    monkeypatch.setitem(sys.modules, "whyhang.rules.validate", None)
    assert codes(file, GOOD) == []
    with pytest.raises(ImportError):
        codes(file, GOOD.replace("10m", "11m"))


def test_a_faulty_file_is_asked_each_time(home: Path) -> None:
    """What was wrong stays wrong, however often it is checked."""
    for _ in range(2):
        assert "H011" in codes(home / "hang.yaml", BAD)
    assert not was_valid(BAD, HANG_SCHEMA)


def test_memory_is_bounded_and_of_one_schema(home: Path) -> None:
    """The last files are remembered; another schema, or a damaged file, remembers nothing."""
    for number in range(210):
        remember_valid(str(number), HANG_SCHEMA)
    assert was_valid("209", HANG_SCHEMA)
    assert not was_valid("0", HANG_SCHEMA)
    assert not was_valid("209", "verdict.v1.json")
    (kept,) = (home / "whyhang").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert not was_valid("209", HANG_SCHEMA)


def test_packs_that_ship_are_valid_themselves() -> None:
    """Built-in packs, whose shape and messages are taken on trust, hold when read as files."""
    packs = sorted(PACKS.glob("*.yaml"))
    assert packs
    assert list(check_files(packs)) == []
