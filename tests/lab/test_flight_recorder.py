"""The flight recorder of real PyTorch: a rank that misses a collective is named from its dumps."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from whyhang.collectors.flight_recorder import read_dumps
from whyhang.engine.cli.main import main

pytest.importorskip("torch")
pytestmark = pytest.mark.lab

LIMIT_SECONDS = 120.0
# Each rank writes its dump itself, as a job does whose collective has timed out.
PROGRAM = """
import os, sys, time
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

fault, world, place = sys.argv[1], 4, sys.argv[2]
# One import for all ranks: it is what takes long.
children = []
for rank in range(world):
    child = os.fork()
    if child == 0:
        break
    children.append(child)
else:
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))

dist.init_process_group("gloo", f"file://{place}/store", rank=rank, world_size=world)
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
values = torch.ones(8)
for _ in range(3):
    dist.all_reduce(values)
    dist.all_reduce(values, group=pairs[rank // 2])
works = []
if fault == "group" and rank != 3:
    works.append(dist.all_reduce(values, group=pairs[rank // 2], async_op=True))
    works.append(dist.all_reduce(values, async_op=True))
if fault == "world" and rank != 1:
    works.append(dist.all_reduce(values, async_op=True))
if fault == "transfer":
    if rank == 2:
        works.append(dist.irecv(values, src=3, tag=1))
    if rank != 3:
        works.append(dist.all_reduce(values.clone(), async_op=True))
time.sleep(1.0)
with open(f"{place}/dumps/trace_rank_{rank}", "wb") as file:
    file.write(c10d._dump_fr_trace())
os._exit(0)  # the works that never end would be waited for
"""


def run_job(fault: str, place: Path) -> None:
    """Run four ranks into a fault; each leaves its dump in ``place/dumps``."""
    (place / "dumps").mkdir()
    (place / "job.py").write_text(PROGRAM)
    environ = {"PATH": "/usr/bin:/bin", "TORCH_FR_BUFFER_SIZE": "200", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(place / "job.py"), fault, str(place)]
    with subprocess.Popen(command, env=environ, start_new_session=True) as job:
        try:
            assert job.wait(LIMIT_SECONDS) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.parametrize(("fault", "guilty"), [("world", 1), ("group", 3), ("transfer", 3)])
def test_the_rank_that_misses_a_collective_is_named(
    fault: str, guilty: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the whole job, in a group of two, or as the sender of a transfer: that rank alone."""
    run_job(fault, tmp_path)
    dumps, problems = read_dumps(tmp_path / "dumps")
    assert ([dump.rank for dump in dumps], problems) == ([0, 1, 2, 3], {})
    assert main(["fr", str(tmp_path / "dumps")]) == 0
    printed = capsys.readouterr().out
    assert f"suspects: {guilty}\n" in printed
