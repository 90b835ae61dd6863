"""A port of its own for the NCCL RAS of a job: only where nothing else is said of RAS."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from whyhang.engine import ras_port
from whyhang.engine.ras_port import choose_address

MARKER = "00000005-1111-2222-3333-444444444444"


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and the kernel's default range of ports."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "range").write_text("32768\t60999\n")
    monkeypatch.setattr(ras_port, "_RANGE", tmp_path / "range")


def chosen(environ: dict[str, str]) -> int | None:
    """The port of the address, if one was chosen."""
    address = choose_address(environ, MARKER)
    if address is None:
        return None
    host, _, port = address.partition(":")
    assert host == "localhost"
    return int(port)


def test_a_free_port_below_those_of_connections(tmp_path: Path) -> None:
    """The port is free, is none the kernel gives away, and another job gets another one."""
    port = chosen({"HOME": str(tmp_path)})
    assert port is not None
    assert 20000 <= port < 32768
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        other = chosen({"HOME": str(tmp_path)})
    assert other is not None
    assert other != port
    (tmp_path / "range").write_text("15000\t60999\n")
    assert chosen({"HOME": str(tmp_path)}) is None


@pytest.mark.parametrize("name", ["NCCL_RAS_ADDR", "NCCL_RAS_ENABLE"])
def test_what_the_job_says_holds(name: str, tmp_path: Path) -> None:
    """A job that sets up RAS itself is left alone."""
    assert chosen({"HOME": str(tmp_path), name: "0"}) is None


@pytest.mark.parametrize("named", [True, False])
def test_what_its_file_says_holds(named: bool, tmp_path: Path) -> None:
    """The environment would override NCCL's file: then it is left alone, too."""
    file = tmp_path / ("mine.conf" if named else ".nccl.conf")
    environ = {"HOME": str(tmp_path), **({"NCCL_CONF_FILE": str(file)} if named else {})}
    file.write_text("NCCL_DEBUG=WARN\n")
    assert chosen(environ) is not None
    file.write_text("NCCL_RAS_ADDR=localhost:4711\n")
    assert chosen(environ) is None
