"""`doctor` on this very host."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from whyhang.collectors import procfs
from whyhang.engine import doctor
from whyhang.engine.cli.main import main
from whyhang.engine.doctor import free_bytes, is_unbuffered, within
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

NAMES = {
    "ptrace rights", "seccomp", "py-spy", "reading a stack", "stacks of the job",
    "Python of the job", "PID namespace", "training log", "buffering", "NCCL", "GPUs",
    "kernel log", "store", "spool",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever else runs on this host is not looked at."""
    monkeypatch.setattr(doctor, "list_processes", lambda **_: ())
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.chdir(tmp_path)


@pytest.mark.integration
def test_all_checks_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The document names each check with status, finding and cure; the status fits the exit."""
    status = main(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "whyhang.doctor/1"
    checks = {check["name"]: check for check in document["checks"]}
    assert checks.keys() == NAMES
    assert all(check["found"] for check in checks.values())
    assert status == int(any(check["status"] == "fail" for check in checks.values()))


@pytest.mark.integration
def test_text_names_the_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that no preset fits is told with what to do."""
    log = tmp_path / "odd.log"
    log.write_text("a\nb\n")
    main(["doctor", "--log", str(log)])
    lines = capsys.readouterr().out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if "training log" in line]
    assert lines[place].startswith("warn")
    assert "whyhang progress" in lines[place + 1]


def test_a_missing_log_is_a_usage_error(tmp_path: Path) -> None:
    """A wrong path ends with status 2."""
    assert main(["doctor", "--log", str(tmp_path / "absent")]) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("python", "-u", "train.py"), True),
        (("python", "-W", "ignore", "-Iu", "train.py"), True),
        (("python", "-X", "utf8", "train.py", "-u"), False),
        (("python", "-Xutf8", "train.py"), False),
        (("python", "-m", "torch.run", "-u"), False),
    ],
)
def test_unbuffered_by_the_command_line(
    words: tuple[str, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an option of Python itself counts."""
    monkeypatch.setattr(procfs, "read_environ", lambda pid: {"PYTHONUNBUFFERED": ""})
    assert is_unbuffered(Process(pid=1, node="a", cmdline=words)) is expected


@pytest.mark.parametrize(
    ("environ", "expected"), [({"PYTHONUNBUFFERED": "1"}, True), ({}, False), (None, None)]
)
def test_unbuffered_by_the_environment(
    environ: dict[str, str] | None, expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that cannot be read is unknown, not buffered."""
    monkeypatch.setattr(procfs, "read_environ", lambda pid: environ)
    assert is_unbuffered(Process(pid=1, node="a", cmdline=("python", "t.py"))) is expected


def test_room_of_a_place_that_will_be_made(tmp_path: Path) -> None:
    """A store that does not exist yet has the room of the directory above it."""
    found = free_bytes(tmp_path / "a" / "b")
    assert isinstance(found, int) and found > 0
    (tmp_path / "file").write_text("")
    assert isinstance(free_bytes(tmp_path / "file" / "b"), Missing)


def test_a_question_that_hangs_is_given_up() -> None:
    """A dead file system holds the thread that asked it, not us."""
    started = time.monotonic()
    assert within(0.2, lambda: time.sleep(5)) is None
    assert time.monotonic() - started < 4
