"""Modules of ours that run as processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from whyhang.collectors.own_module import module_command


@pytest.mark.integration
def test_a_process_of_ours_takes_no_files_of_others_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No module of the working directory is taken for the library's, and none is compiled."""
    place, work = tmp_path / "place", tmp_path / "work"
    place.mkdir()
    work.mkdir()
    (place / "ours.py").write_text("import queue\ndef main(words): return len(words)\n")
    (work / "queue.py").write_text("raise SystemExit(9)\n")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    done = subprocess.run(module_command("ours", "a", "b"), cwd=work, check=False)
    assert done.returncode == 2
    assert [path.name for path in place.iterdir()] == ["ours.py"]
