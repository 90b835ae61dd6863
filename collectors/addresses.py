"""Addresses in stripped libraries, made comparable between processes.

py-spy prints a native frame without a symbol as ``0x7f0ca08a3f16``, which differs in every process
because libraries are loaded at random places. Its place inside the file does not. It can only be
known while the process lives, so it is worked out right after the dump.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE
)
# Inside a JSON string a quote is escaped, so only a real key and its value match.
_UNRESOLVED = re.compile(rb'("name":\s*)"(0x[0-9a-fA-F]+)"')


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A range of addresses and the file that is mapped there, from ``offset`` on."""

    start: int
    end: int
    offset: int
    path: str


def parse_maps(maps: str) -> tuple[MappedFile, ...]:
    """The mappings of ``/proc/PID/maps`` that have a file or a name, by start address."""
    found = (
        MappedFile(int(start, 16), int(end, 16), int(offset, 16), path.removesuffix(" (deleted)"))
        for start, end, offset, path in _MAPPING.findall(maps)
        if path
    )
    return tuple(sorted(found, key=lambda mapping: mapping.start))


def locate(address: int, mappings: Sequence[MappedFile]) -> str | None:
    """``libc.so.6+0x8bf16``, the offset counted from the start of the file; None if unmapped."""
    index = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
    if index < 0 or address >= mappings[index].end:
        return None
    mapping = mappings[index]
    name = mapping.path.rsplit("/", 1)[-1]
    return f"{name}+{address - mapping.start + mapping.offset:#x}"


def resolve_addresses(dump: bytes, maps: str) -> bytes:
    """Rewrite the unresolved addresses of a ``py-spy dump --json``.

    Addresses outside of every mapping stay: the decoder makes ``?libname`` of them.
    """
    mappings = parse_maps(maps)

    def rewrite(match: re.Match[bytes]) -> bytes:
        place = locate(int(match.group(2), 16), mappings)
        return match.group(1) + json.dumps(place).encode() if place else match.group(0)

    return _UNRESOLVED.sub(rewrite, dump)
