"""What a log tells beside progress: faults that hasten, and restarts."""

from __future__ import annotations

from pathlib import Path

from whyhang.engine.log_watch import LogWatch
from whyhang.engine.streams import LogFile
from whyhang.schemas.config import Config
from whyhang.schemas.progress import Progress

TIMEOUT = (
    "[rank1]:[E1128 21:11:49.041188078 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600038 milliseconds before timing out.\n"
)
RESTART = (
    "I1129 18:01:02.000 torch/distributed/elastic/agent/server/api.py:889] [default] Worker group "
    "FAILED. 3/3 attempts left; will restart worker group\n"
)
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: no\n'


class Log:
    """A log file and its watch, with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 1000.0
        path.write_text("")
        self.watch = LogWatch([LogFile(path=str(path))], Config(), self.now)
        self.states: list[str] = []

    def write(self, text: str) -> None:
        """Append to the log and let a second pass."""
        with self.path.open("a") as file:
            file.write(text)
        self.wait(1)

    def wait(self, seconds: int) -> None:
        """Let time pass, a poll a second."""
        for _ in range(seconds):
            self.now += 1.0
            self.watch.poll(self.now)
            self.states += [change.state for change in self.watch.transitions(self.now)]

    def train(self, first: int = 1) -> None:
        """Twenty steps, a second each."""
        for step in range(first, first + 20):
            self.write(f"step {step}/1000 loss 1.0\n")


def test_a_timeout_hastens_a_suspicion_only(tmp_path: Path) -> None:
    """It confirms at once what is suspect, and makes nobody suspect before the threshold."""
    log = Log(tmp_path / "log")
    log.train()
    log.write(TIMEOUT)
    log.wait(60)
    assert log.states == ["advancing"]
    log.wait(61)
    assert log.states == ["advancing", "suspect", "confirmed"]


def test_progress_takes_a_timeout_back(tmp_path: Path) -> None:
    """A job that went on after all is given the time to confirm."""
    log = Log(tmp_path / "log")
    log.train()
    log.write(TIMEOUT)
    log.write("step 21/1000 loss 1.0\n")
    log.wait(125)
    assert log.states == ["advancing", "suspect"]


def test_a_traceback_alone_hastens_nothing(tmp_path: Path) -> None:
    """Programs print them and go on."""
    log = Log(tmp_path / "log")
    log.train()
    log.write(TRACEBACK)
    log.wait(125)
    assert log.states == ["advancing", "suspect"]
    assert not log.watch.has_timed_out


def test_a_restart_is_announced_once(tmp_path: Path) -> None:
    """The launcher's line is told once; the new attempt has made no step yet, and may fall back."""
    log = Log(tmp_path / "log")
    log.train(first=500)
    assert not log.watch.announced_restart()
    log.write(RESTART)
    assert log.watch.announced_restart()
    assert not log.watch.announced_restart()
    assert log.watch.has_steps
    log.watch.restart(log.now)
    assert not log.watch.has_steps
    log.wait(300)
    log.train(first=100)
    assert log.states == ["advancing", "warming", "advancing"]
    assert log.watch.progress(log.now).step == 119


def test_lines_before_a_preset_was_found_tell_their_rhythm(tmp_path: Path) -> None:
    """What `auto` kept is taken in at the time it came, not as one burst out of a buffer."""
    log = Log(tmp_path / "log")
    for step in (1, 2, 3):
        log.write(
            f" iteration {step:8d}/    5000 | consumed samples:   512 | elapsed time per iteration "
            "(ms): 20000.0 | lm loss: 1.0E+01 |\n"
        )
        log.wait(19)
    view = log.watch.progress(log.now)
    assert (view.step, view.threshold_seconds, view.stalled_seconds) == (3, 200.0, 19.0)
    # The first gap lies between the start and the rhythm.
    assert view.median_interval_seconds == 20.0


def test_an_old_log_teaches_its_lively_rhythm(tmp_path: Path) -> None:
    """Its own gaps count, not their median alone: some of this job's steps take ten minutes."""
    log = Log(tmp_path / "log")
    past = Progress(step=50, median_interval_seconds=30.0)
    log.watch.prime(past, [30.0] * 12 + [600.0], log.now, stepped=True)
    assert log.watch.progress(log.now).threshold_seconds == 1800.0
    assert log.watch.progress(log.now).stalled_seconds == 0.0


def test_lines_since_the_old_log_was_read_are_not_lost(tmp_path: Path) -> None:
    """What is written before the first poll counts, be it a single line."""
    path = tmp_path / "log"
    path.write_text("step 1/100 loss 1.0\nstep 2/100 loss 1.0\n")
    watch = LogWatch([LogFile(path=str(path), start=path.stat().st_size)], Config(), 0.0)
    with path.open("a") as file:
        file.write("step 3/100 loss 1.0\n")
    watch.prime(Progress(step=2, total=100, preset="step"), [], 0.0, stepped=True)
    watch.poll(1.0)
    assert watch.progress(1.0).step == 3


def test_a_fault_in_a_line_that_ends_late_is_heard(tmp_path: Path) -> None:
    """A line that was read tentatively for its step is still searched once it has ended."""
    log = Log(tmp_path / "log")
    log.train()
    log.write(TIMEOUT.rstrip("\n"))
    log.wait(5)
    log.write("\n")
    assert [event.kind for event in log.watch.events()] == ["watchdog_timeout"]
