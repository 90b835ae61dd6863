"""`whyhang ras`: saved replies, a service by address, nobody there."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from whyhang.engine.cli.main import main

DATA = Path(__file__).parent.parent / "data" / "ras"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.txt")), ids=lambda path: path.stem)
def test_saved_replies_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every saved reply prints its document; our reading of it stands in `suspects`."""
    assert main(["ras", "--file", str(path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    document.get("result", document).pop("suspects", None)
    assert document == json.loads(path.with_suffix(".json").read_text())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.txt")), ids=lambda path: path.stem)
def test_saved_replies_as_text(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every saved reply prints something for people."""
    assert main(["ras", "--file", str(path)]) == 0
    assert capsys.readouterr().out.strip()


def test_suspects(capsys: pytest.CaptureFixture[str]) -> None:
    """The ranks behind are named with their processes and the distance."""
    assert main(["ras", "--file", str(DATA / "sum_2.25.txt"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["suspects"] == [
        {
            "reason": "behind:collective",
            "comm": "00ab00000000beef",
            "rank": 4,
            "pid": 7012,
            "host": "192.168.7.21",
            "behind_by": 6733,
        }
    ]


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is wrong use."""
    assert main(["ras", "--file", str(tmp_path / "none")]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["localhost", ":28028", "host:0", "host:x", "a:b:1", ""])
def test_what_is_no_address_is_wrong_use(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error is told as one; it is no answer of a silent service."""
    assert main(["ras", "--address", address]) == 2
    assert "not an address" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_listens(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A refused connection is no error: it says nothing about the job."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert main(["ras", "--address", f"127.0.0.1:{port}", "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["complete"] is False
    else:
        assert "This says nothing about the job" in out
