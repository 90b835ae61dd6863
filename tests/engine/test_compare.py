"""Comparison of two versions of the rules: exactly the incidents that change, exactly the items."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.compare import compare, item_changes
from whyhang.engine.revision import GitPath, locate
from whyhang.engine.store import IncidentWriter
from whyhang.rules.load import load_ruleset
from whyhang.rules.ruleset import Ruleset
from whyhang.schemas.errors import UsageError
from whyhang.schemas.incident import Incident
from whyhang.schemas.progress import ProgressEvent

Build = Callable[[Mapping[str, Any]], Incident]
Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}}
OLD = """\
version: 1
vars: {few: 30%}
lists: {mine: ["train.*"]}
rules:
  - id: few
    when: log.stalled and count(odd) >= 1 and share(odd) <= $few
    verdict: local_hang
    suspects: odd
    priority: 9
  - id: mine
    when: log.stalled and all ranks are (top in mine)
    verdict: slow
    priority: 9
detect: {stall: 5m, confirm: 10s}
"""


def ruleset(directory: Path, text: str) -> Ruleset:
    """The rules of a text."""
    path = directory / "hang.yaml"
    path.write_text(text)
    return load_ruleset(path)


@pytest.fixture
def store(tmp_path: Path, build_incident: Build) -> list[tuple[str, Path]]:
    """Three incidents: two odd of four ranks, all in user code, one with a history of steps."""
    history = tuple(
        ProgressEvent(at="", monotonic_seconds=float(10 * n), step=n) for n in range(20)
    )
    cases: dict[str, dict[str, Any]] = {
        "halves": {"trainers": {"*": "backward", "2-3": "user_sleep"}},
        "everybody": {"trainers": {"*": "@train.py:40 train"}},
        "steady": HUNG,
    }
    found = []
    for number, (name, case) in enumerate(cases.items()):
        incident = build_incident({**case, "log": {"stalled_seconds": None}})
        if name == "steady":
            progress = replace(incident.progress, stalled_seconds=400.0)
            incident = replace(incident, history=history, progress=progress)
        writer = IncidentWriter(tmp_path, f"178089049510777400{number}", spool=tmp_path / "spool")
        for sample in incident.samples:
            writer.write_sample(sample.index, sample.processes)
        writer.write_index(incident)
        found.append((name, writer.publish()))
    return found


@pytest.mark.parametrize(
    ("change", "incident", "parts", "item"),
    [
        (("30%", "60%"), "halves", {"category"}, ("variable", "few")),
        (('"train.*"', '"train.*", "other.*"'), None, set(), ("list", "mine")),
        (('"train.*"', '"other.*"'), "everybody", {"verdict", "category"}, ("list", "mine")),
        (("stall: 5m", "stall: 2m"), "steady", {"alarm"}, ("detect", "stall")),
        (("confirm: 10s", "confirm: 30s"), "steady", {"alarm"}, ("detect", "confirm")),
        (("30%", "31%"), None, set(), ("variable", "few")),
    ],
)
def test_exactly_what_changes(
    change: tuple[str, str],
    incident: str | None,
    parts: set[str],
    item: tuple[str, str],
    store: list[tuple[str, Path]],
    tmp_path: Path,
) -> None:
    """One threshold, one entry of a list or one detection value changes only what rests on it."""
    old, new = ruleset(tmp_path, OLD), ruleset(tmp_path, OLD.replace(*change))
    changes = compare(("old", old), ("new", new), store)
    assert [(i.kind, i.name) for i in changes.items] == [item]
    assert [c.incident for c in changes.incidents] == ([incident] if incident else [])
    if incident:
        assert parts <= set(changes.incidents[0].parts)
    assert (changes.total, changes.unchanged) == (3, 3 - bool(incident))


def test_all_three_at_once(store: list[tuple[str, Path]], tmp_path: Path) -> None:
    """Three differences together change the three incidents, each in its own part."""
    text = OLD.replace("30%", "60%").replace('"train.*"', '"other.*"').replace("5m", "2m")
    changes = compare(("old", ruleset(tmp_path, OLD)), ("new", ruleset(tmp_path, text)), store)
    assert [c.incident for c in changes.incidents] == ["halves", "everybody", "steady"]
    assert changes.incidents[2].parts == ("alarm",)
    assert {(i.kind, i.name) for i in changes.items} == {
        ("variable", "few"),
        ("list", "mine"),
        ("detect", "stall"),
    }


def test_the_same_rules_change_nothing(store: list[tuple[str, Path]], tmp_path: Path) -> None:
    """A comment or another order of keys is no change."""
    old, new = ruleset(tmp_path, OLD), ruleset(tmp_path, "# reviewed\n" + OLD)
    changes = compare(("old", old), ("new", new), store)
    assert (changes.items, changes.incidents) == ((), ())


def test_entries_are_compared_key_by_key(tmp_path: Path) -> None:
    """A rule that changes names its key; new and lost rules, and a new order, are told."""
    old = ruleset(tmp_path, OLD)
    text = OLD.replace("verdict: slow", "verdict: no_hang").replace("id: few", "id: little")
    found = {
        (i.kind, i.name): (i.before, i.after) for i in item_changes(old, ruleset(tmp_path, text))
    }
    assert found["rule", "mine verdict"] == ("slow", "no_hang")
    assert found["rule", "few"][1] is None
    assert found["rule", "little"][0] is None
    assert len(found) == 3
    first, second = OLD.split("  - id: mine")
    head, few = first.split("  - id: few")
    mine, detect = second.split("detect:")
    moved = f"{head}  - id: mine{mine}  - id: few{few}detect:{detect}"
    order = list(item_changes(old, ruleset(tmp_path, moved)))
    assert [(i.kind, i.name) for i in order] == [("rule", "order")]


@pytest.mark.integration
def test_rules_at_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`REVISION:path` is read from git, and so is what it includes."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "team").mkdir()
    base = tmp_path / "team" / "base.yaml"
    base.write_text("version: 1\npack: {name: base, version: 1.0.0}\nvars: {few: 10%}\n")
    main = tmp_path / "team" / "hang.yaml"
    text = 'version: 1\ninclude: ["builtin:pytorch@1", "../team/base.yaml"]\n'
    main.write_text(text)
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    base.write_text(base.read_text().replace("10%", "20%"))
    monkeypatch.chdir(tmp_path)
    then, now = load_ruleset(locate("main:team/hang.yaml")), load_ruleset(main)
    assert (then.variables["few"], now.variables["few"]) == (0.1, 0.2)
    monkeypatch.chdir(tmp_path / "team")
    assert load_ruleset(locate("HEAD:./hang.yaml")).variables["few"] == 0.1
    assert isinstance(locate("hang.yaml"), Path) and not isinstance(locate("hang.yaml"), GitPath)
    with pytest.raises(UsageError, match="nowhere"):
        load_ruleset(locate("main:nowhere.yaml"))


@pytest.mark.integration
def test_verdicts_are_the_same_bytes(write_incident: Write) -> None:
    """Evidence and rules alone decide on the bytes of a verdict, not the seed of the hashes."""
    case = {
        "trainers": {"*": "backward", 1: {"unread": "no rights"}, 2: "data", 3: "user_sleep"},
        "workers": {"*": "worker_idle", 2: {"stack": "worker_blocked", "state": "D"}},
    }
    incident = write_incident(case)
    command = [sys.executable, "-m", "whyhang.engine", "explain", str(incident), "--format", "json"]
    outputs = {
        subprocess.run(
            command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed, "PATH": "/bin"}
        ).stdout
        for seed in ("1", "4711")
    }
    assert len(outputs) == 1
