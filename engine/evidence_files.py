"""The files of an incident's directory, packed or not: read line by line, what is torn is told."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar, cast

from whyhang.schemas.errors import FormatError
from whyhang.schemas.process import Process
from whyhang.schemas.process_codec import ProcessReader

T = TypeVar("T")

LOG_TAIL_BYTES = 1 << 20
# A few kB may unpack to more than a machine can hold.
MOST_BYTES = 2 << 30
SAMPLE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def read_processes(folder: Path, reader: ProcessReader, problems: list[str]) -> Iterator[Process]:
    """The processes of all nodes in one sample."""
    for path in _files(folder):
        if not path.name.endswith(SAMPLE_SUFFIXES):
            continue
        node = path.name.partition(".jsonl")[0]

        def decode(line: bytes, node: str = node) -> Process:
            return reader.process(line, node=node)

        yield from read_lines(path, decode, problems)


def _files(folder: Path, pattern: str = "*") -> list[Path]:
    """The regular files of a directory by name: opening a pipe or a device would never end."""
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def read_lines(path: Path, decode: Callable[[bytes], T], problems: list[str]) -> Iterator[T]:
    """Decode a file line by line; a line that cannot be decoded becomes a problem."""
    if not path.is_file():
        return
    try:
        data = _read(path)
    except (zlib.error, OSError, EOFError, FormatError) as error:
        problems.append(f"{path.name}: {error}")
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield decode(line)
        except FormatError as error:
            problems.append(f"{path.name}:{number}: {error.message}")


def _read(path: Path) -> bytes:
    with _open(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(f"holds more than {MOST_BYTES >> 20} MiB")
    return data


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file as it was before it was compressed."""
    if path.suffix == ".gz":
        with gzip.open(path) as unpacked:
            yield cast("IO[bytes]", unpacked)
        return
    with path.open("rb") as file:
        if path.suffix != ".zst":
            yield file
            return
        try:
            import zstandard
        except ImportError as error:
            raise FormatError("compressed with zstd: pip install zstandard to read it") from error
        try:
            with zstandard.ZstdDecompressor().stream_reader(file) as stream:
                yield stream
        except zstandard.ZstdError as error:
            raise FormatError(f"no archive of zstd: {error}") from error


def read_log_excerpt(folder: Path, problems: list[str]) -> Iterator[str]:
    """The lines of the logs that were kept."""
    for path in _files(folder, "*.txt"):
        try:
            data = path.read_bytes()[-LOG_TAIL_BYTES:]
        except OSError as error:
            problems.append(f"{path.name}: {error}")
            continue
        yield from data.decode("utf-8", "replace").splitlines()
