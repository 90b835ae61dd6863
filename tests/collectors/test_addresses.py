"""Addresses that become comparable between processes."""

from __future__ import annotations

import json

import pytest

from whyhang.collectors.addresses import locate, parse_maps, resolve_addresses
from whyhang.schemas.stack_codec import decode_threads

MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 1 /usr/bin/python3.11
7f0ca0800000-7f0ca0828000 r--p 00000000 08:01 2                          /lib/x/libc.so.6
7f0ca0828000-7f0ca09b0000 r-xp 00028000 08:01 2                          /lib/x/libc.so.6
7f0ca0a00000-7f0ca0b00000 rw-p 00000000 00:00 0
7f0ca0c00000-7f0ca0c10000 r-xp 00000000 08:01 3   /opt/my lib/libnccl.so.2 (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
"""


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0x7F0CA08A3F16, "libc.so.6+0xa3f16"),
        (0x7F0CA0828000, "libc.so.6+0x28000"),
        (0x7F0CA09B0000, None),
        (0x7F0CA0A00010, None),
        (0x7F0CA0C00010, "libnccl.so.2+0x10"),
        (0x7FFD00000001, "[vdso]+0x1"),
        (0x1, None),
    ],
)
def test_an_address_is_its_place_in_the_file(address: int, place: str | None) -> None:
    """The offset counts from the start of the file; what no file maps has no place."""
    assert locate(address, parse_maps(MAPS)) == place


def _dump(*names: str) -> bytes:
    frames = [{"name": n, "filename": "/l/libc.so.6", "module": "/l/libc.so.6"} for n in names]
    thread = {"thread_name": 'x "name": "0x7f0ca08a3f16"', "os_thread_id": 1, "frames": frames}
    return json.dumps([thread]).encode()


def test_a_dump_is_rewritten_before_it_is_decoded() -> None:
    """Addresses become places, unmapped ones ?libname, and nothing else changes."""
    dump = resolve_addresses(_dump("0x7f0ca08a3f16", "0x10", "poll"), MAPS)
    (thread,) = decode_threads(dump)
    assert [frame.name for frame in thread.stack.frames] == [
        "libc.so.6+0xa3f16",
        "?libc.so.6",
        "poll",
    ]
    assert thread.name == 'x "name": "0x7f0ca08a3f16"'


def test_without_maps_no_address_is_left() -> None:
    """A process that is gone leaves ?libname, equal on every rank."""
    (thread,) = decode_threads(resolve_addresses(_dump("0x7f0ca08a3f16"), ""))
    assert thread.stack.frames[0].name == "?libc.so.6"
