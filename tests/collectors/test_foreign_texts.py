"""Texts without stacks are named, with what takes the user further."""

from __future__ import annotations

import pytest

from whyhang.collectors.foreign_texts import recognise

KERNEL = b"$ cat /proc/9/stack\n[<0>] folio_wait_bit_common+0x13d/0x350\n"
WATCHDOG = b"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "py-spy dump"),
        (b'process 9:"a.py";main (a.py:3);step (a.py:4) 300\n', "py-spy dump"),
        (b"P9;T9;a.py:main:3 1200\n\nP9;T9;a.py:main:4 3.5\n", "py-spy dump"),
        (b'{"version": "2.4", "pg_config": {}, "entries": []}', "whyhang fr"),
        (b"\x80\x02}q\x00", "whyhang fr"),
        (KERNEL, "whyhang collect"),
        (WATCHDOG, "whyhang fr"),
        (b"NCCL version 2.28.3 compiled with CUDA 13.0\n", "whyhang ras"),
        (b"Error: Failed to suspend process\n", "whyhang doctor"),
    ],
)
def test_what_a_text_is(text: bytes, remedy: str) -> None:
    """Each kind leads to the tool that reads it or to what is missing."""
    assert remedy in (recognise(text) or "")


@pytest.mark.parametrize(
    "text", [b"", b"step 3; loss 2.1; lr 0.1\nstep 4\nit hangs\n", b"\xff\xfe"]
)
def test_what_is_nothing_known(text: bytes) -> None:
    """Prose and plain logs are not taken for anything."""
    assert recognise(text) is None
