"""`progress`: what the tailer makes of a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whyhang.collectors.log_pieces import detect_preset, placed_pieces
from whyhang.engine.cli.main import main

MEGATRON = "".join(
    f" [2026-05-01 10:00:{n:02d}.000001] iteration {n * 10:8d}/    5000 |"
    f" consumed samples: {n * 80:12d} | elapsed time per iteration (ms): 512.5 |"
    f" lm loss: 9.{n}00000E+00 | loss scale: 1.0 |\n"
    for n in range(1, 5)
)
HF = (
    "***** Running training *****\n  Total optimization steps = 40\n"
    + "\r".join(f"{n * 25:3d}%|##        | {n * 10}/40 [00:1{n}<00:30,  1.0s/it]" for n in range(4))
    + "{'loss': '2.31', 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    + "\r".join(f"{75 + n}%|###       | {30 + n}/40 [00:2{n}<00:10,  1.0s/it]" for n in range(1, 4))
    + "\n"
)


def events(log: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    """The events that the command prints as JSON lines."""
    assert main(["progress", str(log), "--format", "jsonl", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def write(tmp_path: Path, data: str | bytes) -> Path:
    """A log of this text."""
    log = tmp_path / "train.log"
    log.write_bytes(data.encode() if isinstance(data, str) else data)
    return log


def test_each_line_is_one_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The preset is found, and every progress line gives its numbers and its place."""
    found = events(write(tmp_path, "starting\n\n" + MEGATRON), capsys)
    assert found[0] == {
        "line_no": 3, "seg": 0, "step": 10, "epoch": None, "loss": 9.1, "event": "progress",
        "total": 5000, "step_time": 0.5125,
    }  # fmt: skip
    assert [event["line_no"] for event in found] == [3, 4, 5, 6]


def test_states_of_a_bar_are_counted_within_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bar's states share the line; a record glued behind one shares its segment too."""
    found = events(write(tmp_path, HF), capsys)
    places = [(e["line_no"], e["seg"], e["step"], e["loss"]) for e in found if e["event"] != "init"]
    assert places == [
        (3, 0, 0, None),
        (3, 1, 10, None),
        (3, 2, 20, None),
        (3, 3, 30, None),
        (3, 3, None, 2.31),
        (4, 0, 31, None),
        (4, 1, 32, None),
        (4, 2, 33, None),
    ]


def test_one_autodetection_serves_the_whole_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stood before the preset was found is read as well, thousands of lines back."""
    log = write(tmp_path, MEGATRON.splitlines()[0] + "\n" + "noise\n" * 3000 + MEGATRON)
    assert [event["line_no"] for event in events(log, capsys)] == [1, 3002, 3003, 3004, 3005]


def test_your_own_pattern(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern is tested by what it finds; its other groups come out too."""
    log = write(tmp_path, "tick 1 of 9\nnothing\ntick 2 of 9\n")
    found = events(log, capsys, "--pattern", r"tick (?P<step>\d+) of (?P<total>\d+)")
    assert [(e["line_no"], e["step"], e["total"]) for e in found] == [(1, 1, 9), (3, 2, 9)]


def test_text_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text names line, event and numbers; the preset is said on stderr."""
    assert main(["progress", str(write(tmp_path, MEGATRON))]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == [
        "1", "progress", "step", "10/5000", "loss", "9.1", "0.5125", "s/step",
    ]  # fmt: skip
    assert "preset megatron: 4 events" in said.err


def test_a_log_that_no_preset_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said, with what to do; nothing is invented."""
    assert events(write(tmp_path, "a\nb\nc\n"), capsys) == []
    assert main(["progress", str(write(tmp_path, "a\nb\n"))]) == 0
    assert "--pattern" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [["--preset", "nonsuch"], ["--pattern", "no group"], ["--pattern", "(?P<step>"]],
)
def test_wrong_options_are_usage_errors(options: list[str], tmp_path: Path) -> None:
    """A preset that does not exist or a bad pattern ends with status 2."""
    assert main(["progress", str(write(tmp_path, "x\n")), *options]) == 2


def test_a_missing_log_is_a_usage_error(tmp_path: Path) -> None:
    """A wrong path ends with status 2."""
    assert main(["progress", str(tmp_path / "absent.log")]) == 2


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_places_do_not_depend_on_how_the_bytes_come(size: int) -> None:
    """Blocks may end anywhere, in the midst of a line, of a bar or of a character."""
    data = ("été 1\r\rbar 2\r\n\n" + HF + MEGATRON).encode()
    whole = list(placed_pieces([data]))
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(placed_pieces(blocks)) == whole
    assert (whole[0][0].line_no, whole[0][0].seg, whole[0][1].text) == (1, 0, "été 1")
    assert (whole[1][0].line_no, whole[1][0].seg) == (1, 1)
    assert whole[2][0].line_no == 3


def test_a_line_of_megabytes_is_bounded() -> None:
    """Memory does not grow with the length of a line, and the line after it is found."""
    blocks = [b"x" * (1 << 20)] * 16 + [b"\nstep 1\n"]
    pieces = list(placed_pieces(blocks))
    assert len(pieces) == 2 and len(pieces[0][1].text) < 1 << 18
    assert (pieces[1][0].line_no, pieces[1][1].text) == (2, "step 1")


def test_detection_answers_none_for_bytes_that_are_no_log() -> None:
    """Binary data has no preset."""
    assert detect_preset([bytes(range(256)) * 64]) is None


def test_any_line_is_called_the_weakest_signal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `lines` each line counts, and it is said what that is worth."""
    log = write(tmp_path, "hello\nworld\n")
    assert main(["progress", str(log), "--preset", "lines", "--format", "jsonl"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["step"] for line in told.out.splitlines()] == [None, None]
    assert "weakest signal" in told.err
