"""What is relayed, what is tailed, and how hang.yaml's sections reach the supervisor."""

from __future__ import annotations

import json
import os
from pathlib import Path

from whyhang.engine.configure import config_from, config_to
from whyhang.engine.log_source import LINES_PER_POLL, newest, without_own
from whyhang.engine.streams import (
    LogFile,
    Stream,
    StreamPlan,
    find_logs,
    inspect_stream,
    plan_streams,
)
from whyhang.engine.sweep import sweep
from whyhang.schemas.config import (
    CheckpointConfig,
    Config,
    OnHangConfig,
    ProgressConfig,
    TopologyConfig,
)

TERMINAL = Stream(fd=1, kind="terminal")
PIPE = Stream(fd=1, kind="pipe", identity=(1, 10))
SAME_PIPE = Stream(fd=2, kind="pipe", identity=(1, 10))
OTHER_PIPE = Stream(fd=2, kind="pipe", identity=(1, 11))
FILE = Stream(fd=1, kind="file", identity=(1, 12), path="/out.log", size=7)


def test_known_logs_make_a_relay_needless() -> None:
    """Whoever names logs gets nothing between the job and its pipes."""
    known = LogFile(path="logs/*.log")
    assert plan_streams([PIPE, OTHER_PIPE], [known]) == StreamPlan(logs=(known,))


def test_old_contents_of_named_logs_are_known(tmp_path: Path) -> None:
    """Files that were there before the job are not its progress; new ones are."""
    (tmp_path / "a.log").write_bytes(b"12")
    (tmp_path / "b.log").write_bytes(b"345")
    old, new = str(tmp_path / "*.log"), str(tmp_path / "new.txt")
    assert find_logs([old, new]) == (LogFile(path=old, start=5), LogFile(path=new))


def test_one_poll_takes_in_the_newest_lines_only() -> None:
    """A flood of output costs a bounded amount of work, and loses the oldest lines."""
    lines = [b"line %d\n" % number for number in range(3 * LINES_PER_POLL)]
    kept = newest(b"".join(lines))
    assert kept.endswith(b"".join(lines[-100:]))
    assert kept.count(b"\n") <= LINES_PER_POLL + 1
    assert newest(b"a\nb\n") == b"a\nb\n"


def test_own_messages_are_no_part_of_the_log() -> None:
    """What we say into a shared log must never look like progress of the job."""
    assert without_own(b"step 1\nwhyhang: step 2\nstep 3\n") == b"step 1\nstep 3\n"


def test_old_runs_are_swept(tmp_path: Path) -> None:
    """What a run wrote is deleted once nothing of it is newer than the limit."""
    for name, age in (("old", 1000.0), ("new", 3000.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "watcher.log").write_text("x")
        for path in (tmp_path / name / "watcher.log", tmp_path / name):
            os.utime(path, (age, age))
    sweep(tmp_path, before=2000.0)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_terminal_is_left_alone() -> None:
    """A terminal is neither read nor relayed."""
    assert plan_streams([TERMINAL], []) == StreamPlan()


def test_equal_pipes_share_a_relay() -> None:
    """``2>&1`` keeps its order: one pipe for both."""
    assert plan_streams([PIPE, SAME_PIPE], []).relayed == ((1, 2),)


def test_different_pipes_have_a_relay_each() -> None:
    """stdout and stderr stay apart."""
    assert plan_streams([PIPE, OTHER_PIPE], []).relayed == ((1,), (2,))


def test_file_is_tailed_from_its_size() -> None:
    """What stood in the file before is not this job's; bars in stderr are relayed beside it."""
    plan = plan_streams([FILE, OTHER_PIPE], [])
    assert plan == StreamPlan(logs=(LogFile(path="/out.log", start=7),), relayed=((2,),))


def test_descriptors_are_recognised(tmp_path: Path) -> None:
    """Files, pipes and the null device are told apart."""
    path = tmp_path / "x.log"
    path.write_bytes(b"12345")
    reader, writer = os.pipe()
    with path.open("ab") as log, Path(os.devnull).open("wb") as null:
        seen = inspect_stream(log.fileno())
        assert (seen.kind, seen.path, seen.size) == ("file", str(path), 5)
        assert inspect_stream(writer).kind == "pipe"
        assert inspect_stream(null.fileno()).kind == "nothing"
    os.close(reader)
    os.close(writer)
    assert inspect_stream(writer).kind == "nothing"


def test_sections_survive_the_way_through_json() -> None:
    """The supervisor and the watcher see what hang.yaml says."""
    config = Config(
        progress=ProgressConfig(
            log=("a.log", "b.log"), checkpoint=CheckpointConfig(path="ckpt", max_age=60.0)
        ),
        on_hang=OnHangConfig(action="stop", grace=5.0),
        topology=TopologyConfig(tensor=4, place="hang.yaml:3"),
    )
    assert config_from(json.loads(json.dumps(config_to(config)))) == config
