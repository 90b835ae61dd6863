"""Finding a running job's log, and judging a log that nobody watched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from whyhang.collectors.log_files import find_log, log_age, read_old_log
from whyhang.collectors.log_stamps import parse_stamp

NOW = 1_800_000_000.0


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def megatron(step: int, at: float) -> str:
    return (
        f" [{stamp(at)}] iteration {step:8d}/ 1000 | consumed samples: 1 |"
        f" elapsed time per iteration (ms): 20000.0 | lm loss: 2.0E+00 |\n"
    )


def write(path: Path, text: str, modified: float) -> Path:
    path.write_text(text)
    os.utime(path, (modified, modified))
    return path


def fake_process(proc: Path, pid: int, **targets: Path) -> None:
    folder = proc / str(pid) / "fd"
    folder.mkdir(parents=True)
    for number, target in zip((1, 2), targets.values(), strict=False):
        (folder / str(number)).symlink_to(target)


def test_finds_the_newest_regular_file(tmp_path: Path) -> None:
    """Of all streams of all processes the regular file that was written last is the log."""
    old = write(tmp_path / "old.log", "x", NOW - 50)
    new = write(tmp_path / "new.log", "x", NOW)
    fake_process(tmp_path / "proc", 7, out=old, err=Path("/dev/null"))
    fake_process(tmp_path / "proc", 8, out=new, err=old)
    assert find_log([7, 8, 9], tmp_path / "proc") == new


def test_no_log_without_regular_files(tmp_path: Path) -> None:
    """Terminals, pipes and processes that are gone give no log."""
    fake_process(tmp_path / "proc", 7, out=Path("/dev/null"), err=tmp_path / "gone")
    assert find_log([7, 9], tmp_path / "proc") is None


@pytest.mark.integration
def test_finds_the_log_of_a_real_process(tmp_path: Path) -> None:
    """A child's redirected output is found, also after the file was deleted."""
    log = tmp_path / "train.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", "print('step 1', flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    try:
        deadline = time.monotonic() + 30.0
        while not log.stat().st_size and time.monotonic() < deadline:
            time.sleep(0.05)
        assert find_log([child.pid]) == log
        log.unlink()
        found = find_log([child.pid])
        assert found == Path(f"/proc/{child.pid}/fd/1")
        assert found.read_bytes() == b"step 1\n"
    finally:
        child.communicate(b"\n", timeout=30)


def test_age_by_the_lines_own_timestamp(tmp_path: Path) -> None:
    """A heartbeat keeps the file young; the last progress line tells the true age."""
    lines = "".join(megatron(step, NOW - 1000 + 20 * step) for step in range(1, 11))
    path = write(tmp_path / "log", lines + f"[{stamp(NOW)}] heartbeat\n", NOW)
    age = log_age(path, NOW + 5.0)
    assert age.stamped
    assert age.preset == "megatron"
    assert age.seconds == pytest.approx(805.0, abs=1.0)
    assert age.median_interval_seconds == 20.0
    assert age.gaps == (20.0,) * 9


def test_gaps_are_those_of_training(tmp_path: Path) -> None:
    """A gap in which a checkpoint was written, or another attempt began, is left out."""
    text, at = "", NOW - 10_000.0
    for first, marker in (
        (1, "saving checkpoint at iteration        5 to /ckpt in torch_dist format\n"),
        (6, "> initializing torch distributed ...\n"),
        (4, ""),
    ):
        for step in range(first, first + 5):
            at += 20.0
            text += megatron(step, at)
        text += marker
        at += 600.0
    age = log_age(write(tmp_path / "log", text, at), at)
    assert age.gaps == (20.0,) * 12
    assert age.median_interval_seconds == 20.0


def test_age_by_modification_time(tmp_path: Path) -> None:
    """Bars carry no timestamp: the file's time of modification stands in."""
    bars = "".join(f"\r 1%|#   | {n}/900 [00:{n:02d}<10:00,  1.00s/it]" for n in range(5))
    age = log_age(write(tmp_path / "log", bars, NOW - 700), NOW)
    assert (age.stamped, age.seconds, age.median_interval_seconds) == (False, 700.0, 1.0)


def test_age_survives_another_time_zone(tmp_path: Path) -> None:
    """Stamps of a container in another zone are off by whole hours, which is taken out."""
    lines = "".join(megatron(step, NOW - 8 * 3600 - 100 + 20 * step) for step in range(1, 6))
    age = log_age(write(tmp_path / "log", lines, NOW), NOW + 60.0)
    assert age.seconds == pytest.approx(60.0, abs=1.0)


@pytest.mark.parametrize(
    ("age", "state"), [(100.0, "advancing"), (190.0, "advancing"), (250.0, "stalled")]
)
def test_state_of_an_old_log(tmp_path: Path, age: float, state: str) -> None:
    """Stalled is what is older than the floor and than ten usual intervals."""
    lines = "".join(megatron(step, NOW - 400 + 20 * step) for step in range(1, 21))
    progress = read_old_log(write(tmp_path / "log", lines, NOW), NOW + age, 120.0)
    assert (progress.state, progress.step, progress.total) == (state, 20, 1000)
    assert progress.threshold_seconds == 200.0
    assert progress.phase == "train"


def test_floor_of_an_old_log(tmp_path: Path) -> None:
    """A fixed threshold above ten intervals decides."""
    lines = "".join(megatron(step, NOW - 400 + 20 * step) for step in range(1, 21))
    path = write(tmp_path / "log", lines, NOW)
    assert read_old_log(path, NOW + 500.0, 600.0).state == "advancing"
    assert read_old_log(path, NOW + 700.0, 600.0).state == "stalled"


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "step 1\n"])
def test_log_without_progress_is_unknown(tmp_path: Path, text: str) -> None:
    """Where no progress can be seen nothing is claimed."""
    progress = read_old_log(write(tmp_path / "log", text, NOW), NOW + 9999.0)
    assert progress.state == "unknown"
    assert (progress.step, progress.stalled_seconds, progress.threshold_seconds) == (None,) * 3


def test_missing_log_is_unknown(tmp_path: Path) -> None:
    """A log that cannot be read is no error and no age."""
    assert log_age(tmp_path / "gone", NOW).seconds is None
    assert read_old_log(tmp_path / "gone", NOW).state == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-15T08:00:00Z stdout F x",
        "2027-01-15T16:00:00.000+0800 x",
        "x 2027-01-15 03:00:00-05:00 x",
    ],
)
def test_stamps_with_zone(text: str) -> None:
    """A zone in the timestamp is honoured."""
    assert parse_stamp(text, NOW) == datetime(2027, 1, 15, 8, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "[2027-01-15 08:00:00,250] x",
        "01/15/2027 08:00:00.25 - INFO",
        "[01/15/27 08:00:00.250] INFO",
        "I0115 08:00:00.250000 123 x.py:1] x",
        "[01/15 08:00:00.25 d2.utils]: x",
    ],
)
def test_stamps_in_local_time(text: str) -> None:
    """Common shapes are read as local time, the year taken from nearby where it is missing."""
    assert parse_stamp(text, NOW) == datetime(2027, 1, 15, 8, 0, 0, 250_000).timestamp()


@pytest.mark.parametrize("text", ["step 12", "2027-13-45 99:00:00", "eta: 08:00:00"])
def test_no_stamp(text: str) -> None:
    """What is no timestamp, or an impossible one, gives none."""
    assert parse_stamp(text, NOW) is None
