"""The command line itself: cheap to start, clear about mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from whyhang.engine.cli.main import COMMANDS, VERSION, main

# What a training job must not pay for before it starts.
HEAVY = {
    "jinja2", "jsonschema", "lark", "msgspec", "numpy", "psutil", "rich", "watchdog", "yaml",
    "importlib.metadata", "subprocess", "json", "dataclasses",
}  # fmt: skip


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "whyhang.engine", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ()])
def test_help_is_cheap(arguments: tuple[str, ...]) -> None:
    """`--help` imports no library and none of our rooms but the entry point."""
    modules = imported(*arguments)
    assert not modules & HEAVY
    ours = {name for name in modules if name.startswith("whyhang.")}
    entry_point = {"whyhang.engine", "whyhang.engine.cli", "whyhang.engine.cli.main"}
    assert ours - {"whyhang.engine.__main__"} == entry_point


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has a help page."""
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert command in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is that of the package."""
    from importlib.metadata import version

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"whyhang {VERSION}\n"
    assert version("whyhang") == VERSION


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command ends with status 2 and names the commands there are."""
    with pytest.raises(SystemExit) as stop:
        main(["dignose"])
    assert stop.value.code == 2
    assert "diagnose" in capsys.readouterr().err


def test_our_own_faults_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An internal error ends with status 3 and says that it is ours."""
    from whyhang.engine.cli import diagnose

    def fail(options: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(diagnose, "run", fail)
    assert main(["diagnose", "x"]) == 3
    assert "internal error" in capsys.readouterr().err


def test_an_unknown_option_shows_how_the_command_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The usage is that of the command, not of the whole program."""
    with pytest.raises(SystemExit) as stop:
        main(["check", "--nope"])
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert "usage: whyhang check" in text
    assert "whyhang check: error: unrecognized arguments: --nope" in text


@pytest.mark.parametrize("arguments", [("progress", "--help"), ("explain", "H014")])
def test_a_terminal_of_ascii_gets_an_answer(arguments: tuple[str, ...]) -> None:
    """What the encoding of stdout lacks is written another way, instead of ending the command."""
    done = subprocess.run(
        [sys.executable, "-m", "whyhang.engine", *arguments],
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2026" in done.stdout


@pytest.mark.parametrize("command", ["fields", "config", "schema"])
def test_full_disk_behind_stdout_is_told(command: str) -> None:
    """Results that cannot be written are no fault of ours, and no success."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run_alone(command, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "whyhang: cannot write the results: No space left on device\n"


def test_reader_that_leaves_is_no_fault() -> None:
    """`whyhang fields | head -1` ends quietly, also where the last lines wait in a buffer."""
    reader, writer = os.pipe()
    os.close(reader)
    done = run_alone("fields", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_reader_that_leaves_in_the_midst_is_not_blamed_on_the_input(tmp_path: Path) -> None:
    """`whyhang progress LOG | head -1`, where each line is written at once."""
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {step}/90 loss 2.5\n" for step in range(1, 90)))
    reader, writer = os.pipe()
    os.close(reader)
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    done = run_alone("progress", str(log), stdout=writer, env=unbuffered)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [1, 2])
def test_commands_do_without_a_stream(tmp_path: Path, number: int) -> None:
    """A closed stdout or stderr changes no exit status and mixes nothing."""
    rules = tmp_path / "hang.yaml"
    rules.write_text("version: 2\n")
    done = run_alone("diagnose", "/nonexistent", preexec_fn=lambda: os.close(number))
    assert done.returncode == 2
    assert done.stdout == ""
    done = run_alone("check", str(rules), preexec_fn=lambda: os.close(number))
    assert done.returncode == 1


def run_alone(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    settings: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings.update(options)
    done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-m", "whyhang.engine", *words], text=True, check=False, **settings
    )
    return done
