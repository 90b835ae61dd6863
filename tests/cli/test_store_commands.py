"""`list` and `prune`: what is kept, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "user_sleep"}}


def test_list(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Each incident stands with its time and verdict, one that was never judged says so."""
    incident = write_incident(HUNG)
    assert main(["list", str(incident.parent)]) == 0
    assert "2026-06-08 03:48:15 UTC  not judged yet" in capsys.readouterr().out
    main(["diagnose", str(incident), "--write"])
    capsys.readouterr()
    main(["list", str(incident.parent)])
    assert "UTC  local_hang    Local hang: rank 2" in capsys.readouterr().out


def test_prune(write_incident: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Expired incidents go, the newest stays."""
    newest = write_incident(HUNG)
    old = newest.with_name("1680890495107774003")
    old.mkdir()
    assert main(["prune", str(newest.parent)]) == 0
    assert f"deleted {old}" in capsys.readouterr().out
    assert newest.is_dir()
    assert not old.exists()


@pytest.mark.parametrize("command", ["list", "prune"])
def test_no_store(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store that does not exist is an error."""
    assert main([command, str(tmp_path / "nowhere")]) == 2
    assert "no such store" in capsys.readouterr().err
