"""Which NCCL a running process has loaded, found without touching the process.

Only names and files are looked at: its memory map, the library's own bytes, the metadata of the
wheel beside it, its environment. The library may lie on a sick file system, so files are read with
a time limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whyhang.collectors.patient_read import read_patiently
from whyhang.collectors.procfs import PROC, read_environ, read_maps
from whyhang.schemas.missing import Missing

Method = Literal["library", "file name", "wheel", "environment"]
Version = tuple[int, int, int]

SCAN_BYTES = 64 << 20  # the string stands in .rodata, before the GPU code
_CHUNK = 4 << 20
_OVERLAP = 256
_READ_SECONDS = 1.0
_LIBRARY = re.compile(r"/lib(?P<kind>nccl|rccl)\.so(?:\.\d+)*(?: \(deleted\))?\Z")
_STATIC = re.compile(r"/libtorch_cuda\.so\Z")
_NAMED = re.compile(r"\.so\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\Z")
_STRING = b"NCCL version "
_BUILD = re.compile(rb"NCCL version (\d{1,3})\.(\d{1,3})\.(\d{1,3})[^+ \x00]{0,20}\+(?:cuda|hip)\d")
_TRIPLE = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNccl:
    """A library and its version; ``versions`` has several where the process maps several.

    ``is_rccl``: AMD's library, of whose RAS nothing was measured.
    """

    versions: tuple[Version, ...]
    method: Method
    path: str | None = None
    is_rccl: bool = False


def detect_nccl(pid: int) -> LoadedNccl | Missing:
    """The NCCL of a process: from its map, else from its environment."""
    maps = read_maps(pid)
    if maps is not None:
        found = [_of_library(pid, path) for path in _libraries(maps)]
        known = [library for library in found if library is not None]
        if known:
            versions = {version for library in known for version in library.versions}
            return LoadedNccl(
                versions=tuple(sorted(versions)),
                method=known[0].method,
                path=known[0].path,
                is_rccl=any(library.is_rccl for library in known),
            )
    hint = _from_environment(read_environ(pid) or {})
    if hint is not None:
        return hint
    if maps is None:
        return Missing("its memory map could not be read")
    return Missing("no NCCL library is mapped, or none that tells its version")


def _libraries(maps: str) -> list[str]:
    """Paths of NCCL libraries in a memory map; a static build's library if there is none."""
    paths: dict[str, None] = {}
    static: dict[str, None] = {}
    for line in maps.splitlines():
        fields = line.split(None, 5)
        path = fields[5] if len(fields) == 6 else ""
        if _LIBRARY.search(path):
            paths[path] = None
        elif _STATIC.search(path):
            static[path] = None
    return list(paths or static)[:4]


def _of_library(pid: int, path: str) -> LoadedNccl | None:
    is_rccl = "librccl" in path
    deleted = path.endswith(" (deleted)")
    inside = f"{PROC}/{pid}/root{path}"
    tries: tuple[tuple[Method, Callable[[], Version | None]], ...] = (
        ("file name", lambda: _from_name(path)),
        ("library", lambda: None if deleted else _from_bytes(inside)),
        ("wheel", lambda: None if deleted else _from_wheel(inside)),
    )
    for method, attempt in tries:
        version = attempt()
        if version is not None:
            return LoadedNccl(versions=(version,), method=method, path=path, is_rccl=is_rccl)
    return None


def _from_name(path: str) -> Version | None:
    """The version that a file name carries; maps name the file behind symlinks."""
    match = _NAMED.search(path.removesuffix(" (deleted)"))
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _from_bytes(path: str) -> Version | None:
    data = read_patiently(path, limit_seconds=_READ_SECONDS, read=_build_string)
    match = None if data is None else _BUILD.search(data)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _build_string(path: str) -> bytes | None:
    """The piece of a library that names its version, e.g. ``NCCL version 2.27.5+cuda12.9``.

    Other strings start alike. A pattern that starts with digits would take seconds.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        for piece in _pieces(file):
            place = piece.find(_STRING)
            while place >= 0:
                if _BUILD.match(piece, place):
                    return piece[place : place + _OVERLAP]
                place = piece.find(_STRING, place + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    return None


def _pieces(file: int) -> Iterator[bytes]:
    tail = b""
    for offset in range(0, SCAN_BYTES, _CHUNK):
        data = os.pread(file, _CHUNK, offset)
        if not data:
            return
        yield tail + data
        tail = data[-_OVERLAP:]


def _from_wheel(path: str) -> Version | None:
    """The version of ``nvidia_nccl_cu12-….dist-info`` beside ``nvidia/nccl/lib``."""
    library = Path(path)
    if library.parent.parts[-3:] != ("nvidia", "nccl", "lib"):
        return None
    listing = read_patiently(
        str(library.parents[3]), limit_seconds=_READ_SECONDS, read=_nccl_wheels
    )
    versions = {_triple(name) for name in (listing or b"").decode("utf-8", "replace").split("\n")}
    known = [version for version in versions if version is not None]
    return known[0] if len(known) == 1 else None


def _nccl_wheels(folder: str) -> bytes | None:
    try:
        names = [path.name for path in Path(folder).glob("nvidia_nccl_cu*.dist-info")]
    except OSError:
        return None
    return "\n".join(name.partition("-")[2] for name in names).encode()


def _from_environment(environ: Mapping[str, str]) -> LoadedNccl | None:
    """What a container's image says of itself: a hint only."""
    version = _triple(environ.get("NCCL_VERSION", ""))
    return None if version is None else LoadedNccl(versions=(version,), method="environment")


def _triple(text: str) -> Version | None:
    match = _TRIPLE.match(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))
