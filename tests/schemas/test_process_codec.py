"""Processes: what is written is read back, and what is odd is taken as it comes."""

from __future__ import annotations

import json

import pytest

from whyhang.schemas.errors import FormatError
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import BlockedOn, Dump, IoCounters, OsThread, Process
from whyhang.schemas.process_codec import ProcessReader, encode_process
from whyhang.schemas.stack import Stack, Thread

PROCESS = Process(
    pid=4250,
    node="gpu31",
    kind="trainer",
    rank=3,
    local_rank=3,
    ppid=4100,
    name="python3",
    cmdline=("python3", "train.py"),
    python="3.11.7",
    state="D",
    wchan="folio_wait_bit_common",
    syscall=0,
    blocked_on=BlockedOn(fd=7, call="read", path="/data/shard-3.bin"),
    kernel_stack=("folio_wait_bit_common",),
    cpu_seconds=812.4,
    io=IoCounters(read_bytes=1, write_bytes=2, rchar=3, wchar=4, syscr=5, syscw=6),
    tracer_pid=0,
    run_queue_seconds=0.4,
    cpus_allowed="0-7",
    os_threads=(OsThread(tid=4250, name="python3", state="D", wchan="x"),),
    dump=Dump(
        ok=True,
        tool="py-spy 0.4.3",
        mode="python",
        seconds=0.12,
        error="py-spy: native frames of a container cannot be read from outside",
        kind="namespace",
        cure="run inside the container",
    ),
    gpu_index=3,
    gpu_uuid="GPU-1",
    threads=(
        Thread(
            name="MainThread",
            tid=4250,
            active=False,
            owns_gil=False,
            stack=Stack(
                (
                    Frame("read", "libc.so.6", "libc.so.6", 0, "libc.so.6"),
                    Frame("f", "/a/b.py", "b.py", 7),
                )
            ),
        ),
    ),
)


def test_process_round_trips() -> None:
    """Every fact of a process survives writing and reading."""
    assert ProcessReader().process(encode_process(PROCESS)) == PROCESS


def test_absent_is_unknown() -> None:
    """A line with nothing but a pid is read, and nothing in it is zero."""
    process = ProcessReader().process(b'{"pid": 7}', node="gpu1")
    assert process.node == "gpu1"
    assert process.rank is None
    assert process.io is None
    assert process.cpu_seconds is None
    assert process.threads == Missing("no dump was taken")


def test_unknown_keys_and_words_are_taken() -> None:
    """Files of a later release are read as far as they are understood."""
    line = {"pid": 1, "kind": "quantum", "future": {"x": 1}, "wchan": "0", "state": None}
    process = ProcessReader().process(json.dumps(line).encode())
    assert process.kind == "other"
    assert process.wchan is None


def test_failed_dump_says_why() -> None:
    """An unread stack carries the reason of its dump."""
    line = {"pid": 1, "dump": {"ok": False, "error": "py-spy: permission denied"}, "threads": []}
    process = ProcessReader().process(json.dumps(line).encode())
    assert process.threads == Missing("py-spy: permission denied")


def test_addresses_lose_what_differs() -> None:
    """Leftover addresses become the library's name, so that ranks can be compared."""

    def stack(address: str) -> Stack:
        frame = {"name": address, "filename": "/lib/libc.so.6", "module": "/lib/libc.so.6"}
        line = {"pid": 1, "threads": [{"thread_name": "MainThread", "frames": [frame]}]}
        threads = ProcessReader().process(json.dumps(line).encode()).threads
        assert isinstance(threads, tuple)
        return threads[0].stack

    assert stack("0x7f0ca08a3f16") == stack("0x7fffe08a3f16")
    assert stack("0x7f0ca08a3f16").frames[0].name == "?libc.so.6"


def test_equal_stacks_are_one_object() -> None:
    """A reader keeps one object per distinct stack: cost follows diversity."""
    reader = ProcessReader()
    first, second = (reader.process(encode_process(PROCESS)).threads for _ in range(2))
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert first[0].stack is second[0].stack


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff\xfe"])
def test_garbage_is_a_format_error(data: bytes) -> None:
    """A torn line is one error of ours, never a foreign exception."""
    with pytest.raises(FormatError):
        ProcessReader().process(data)


def test_a_kernel_stack_as_proc_prints_it() -> None:
    """Addresses, offsets and modules around the kernel's functions are left out."""
    lines = [
        "[<0>] rwsem_down_read_slowpath+0x1e0/0x3a0",
        "[<0>] nv_ioctl+0x2/0x9 [nvidia]",
        "x",
        "",
    ]
    line = json.dumps({"pid": 1, "kernel_stack": lines}).encode()
    assert ProcessReader().process(line).kernel_stack == (
        "rwsem_down_read_slowpath",
        "nv_ioctl",
        "x",
    )
