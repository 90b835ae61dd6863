"""The NCCL release of a process, from its map, the library's bytes, the wheel, the environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyhang.collectors import ras_version
from whyhang.collectors.ras_version import LoadedNccl, detect_nccl
from whyhang.schemas.missing import Missing

MAPPER = """
import mmap, sys
maps = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
print("ready", flush=True)
sys.stdin.read()
"""
TRAPS = (
    b"\0NCCL version information\0NCCL version %s, but is running\0"
    b"NCCL version 2.99.9 compiled with CUDA 12.9\n\0NCCL version mismatch with remote\0"
)


def library(path: Path, version: str, *, before: int = 0) -> Path:
    """A file that carries a release as the real library does, behind strings that start alike."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(TRAPS + b"\0" * before + f"NCCL version {version}+cuda12.9\0".encode())
    return path


class Mapper:
    """Starts processes that map files."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *paths: Path, **environ: str) -> int:
        """The pid of a process that has mapped these files."""
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", MAPPER, *map(str, paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", **environ},
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid


@pytest.fixture
def mapper() -> Iterator[Mapper]:
    """A starter whose processes end with the test."""
    starter = Mapper()
    yield starter
    for process in starter.processes:
        process.communicate()


@pytest.mark.integration
def test_bytes_of_the_library(mapper: Mapper, tmp_path: Path) -> None:
    """The library's own string decides, not the strings that start like it."""
    border = ras_version._CHUNK - len(TRAPS) - 8
    path = library(tmp_path / "libnccl.so.2", "2.27.5", before=border)
    assert detect_nccl(mapper.start(path)) == LoadedNccl(
        versions=((2, 27, 5),), method="library", path=str(path)
    )


@pytest.mark.integration
def test_file_name(mapper: Mapper, tmp_path: Path) -> None:
    """Where the file's name carries the release, no byte of it is read, though it was deleted."""
    path = library(tmp_path / "libnccl.so.2.26.2", "2.1.1")
    pid = mapper.start(path)
    path.unlink()
    found = detect_nccl(pid)
    assert isinstance(found, LoadedNccl)
    assert (found.versions, found.method) == (((2, 26, 2),), "file name")


@pytest.mark.integration
def test_wheel(mapper: Mapper, tmp_path: Path) -> None:
    """The wheel beside a library that does not tell names the release."""
    path = tmp_path / "site-packages/nvidia/nccl/lib/libnccl.so.2"
    path.parent.mkdir(parents=True)
    path.write_bytes(TRAPS)
    (tmp_path / "site-packages/nvidia_nccl_cu12-2.25.1.dist-info").mkdir()
    found = detect_nccl(mapper.start(path))
    assert isinstance(found, LoadedNccl)
    assert (found.versions, found.method) == (((2, 25, 1),), "wheel")


@pytest.mark.integration
def test_two_libraries(mapper: Mapper, tmp_path: Path) -> None:
    """A process with two libraries has both releases."""
    one = library(tmp_path / "a/libnccl.so.2", "2.21.5")
    two = library(tmp_path / "b/librccl.so.1", "2.30.7")
    found = detect_nccl(mapper.start(one, two))
    assert isinstance(found, LoadedNccl)
    assert (found.versions, found.is_rccl) == (((2, 21, 5), (2, 30, 7)), True)


@pytest.mark.integration
def test_environment_is_a_hint(mapper: Mapper) -> None:
    """Without a library the image's variable stands in; without both nothing is known."""
    found = detect_nccl(mapper.start(NCCL_VERSION="2.21.5-1"))
    assert isinstance(found, LoadedNccl)
    assert (found.versions, found.method) == (((2, 21, 5),), "environment")
    assert isinstance(detect_nccl(mapper.start()), Missing)
    assert isinstance(detect_nccl(1 << 22), Missing)
