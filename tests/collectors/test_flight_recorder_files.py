"""Finding the dump of a process and asking for one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from whyhang.collectors.flight_recorder_files import (
    ask_for_dump,
    dump_paths,
    is_recording,
    read_dump_of,
)
from whyhang.schemas.missing import Missing


def test_places() -> None:
    """The job's own prefix decides; else the places of the releases are tried."""
    told = {"TORCH_FR_DUMP_TEMP_FILE": "/d/a_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/d/b_"}
    assert dump_paths(told, 3) == ("/d/a_3", "/d/b_3")
    assert "/tmp/nccl_trace_rank_3" in dump_paths({}, 3)
    assert dump_paths({"HOME": "/home/ada"}, 3)[0].startswith("/home/ada/.cache/torch/")


@pytest.mark.parametrize(
    ("environ", "answer"),
    [
        ({}, None),
        ({"TORCH_FR_BUFFER_SIZE": "2000"}, True),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}, False),
    ],
)
def test_recording(environ: dict[str, str], answer: bool | None) -> None:
    """A buffer of no records means that nothing is recorded; unset is left to the release."""
    assert is_recording(environ) is answer


def test_a_job_that_records_nothing(tmp_path: Path) -> None:
    """A missing dump has its reason where the job switched the recorder off."""
    environ = {"TORCH_FR_BUFFER_SIZE": "0", "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_"}
    found = read_dump_of(os.getpid(), 0, environ, not_before=0.0)
    assert isinstance(found, Missing)
    assert "buffer to 0" in found.reason


def test_fresh_dumps_only(tmp_path: Path) -> None:
    """A dump that is older than the hang is of another one."""
    environ = {"TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_"}
    now = time.time()
    assert read_dump_of(os.getpid(), 0, environ, not_before=now) == Missing("it has left no dump")
    path = tmp_path / "dump_0"
    path.write_bytes(b"data")
    assert read_dump_of(os.getpid(), 0, environ, not_before=now - 60) == b"data"
    os.utime(path, (now - 500, now - 500))
    assert isinstance(read_dump_of(os.getpid(), 0, environ, not_before=now - 60), Missing)


def test_the_pipe(tmp_path: Path) -> None:
    """A dump is asked for where the job reads its pipe, and nowhere else."""
    environ = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/p"}
    pid = os.getpid()
    assert isinstance(ask_for_dump(pid, 0, {}), Missing)
    assert isinstance(ask_for_dump(pid, 0, environ), Missing)
    os.mkfifo(tmp_path / "p0.pipe")
    unread = ask_for_dump(pid, 0, environ)
    assert isinstance(unread, Missing)
    reader = os.open(tmp_path / "p0.pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ask_for_dump(pid, 0, environ) is None
        assert os.read(reader, 100) == b"1\n"
    finally:
        os.close(reader)


def test_a_file_is_no_pipe(tmp_path: Path) -> None:
    """A regular file at the pipe's place is left as it is."""
    (tmp_path / "p0.pipe").write_text("mine")
    environ = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/p"}
    assert isinstance(ask_for_dump(os.getpid(), 0, environ), Missing)
    assert (tmp_path / "p0.pipe").read_text() == "mine"
