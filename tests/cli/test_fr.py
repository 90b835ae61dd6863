"""`whyhang fr DIR`."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main

GLOO_JOB = """
import os, sys, time
import torch
import torch.distributed as dist

rank, folder = int(sys.argv[1]), sys.argv[2]
store = dist.FileStore(folder + "/store", 3)
dist.init_process_group("gloo", rank=rank, world_size=3, store=store)
half = dist.new_group([0, 1])
x = torch.ones(4)
dist.all_reduce(x)
if rank == 0:
    dist.send(x, 1)
if rank == 1:
    dist.recv(x, 0)
if rank < 2:
    dist.broadcast(x, 0, group=half)
dist.barrier()
work = dist.all_reduce(x, async_op=True) if rank != 2 else None
time.sleep(1)
dump = torch._C._distributed_c10d._dump_fr_trace()
with open(f"{folder}/_dump_{rank}", "wb") as file:
    file.write(dump)
store.set(f"done{rank}", "1")
store.wait(["done0", "done1", "done2"])
os._exit(0)
"""


def write(folder: Path, rank: int, *ops: tuple[str, str], size: int = 4) -> None:
    """A dump of a rank: operations with their states."""
    entries = [
        {
            "record_id": number,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "profiling_name": name,
            "state": state,
            "input_sizes": [[size]],
            "frames": [{"name": "step", "filename": "train.py", "line": 7}],
        }
        for number, (name, state) in enumerate(ops)
    ]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    found: dict[str, Any] = {"version": "2.9", "pg_config": config, "entries": entries}
    (folder / f"_dump_{rank}").write_bytes(pickle.dumps(found, 2))


DONE, OPEN = ("nccl:all_reduce", "completed"), ("nccl:all_reduce", "scheduled")


@pytest.fixture
def missing(tmp_path: Path) -> Path:
    """Rank 2 of four never came to the second collective; the dump of rank 3 is damaged."""
    for rank in (0, 1, 2):
        write(tmp_path, rank, *([DONE, OPEN] if rank != 2 else [DONE]))
    (tmp_path / "_dump_3").write_bytes(b"\x80")
    return tmp_path


def test_json(missing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document names suspects, groups with their last collectives, and what was not read."""
    assert main(["fr", str(missing), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["suspects"]["rank_list"] == [2]
    assert document["suspects"]["reasons"][0]["reason"] == "missing"
    assert document["suspects"]["reasons"][0]["waiting"] == "0-1"
    assert (document["ranks"], document["unread"], document["world_size"]) == ("0-2", "3", 4)
    assert document["problems"] == {"3": "_dump_3: cut or damaged"}
    (group,) = document["groups"]
    assert (group["name"], group["description"], group["ranks"]) == ("0", "default_pg", "0-3")
    assert [group["last"][str(rank)]["enqueued"] for rank in range(3)] == [2, 2, 1]
    assert document["waiting"][0]["op"] == "nccl:all_reduce"
    assert document["waiting"][0]["frames"] == ["step train.py:7"]


def test_text(missing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People read who waits in what, and for whom."""
    assert main(["fr", str(missing)]) == 0
    out = capsys.readouterr().out
    assert "0-1: nccl:all_reduce in group 0 (default_pg), collective 2" in out
    assert "2: nothing unfinished" in out
    assert "suspects: 2\n" in out


def test_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes that differ are shown by side."""
    for rank in range(4):
        write(tmp_path, rank, OPEN, size=5 if rank == 1 else 4)
    assert main(["fr", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "ranks differ in group 0 (default_pg), collective 1:" in out
    assert "suspects: 1\n" in out


def test_nobody_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all have come, GPUs and network are pointed at, no rank."""
    for rank in range(4):
        write(tmp_path, rank, OPEN)
    assert main(["fr", str(tmp_path)]) == 0
    assert "suspects: none can be named" in capsys.readouterr().out


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_no_dumps(tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory without dumps is wrong use, with the way to get some."""
    assert main(["fr", str(tmp_path / folder)]) == 2
    assert "whyhang:" in capsys.readouterr().err


@pytest.mark.lab
def test_gloo_records_of_a_real_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's own gloo records name the rank that did not come, transfers notwithstanding."""
    pytest.importorskip("torch")
    script = tmp_path / "job.py"
    script.write_text(GLOO_JOB)
    environ = {"TORCH_FR_BUFFER_SIZE": "200", "PATH": "/usr/bin:/bin", "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(tmp_path)], env=environ)
        for rank in range(3)
    ]
    try:
        assert [process.wait(timeout=60) for process in ranks] == [0, 0, 0]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    (tmp_path / "store").unlink()
    assert main(["fr", str(tmp_path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["suspects"]["rank_list"] == [2]
    assert {waiting["op"] for waiting in document["waiting"]} == {"gloo:all_reduce"}
