"""Following logs that grow, rotate, shrink and vanish."""

from __future__ import annotations

import os
import resource
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.tail import MAX_POLL_BYTES, Chunk, Tailer
from whyhang.engine.log_watch import LogWatch
from whyhang.engine.streams import LogFile
from whyhang.schemas.config import Config


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


@pytest.fixture
def tailer(log: Path) -> Iterator[Tailer]:
    opened = Tailer([log])
    yield opened
    opened.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def joined(chunks: tuple[Chunk, ...]) -> bytes:
    return b"".join(chunk.data for chunk in chunks)


def test_gives_what_is_new(log: Path, tailer: Tailer) -> None:
    """Each poll gives the whole lines written since the last one, and nothing twice."""
    append(log, b"step 1\nstep 2\n")
    assert joined(tailer.poll(0.0)) == b"step 1\nstep 2\n"
    assert tailer.poll(1.0) == ()
    append(log, b"step 3\n")
    (chunk,) = tailer.poll(2.0)
    assert (chunk.source, chunk.data, chunk.tentative) == (str(log), b"step 3\n", False)


def test_waits_for_a_file(log: Path, tailer: Tailer) -> None:
    """A file that does not exist yet is read from its begin once it does."""
    assert tailer.poll(0.0) == ()
    append(log, b"step 1\n")
    assert joined(tailer.poll(1.0)) == b"step 1\n"


def test_end_skips_what_is_old(log: Path) -> None:
    """With start=end only what is written from now on is given."""
    append(log, b"old\n")
    tailer = Tailer([log], start="end")
    assert tailer.poll(0.0) == ()
    append(log, b"new\n")
    assert joined(tailer.poll(1.0)) == b"new\n"
    tailer.close()


def test_begun_line_is_held(log: Path, tailer: Tailer) -> None:
    """A line without an end waits for its rest, then is given as one."""
    append(log, b"iteration 12")
    assert tailer.poll(0.0) == ()
    append(log, b"3\n")
    assert joined(tailer.poll(0.5)) == b"iteration 123\n"


def test_begun_line_is_tentative_after_two_seconds(log: Path, tailer: Tailer) -> None:
    """A bar never ends in a line break: it is given after two idle seconds, and only once."""
    append(log, b"\r 10%| | 1/10")
    tailer.poll(0.0)
    assert tailer.poll(1.9) == ()
    (chunk,) = tailer.poll(2.1)
    assert (chunk.data, chunk.tentative) == (b" 10%| | 1/10", True)
    assert tailer.poll(9.0) == ()
    append(log, b"\r 20%| | 2/10\r")
    assert joined(tailer.poll(10.0)) == b"\r 20%| | 2/10\r"


def test_tentative_line_that_grows_is_given_whole(log: Path, tailer: Tailer) -> None:
    """What was only half a line is given again in full."""
    append(log, b"step 1")
    tailer.poll(0.0)
    assert joined(tailer.poll(3.0)) == b"step 1"
    append(log, b"2\n")
    assert joined(tailer.poll(4.0)) == b"step 12\n"


def test_rotation(log: Path, tailer: Tailer) -> None:
    """The old file is drained, then the new one is read from its begin."""
    append(log, b"step 1\n")
    tailer.poll(0.0)
    append(log, b"step 2\nstep 3")
    log.rename(log.with_suffix(".1"))
    append(log, b"step 4\n")
    chunks = tailer.poll(1.0)
    assert [chunk.data for chunk in chunks] == [b"step 2\n", b"step 3", b"step 4\n"]
    assert chunks[-1].restarted


def test_truncation(log: Path, tailer: Tailer) -> None:
    """A file that shrank is read from its begin again."""
    append(log, b"step 1\nstep 2\n")
    tailer.poll(0.0)
    log.write_bytes(b"step 1\n")
    (chunk,) = tailer.poll(1.0)
    assert (chunk.data, chunk.restarted) == (b"step 1\n", True)


def test_rewriting_to_a_longer_file(log: Path, tailer: Tailer) -> None:
    """Other content in the same file is noticed even where it is longer than what was read."""
    append(log, b"step 1\n")
    tailer.poll(0.0)
    with log.open("r+b") as file:
        file.write(b"other text that is longer\n")
    assert joined(tailer.poll(1.0)) == b"other text that is longer\n"


def test_hole_after_copytruncate(log: Path, tailer: Tailer) -> None:
    """A writer that goes on at its old offset leaves a hole, behind which reading goes on."""
    append(log, b"step 1\nstep 2\n")
    tailer.poll(0.0)
    os.truncate(log, 0)
    with log.open("r+b") as file:
        file.seek(14)
        file.write(b"step 3\n")
    assert joined(tailer.poll(1.0)).lstrip(b"\0") == b"step 3\n"


