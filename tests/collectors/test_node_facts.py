"""What the kernel tells of a node, from recorded files."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.bounded_child import run_bounded
from whyhang.collectors.facts_child import join_parts, read_parts
from whyhang.collectors.node_facts import (
    parse_diskstats,
    parse_kmsg,
    parse_meminfo,
    parse_mountinfo,
    parse_pressure,
    read_infiniband,
    read_kernel_log,
    read_mounts,
    read_pressure,
    read_shm,
)
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import KernelLine, PressureFacts

PRESSURE = """\
some avg10=12.50 avg60=3.25 avg300=0.13 total=103584606
full avg10=1.00 avg60=0.50 avg300=0.00 total=53646764
"""
DISKSTATS = """\
   7       0 loop0 9 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 1000 0 2000 5 3000 0 4000 6 7 8500 9 0 0 0 0 0 0
 259       1 nvme0n1p1 1000 0 2000 5 3000 0 4000 6 7 8500 9 0 0 0 0 0 0
   8       1 sda1 1 1 1 1 1 1 1 1 1 1 1
   8       0 sda 1 0 8 1 2 0 16 1 0 2 1
 253       3 dm-3 0 0 0 0 0 0 0 0 0 0 0
broken line
"""
MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:50 / /data\\040sets ro - nfs4 filer:/export rw,vers=4.2
41 27 0:51 / /lustre rw - lustre 10.0.0.1@o2ib:/fs rw
42 27 0:52 / /s3 rw - fuse.s3fs https://key:secret@bucket rw
43 27 0:53 / /lustre rw - lustre 10.0.0.2@o2ib:/fs rw
torn
"""
MEMINFO = "MemTotal:       1000 kB\nMemAvailable:    600 kB\nDirty:   5 kB\nOdd: x kB\n"


def test_pressure() -> None:
    """Averages of ten and sixty seconds, of some and of all tasks."""
    assert parse_pressure(PRESSURE) == PressureFacts(
        some_avg10=12.5, some_avg60=3.25, full_avg10=1.0, full_avg60=0.5
    )
    assert parse_pressure("nothing") is None


def test_disks_are_whole_ones_that_were_used() -> None:
    """Partitions, loop devices and idle ones are left out; sectors are 512 bytes."""
    disks = parse_diskstats(DISKSTATS)
    assert [disk.name for disk in disks] == ["nvme0n1", "sda"]
    first = disks[0]
    assert (first.reads, first.read_bytes) == (1000, 2000 * 512)
    assert (first.writes, first.write_bytes) == (3000, 4000 * 512)
    assert (first.in_flight, first.busy_seconds) == (7, 8.5)


def test_mounts_that_hold_files_of_users() -> None:
    """Pseudo file systems are left out, blanks are decoded, logins hidden, the top mount wins."""
    assert [(m.path, m.type, m.source) for m in parse_mountinfo(MOUNTS)] == [
        ("/", "ext4", "/dev/vda"),
        ("/data sets", "nfs4", "filer:/export"),
        ("/s3", "fuse.s3fs", "https://***@bucket"),
        ("/lustre", "lustre", "10.0.0.2@o2ib:/fs"),
    ]


def test_memory_is_in_bytes() -> None:
    """What the file does not tell is unknown."""
    memory = parse_meminfo(MEMINFO)
    assert (memory.total_bytes, memory.available_bytes) == (1000 * 1024, 600 * 1024)
    assert (memory.dirty_bytes, memory.swap_free_bytes) == (5 * 1024, None)


def test_infiniband_ports(tmp_path: Path) -> None:
    """State and counters of each port; a counter that is not there is not zero."""
    port = tmp_path / "mlx5_0" / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    (port / "hw_counters").mkdir()
    (port / "state").write_text("1: DOWN\n")
    (port / "phys_state").write_text("3: Disabled\n")
    (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    (port / "counters" / "link_downed").write_text("3\n")
    (port / "hw_counters" / "local_ack_timeout_err").write_text("17\n")
    (port / "counters" / "symbol_error").write_text("N/A\n")
    found = read_infiniband(tmp_path)
    assert not isinstance(found, Missing)
    (facts,) = found
    assert (facts.device, facts.port, facts.state) == ("mlx5_0", 1, "DOWN")
    assert (facts.physical_state, facts.rate) == ("Disabled", "400 Gb/sec (4X NDR)")
    assert facts.counters == {"link_downed": 3, "local_ack_timeout_err": 17}


def test_kernel_lines_that_tell_of_a_fault() -> None:
    """Newer ones only, with the time of day; continuation lines are left out."""
    xid = b"NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus"
    records = [
        b"6,1,1000000,-;" + xid + b"\n SUBSYSTEM=pci",
        b"6,2,90000000,-;" + xid + b"\n SUBSYSTEM=pci",
        b"6,3,91000000,-;EXT4-fs (loop0): mounted filesystem",
        b"garbage",
        b"4,4,x,-;INFO: task a:1 blocked for more than 120 seconds.",
    ]
    assert parse_kmsg(records, booted=1_780_000_000.0, since=50.0) == (
        KernelLine(
            line="NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus",
            at="2026-05-28T20:28:10+00:00",
        ),
    )


def test_what_is_not_there_says_why(tmp_path: Path) -> None:
    """Absent means unknown, with the reason."""
    for found in (
        read_pressure(tmp_path),
        read_mounts(tmp_path),
        read_infiniband(tmp_path / "x"),
        read_shm(str(tmp_path / "x")),
        read_kernel_log(str(tmp_path / "x")),
    ):
        assert isinstance(found, Missing) and found.reason


def test_this_host_can_be_read() -> None:
    """On a real kernel memory and shared memory are known, whatever else is missing."""
    facts = {name for part in read_parts(gpu=False) for name in part.__slots__
             if getattr(part, name)}  # fmt: skip
    assert {"memory", "shm"} <= facts


def test_parts_are_joined_and_torn_ones_left_out() -> None:
    """What the child had printed before it was killed counts."""
    text = '{"memory": {"total_bytes": 5}}\n{"unread": {"gpus": "none"}}\nnoise\n{"infini'
    facts = join_parts(text)
    assert facts.memory is not None and facts.memory.total_bytes == 5
    assert (facts.unread, facts.infiniband) == ({"gpus": "none"}, None)


@given(st.text(max_size=300))
def test_any_text_may_come(text: str) -> None:
    """Foreign files never raise."""
    parse_pressure(text)
    parse_diskstats(text)
    parse_mountinfo(text)
    parse_meminfo(text)
    join_parts(text)
    parse_kmsg([text.encode("utf-8", "surrogatepass")], booted=0.0, since=0.0)


@pytest.mark.integration
def test_a_child_that_hangs_is_left_with_what_it_said() -> None:
    """The limit holds, the output so far is there, and the child's children are gone."""
    script = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); "
        "print(p.pid, flush=True); time.sleep(60)"
    )
    started = time.monotonic()
    run = run_bounded([sys.executable, "-c", script], 3.0)
    assert time.monotonic() - started < 20
    assert run.status is None
    grandchild = int(run.stdout)
    deadline = time.monotonic() + 10
    while _is_alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(grandchild)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return False
    return state not in ("Z", "X")


@pytest.mark.integration
def test_a_child_that_cannot_start_is_data() -> None:
    """A missing program is a status, not an exception."""
    run = run_bounded(["/nowhere/at/all"], 1.0)
    assert (run.status, "could not start" in run.stderr) == (127, True)
    assert os.getpid()
