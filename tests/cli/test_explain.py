"""`explain`: deciding clauses for people, everything for machines, and the codes of findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main
from whyhang.rules import fields
from whyhang.rules.explanations import EXPLANATIONS

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {
    "trainers": {"*": "backward", 2: "data"},
    "workers": {"*": "worker_idle", 2: {"stack": "worker_blocked", "state": "D"}},
}


def test_a_reader_sees_why(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The text alone tells who is suspected, by which clauses, with values and positions."""
    assert main(["explain", str(write_incident(HUNG))]) == 0
    text = capsys.readouterr().out
    assert "pytorch/local-dataloader: FIRED  suspects 2  (decides)" in text
    assert re.search(
        r"✓ halted: log\.stalled +no step for 400 s +\[builtin:pytorch@1:\d+:\d+\]", text
    )
    assert re.search(
        r"✓ few_odd: share\(odd\) <= \$minority +1 of 4 \(25\.0%\): 2; \$minority is 50%", text
    )
    assert re.search(r"✗ top in communication +top is _try_get_data torch/utils/data", text)
    assert "why rank 2:" in text
    assert re.search(r"^where\n  waiting +\w.*\[builtin:pytorch@1:\d+:\d+\]$", text, re.MULTILINE)
    assert "NOT" not in text
    assert "pytorch/dead-rank" in text.rpartition("did not fire")[2]


def test_why_not(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """`--why-not` shows of each silent rule only the clauses that keep it silent."""
    main(["explain", str(write_incident(HUNG)), "--why-not", "--rule", "dead-rank"])
    text = capsys.readouterr().out
    assert "pytorch/dead-rank: NOT" in text
    assert re.search(r"✗ count\(gone\) >= 1 +0 of 4", text)
    assert "halted" not in text
    assert "local-dataloader: " not in text


def test_variables_can_be_set(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """`--set` asks what another threshold would have decided."""
    main(["explain", str(write_incident(HUNG)), "--set", "minority=10%", "--rule", "local-hang"])
    text = capsys.readouterr().out
    assert "local-hang: NOT" in text
    assert "$minority is 10%" in text


def test_inconclusive_tells_what_is_missing(
    write_incident: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """An open rule names the clauses that are open, their ranks and the reason."""
    case = {"trainers": {"*": "backward", 1: {"unread": "py-spy: no rights"}}}
    main(["explain", str(write_incident(case)), "--rule", "pytorch/all-waiting"])
    text = capsys.readouterr().out
    assert "INCONCLUSIVE" in text
    assert re.search(r"\? .*no rank is out +no 0/2-3; unknown 1; py-spy: no rights  \[", text)


def test_suppressed_rules_are_named(
    write_incident: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would have fired says which suppression kept it."""
    case = {"trainers": {"*": {"stack": "backward", "io": 5000}, 2: "user_sleep"}}
    main(["explain", str(write_incident(case))])
    text = capsys.readouterr().out
    assert "suppression pytorch/moving: ACTED" in text
    assert "pytorch/local-hang: SUPPRESSED  suspects 2  (suppressed by pytorch/moving)" in text


def test_json_keeps_everything(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The document holds every rule with all its clauses, whatever their value."""
    main(["explain", str(write_incident(HUNG)), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "whyhang.explanation/1"
    rules = {rule["id"]: rule for rule in document["rules"]}
    assert rules["pytorch/local-dataloader"]["result"] == "fired"
    silent = rules["pytorch/dead-rank"]
    assert silent["result"] == "not"
    assert [c["value"] for c in silent["evidence"]["children"]] == ["true", "false", "true"]
    assert document["definitions"]["astray"]["text"] == "ranks that are out"
    assert rules["pytorch/local-hang"]["who"]["yes"] == "2"


def test_unknown_rule(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt rule is an error with a suggestion."""
    assert main(["explain", str(write_incident(HUNG)), "--rule", "local-hnag"]) == 2
    assert "local-hang" in capsys.readouterr().err


def test_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """A code is explained at length; an unknown one is an error."""
    assert main(["explain", "h201"]) == 0
    assert capsys.readouterr().out.startswith("H201: an unknown name.\n\n")
    assert main(["explain", "H999"]) == 2


def test_every_code_has_its_text() -> None:
    """Each code that the rules or the engine can report is explained."""
    root = Path(fields.__file__).parent.parent
    sources = [*(root / "rules").glob("*.py"), *(root / "engine").rglob("*.py")]
    used = {code for path in sources for code in re.findall(r'"(H\d{3})"', path.read_text("utf-8"))}
    assert used <= EXPLANATIONS.keys()
    assert all(text.startswith(f"{code}: ") for code, text in EXPLANATIONS.items())