def test_deleted_file_is_read_on(log: Path, tailer: Tailer) -> None:
    """While a writer holds a deleted file, its lines are still given; a new file follows."""
    with log.open("ab", buffering=0) as writer:
        writer.write(b"step 1\n")
        tailer.poll(0.0)
        log.unlink()
        writer.write(b"step 2\n")
        assert joined(tailer.poll(1.0)) == b"step 2\n"
    append(log, b"step 3\n")
    assert joined(tailer.poll(2.0)) == b"step 3\n"


def test_flood_is_skipped(log: Path, tailer: Tailer) -> None:
    """Of more than 1 MiB only the last 1 MiB is given, from a line's begin on."""
    append(log, b"old line\n" * 300_000 + b"step 7\n")
    (chunk,) = tailer.poll(0.0)
    assert len(chunk.data) <= MAX_POLL_BYTES
    assert chunk.skipped == 2_700_007 - MAX_POLL_BYTES
    assert chunk.data.endswith(b"\nstep 7\n")
    assert set(chunk.data.split(b"\n")[:-2]) <= {b"", b"old line"}


def test_endless_line_is_bounded(log: Path, tailer: Tailer) -> None:
    """A line that never ends is held in 64 KiB: its head and its tail."""
    for _ in range(3):
        append(log, b"x" * 900_000)
        tailer.poll(0.0)
    append(log, b"tail")
    tailer.poll(1.0)
    (chunk,) = tailer.poll(9.0)
    assert len(chunk.data) <= 64 * 1024
    assert chunk.data.endswith(b"tail")


def test_glob_finds_new_files(tmp_path: Path) -> None:
    """Files of new ranks are found at the next scan, ten seconds later at most."""
    append(tmp_path / "rank0.log", b"step 1\n")
    tailer = Tailer([str(tmp_path / "rank*.log")])
    assert joined(tailer.poll(0.0)) == b"step 1\n"
    append(tmp_path / "rank1.log", b"step 2\n")
    assert tailer.poll(5.0) == ()
    (chunk,) = tailer.poll(10.5)
    assert (chunk.source, chunk.data) == (str(tmp_path / "rank1.log"), b"step 2\n")
    tailer.close()


def test_files_of_a_glob_that_appear_later_are_read_whole(tmp_path: Path) -> None:
    """start=end holds for what was there at the start, not for files that came afterwards."""
    append(tmp_path / "a.log", b"old\n")
    tailer = Tailer([str(tmp_path / "*.log")], start="end")
    assert tailer.poll(0.0) == ()
    append(tmp_path / "b.log", b"new\n")
    assert joined(tailer.poll(11.0)) == b"new\n"
    tailer.close()


def test_many_files_need_few_descriptors(tmp_path: Path) -> None:
    """Descriptors are bounded; files whose own was closed are still followed."""
    paths = [tmp_path / f"rank{number}.log" for number in range(100)]
    for path in paths:
        append(path, b"step 1\n")
    tailer = Tailer(paths)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    assert len(tailer.poll(0.0)) == 100
    assert len(os.listdir("/proc/self/fd")) - before <= 64  # noqa: PTH208
    for path in paths:
        append(path, b"step 2\n")
    assert {chunk.data for chunk in tailer.poll(1.0)} == {b"step 2\n"}
    tailer.close()


