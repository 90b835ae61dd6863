"""The relay: no byte lost, whatever happens to it, to the log copy or to the reader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from whyhang.engine import relay

pytestmark = pytest.mark.integration


@dataclass
class Line:
    """A pipe into a relay and a pipe out of it."""

    source: int
    inlet: int
    outlet: int
    target: int
    pulse: int
    relays: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *logs: Path) -> subprocess.Popen[bytes]:
        """Start a relay between the two pipes."""
        descriptors = (self.source, self.target, self.pulse)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", relay.__file__, *map(str, (*descriptors, *logs))],
            pass_fds=descriptors,
        )
        self.relays.append(process)
        return process

    def end_of_input(self) -> None:
        """Close the writer's end."""
        os.close(self.inlet)
        self.inlet = -1

    def drop_target(self) -> None:
        """Leave the way out to the relay alone, so that its end is seen."""
        os.close(self.target)
        self.target = -1


@pytest.fixture
def line() -> Iterator[Line]:
    """Two pipes, with all descriptors and relays gone afterwards."""
    source, inlet = os.pipe()
    outlet, target = os.pipe()
    pulse = os.memfd_create("test")
    pipes = Line(source, inlet, outlet, target, pulse)
    yield pipes
    for process in pipes.relays:
        process.kill()
        process.wait()
    for fd in (pipes.source, pipes.inlet, pipes.outlet, pipes.target, pipes.pulse):
        if fd >= 0:
            os.close(fd)


def read_all(fd: int) -> bytes:
    """Read to the end of the stream."""
    return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))


def test_copies_everything_and_passes_the_end_on(line: Line, tmp_path: Path) -> None:
    """What goes in comes out unchanged, the log has some of it, and the stream's end follows."""
    data = b"".join(b"step %d/1000\n" % number for number in range(50_000))
    process = line.start(tmp_path / "new" / "stdout.log")
    line.drop_target()

    def write() -> None:
        with os.fdopen(line.inlet, "wb") as stream:
            stream.write(data)
        line.inlet = -1

    writer = threading.Thread(target=write)
    writer.start()
    received = read_all(line.outlet)
    writer.join()

    assert received == data
    assert process.wait(10) == 0
    # A flood may be dropped from the copy, within lines too; its begin had room.
    log = (tmp_path / "new" / "stdout.log").read_bytes()
    assert log.startswith(data[:1000])
    assert len(log) <= len(data)


def test_slow_output_is_copied_completely(line: Line, tmp_path: Path) -> None:
    """Output that fits into the pipe is all in the log."""
    log = tmp_path / "stdout.log"
    process = line.start(log)
    os.write(line.inlet, b"step 1\nstep 2\n")
    line.end_of_input()
    assert process.wait(10) == 0
    assert log.read_bytes() == b"step 1\nstep 2\n"


def test_nothing_is_lost_when_it_is_killed_again_and_again(line: Line) -> None:
    """A relay killed at any moment leaves each byte on one side or the other."""
    data = b"".join(b"line %d of the job\n" % number for number in range(40_000))
    received = bytearray()

    def write() -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(line.inlet, view[:3000]) :]
        line.end_of_input()

    def read() -> None:
        while len(received) < len(data):
            received.extend(os.read(line.outlet, 500))

    threads = [threading.Thread(target=work, daemon=True) for work in (write, read)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        process = line.start()
        if len(line.relays) <= 8:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                process.kill()
        if process.wait(20) == 0:
            break
    for thread in threads:
        thread.join(20)
    assert bytes(received) == data


def test_tells_when_the_reader_has_gone(line: Line) -> None:
    """Without a reader the relay ends by itself, before the job writes anything."""
    process = line.start()
    os.close(line.outlet)
    line.outlet = -1
    assert process.wait(10) == relay.READER_GONE


def test_log_that_cannot_be_written_stops_nothing(line: Line, tmp_path: Path) -> None:
    """A log in an impossible place is reported in the pulse; the job's output passes."""
    (tmp_path / "file").write_bytes(b"")
    process = line.start(tmp_path / "file" / "stdout.log")
    line.drop_target()
    os.write(line.inlet, b"step 1\n")
    assert os.read(line.outlet, 100) == b"step 1\n"
    line.end_of_input()
    assert process.wait(10) == 0
    _, failed = relay.Pulse.LAYOUT.unpack(os.pread(line.pulse, 16, 0))
    assert os.strerror(failed) in ("Not a directory", "File exists")


def test_next_place_is_used(line: Line, tmp_path: Path) -> None:
    """Where the first place takes no log the second one does."""
    (tmp_path / "file").write_bytes(b"")
    process = line.start(tmp_path / "file" / "a.log", tmp_path / "b.log")
    os.write(line.inlet, b"step 1\n")
    line.end_of_input()
    assert process.wait(10) == 0
    assert (tmp_path / "b.log").read_bytes() == b"step 1\n"


def test_slow_reader_is_waited_for(line: Line) -> None:
    """A reader that made its pipe nonblocking and sleeps still gets everything."""
    os.set_blocking(line.target, False)
    line.start()
    line.drop_target()
    data = b"x" * 300_000

    def write() -> None:
        os.write(line.inlet, data)
        line.end_of_input()

    written = threading.Thread(target=write, daemon=True)
    written.start()
    written.join(0.5)
    assert written.is_alive(), "the writer must feel that nobody reads"
    assert read_all(line.outlet) == data
    written.join(10)


def test_stop_signal_hurts_no_byte(line: Line) -> None:
    """A stopped relay that is killed leaves the rest to its successor."""
    first = line.start()
    os.write(line.inlet, b"a\n")
    assert os.read(line.outlet, 10) == b"a\n"
    first.send_signal(signal.SIGSTOP)
    os.write(line.inlet, b"b\n")
    first.kill()
    first.wait(10)
    line.start()
    assert os.read(line.outlet, 10) == b"b\n"