def test_idle_file_is_opened_anew(
    log: Path, tailer: Tailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute the file is opened again, so that network file systems revalidate it."""
    append(log, b"step 1\n")
    tailer.poll(0.0)
    opened: list[object] = []
    real = os.open

    def spy(path: str, flags: int) -> int:
        opened.append(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", spy)
    tailer.poll(30.0)
    tailer.poll(61.0)
    append(log, b"step 2\n")
    assert joined(tailer.poll(62.0)) == b"step 2\n"
    assert opened == [str(log)]


def test_pipes_and_directories_are_left_alone(tmp_path: Path) -> None:
    """Only regular files are opened: opening a pipe could block a writer."""
    os.mkfifo(tmp_path / "pipe")
    tailer = Tailer([tmp_path / "pipe", tmp_path])
    assert tailer.poll(0.0) == ()
    assert not any(followed.is_open for followed in tailer._files.values())
    tailer.close()


def test_unreadable_file_is_no_error(
    log: Path, tailer: Tailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale or forbidden file is tried again at the next poll."""
    append(log, b"step 1\n")

    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        assert tailer.poll(0.0) == ()
    assert joined(tailer.poll(1.0)) == b"step 1\n"


@pytest.mark.integration
def test_wakes_for_new_files(tmp_path: Path) -> None:
    """Where the kernel reports new files, they are found before the next scan."""
    tailer = Tailer([str(tmp_path / "*.log")], wake=True)
    tailer.poll(0.0)
    append(tmp_path / "a.log", b"step 1\n")
    deadline = time.monotonic() + 20.0
    found = b""
    while not found and time.monotonic() < deadline:
        time.sleep(0.05)
        found = joined(tailer.poll(1.0))
    tailer.close()
    assert found == b"step 1\n"


@given(st.lists(st.sampled_from([b"a", b"step 1", b"\n", b"\r", b"\r\n", b"0%|"]), max_size=30))
def test_pieces_survive_any_cut(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    """However writes are cut, the same lines come out as from the whole file."""
    path = tmp_path_factory.mktemp("tail") / "log"
    path.touch()
    tailer = Tailer([path])
    got = b""
    for part in parts:
        append(path, part)
        got += joined(tailer.poll(0.0))
    got += joined(tailer.poll(5.0))
    tailer.close()
    whole = b"".join(parts).replace(b"\r", b"\n")
    assert got.replace(b"\r", b"\n").split() == whole.split()


@pytest.mark.integration
def test_wakes_for_another_attempt(tmp_path: Path) -> None:
    """A restart writes below directories that did not exist: found before the next scan too."""
    tailer = Tailer([f"{tmp_path}/logs/*/attempt_*/*/stdout.log"], wake=True)
    tailer.poll(0.0)
    for attempt in range(2):
        rank = tmp_path / "logs" / "none_x1" / f"attempt_{attempt}" / "0"
        rank.mkdir(parents=True)
        append(rank / "stdout.log", b"step %d\n" % attempt)
        if attempt == 0:
            # Not even the first directory was there: nothing could be watched.
            assert joined(tailer.poll(11.0)) == b"step 0\n"
            continue
        deadline, found = time.monotonic() + 20.0, b""
        while not found and time.monotonic() < deadline:
            time.sleep(0.05)
            found = joined(tailer.poll(12.0))
        assert found == b"step 1\n"
    tailer.close()


@pytest.mark.parametrize("error", [OSError(28, "inotify watch limit"), OSError(24, "instances")])
def test_without_inotify_the_scan_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """Where the kernel has no watches left, files are followed and found all the same."""
    from watchdog.observers import Observer

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Observer, "schedule" if error.errno == 28 else "start", refuse)
    append(tmp_path / "a.log", b"step 1\n")
    tailer = Tailer([str(tmp_path / "*.log")], wake=True)
    assert joined(tailer.poll(0.0)) == b"step 1\n"
    append(tmp_path / "a.log", b"step 2\n")
    append(tmp_path / "b.log", b"step 3\n")
    assert joined(tailer.poll(10.5)) == b"step 2\nstep 3\n"
    tailer.close()


def test_thousands_of_files_within_the_limit_of_descriptors(tmp_path: Path) -> None:
    """With 256 descriptors 1,024 rank logs are all followed, whichever grows."""
    paths = [tmp_path / f"rank{number}.log" for number in range(1024)]
    for path in paths:
        append(path, b"step 1\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        tailer = Tailer([str(tmp_path / "rank*.log")])
        assert len(tailer.poll(0.0)) == 1024
        for number in (1023, 0, 512):
            append(paths[number], b"step 2\n")
            (chunk,) = tailer.poll(1.0)
            assert (chunk.source, chunk.data) == (str(paths[number]), b"step 2\n")
        tailer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_reused_inode(log: Path, tailer: Tailer) -> None:
    """While the file was not held open, another took its name and its number."""
    append(log, b"step 1\nstep 2\n")
    tailer.poll(0.0)
    tailer._files[str(log)].close()
    log.write_bytes(b"another run begins here\nstep 1\n")
    (chunk,) = tailer.poll(1.0)
    assert (chunk.data, chunk.restarted) == (b"another run begins here\nstep 1\n", True)


def test_line_of_a_hundred_megabytes(log: Path, tailer: Tailer) -> None:
    """A dump of 100 MB in one line costs a bounded amount of memory and hides no later step."""
    tracemalloc.start()
    for second in range(100):
        append(log, b"x" * 1_000_000)
        tailer.poll(float(second))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    append(log, b"\nstep 7\n")
    assert joined(tailer.poll(200.0)).endswith(b"x\nstep 7\n")


def test_a_step_in_a_torn_line_counts_once(tmp_path: Path) -> None:
    """A begun line is read tentatively, and again when it is whole: one event, no step back."""
    log = tmp_path / "log"
    append(log, b"step 10/900 loss 1\nstep 11/900 loss 1\nstep 12/900 loss 1\n")
    watch = LogWatch([LogFile(path=str(log))], Config(), 0.0)
    watch.poll(1.0)
    append(log, b"step 1")
    for second in range(2, 6):
        watch.poll(float(second))
    append(log, b"3/900 loss 1")
    for second in range(6, 10):
        watch.poll(float(second))
    append(log, b"\n")
    watch.poll(10.0)
    watch.close()
    steps = [event.step for event in watch.watch.history()]
    assert steps[-1] == 13 and steps.count(13) == 1 and 1 not in steps
    assert watch.watch.progress(10.0).step == 13
