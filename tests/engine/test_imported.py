"""Loose dumps become an incident of one sample."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from whyhang.engine import imported
from whyhang.engine.dump_names import node_in, rank_in, ranks_of
from whyhang.engine.imported import read_dumps
from whyhang.engine.incidents import read_evidence
from whyhang.schemas.errors import UsageError
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process

TEXT = (
    "Process {pid}: python train.py --token hunter2\nPython v3.11.7 (/usr/bin/python3)\n\n"
    'Thread {pid} (idle): "MainThread"\n    {frame}\n    main (train.py:9)\n'
)
WAIT = "all_reduce (torch/distributed/distributed_c10d.py:44)"
WORKER = (
    "    get (multiprocessing/queues.py:1)\n"
    "    _worker_loop (torch/utils/data/_utils/worker.py:3)\n"
)
JSON = json.dumps(
    [
        {
            "os_thread_id": 77,
            "thread_name": "MainThread",
            "frames": [{"name": "load", "filename": "/p/data.py", "line": 3}],
        }
    ]
)


def processes(incident: Incident) -> tuple[Process, ...]:
    """The processes of the one sample."""
    (sample,) = incident.samples
    return sample.processes


@pytest.mark.parametrize(
    ("stem", "rank"),
    [
        ("rank3", 3),
        ("3", 3),
        ("worker-0-gpu-3", 3),
        ("dump_12", 12),
        ("node2.rank-07", 7),
        ("node1_rank3", 3),
        ("py-spy-12", 12),
        ("rank3_local_rank1", 3),
        ("stacks", None),
        ("rank" + "9" * 30, None),
    ],
)
def test_the_rank_of_a_file_name(stem: str, rank: int | None) -> None:
    """The number after `rank`, after `gpu`, else the last one; absurd ones are none."""
    assert rank_in(stem) == rank


def test_text_and_json_stand_side_by_side(tmp_path: Path) -> None:
    """A directory may hold both; names carry the ranks."""
    (tmp_path / "rank0.txt").write_text(TEXT.format(pid=5, frame=WAIT))
    (tmp_path / "worker-0-gpu-1.json").write_text(JSON)
    (tmp_path / "notes.rst").write_text("Thread 1 (idle)")
    incident = read_evidence(tmp_path)
    assert incident.trigger == "import" and incident.print_id is None
    assert [(p.rank, p.pid, p.kind) for p in processes(incident)] == [
        (0, 5, "trainer"),
        (1, 77, "trainer"),
    ]
    assert "hunter2" not in repr(incident)
    assert incident.sources["stacks"].ok


def test_a_file_with_a_trainer_and_its_worker(tmp_path: Path) -> None:
    """The name's rank is the trainer's; its worker is a dataloader of that rank."""
    worker = f'\nProcess 9: python train.py\n\nThread 9 (idle): "MainThread"\n{WORKER}'
    (tmp_path / "rank4.txt").write_text(TEXT.format(pid=5, frame=WAIT) + worker)
    assert [(p.rank, p.pid, p.kind, p.worker) for p in processes(read_dumps(tmp_path))] == [
        (4, 5, "trainer", None),
        (4, 9, "dataloader", 0),
    ]


def test_one_file_pasted_from_several_ranks(tmp_path: Path) -> None:
    """Headings name the ranks; a heading of several ranks makes a process of each."""
    paste = tmp_path / "ticket-4711.txt"
    paste.write_text(f"Ranks 0,2-3:\n    {WAIT}\n\nRank 1 (stuck):\n    load (data.py:3)\n")
    incident = read_evidence(paste)
    assert sorted((p.rank, p.kind) for p in processes(incident)) == [
        (0, "trainer"),
        (1, "trainer"),
        (2, "trainer"),
        (3, "trainer"),
    ]
    assert str(incident.nodes[0].ranks) == "0-3"
    assert len({p.pid for p in processes(incident)}) == 4


def test_without_any_rank_they_are_numbered_and_it_is_said(tmp_path: Path) -> None:
    """Processes that no heading ranks are numbered in their order, never dropped."""
    paste = tmp_path / "paste.txt"
    paste.write_text(TEXT.format(pid=5, frame=WAIT) + "\n" + TEXT.format(pid=6, frame=WAIT))
    incident = read_evidence(paste)
    assert [(p.rank, p.pid) for p in processes(incident)] == [(0, 5), (1, 6)]
    assert "numbered" in (incident.sources["stacks"].reason or "")


def test_counted_groups_keep_their_number(tmp_path: Path) -> None:
    """`3 in:` stands for three processes."""
    paste = tmp_path / "paste.txt"
    paste.write_text(f"3 in:\n    {WAIT}\n\n1 in:\n    load (data.py:3)\n")
    assert len(processes(read_dumps(paste))) == 4


def test_a_failed_dump_is_unread(tmp_path: Path) -> None:
    """The rank whose dump failed keeps the reason and makes its node partial."""
    (tmp_path / "rank0.txt").write_text(TEXT.format(pid=5, frame=WAIT))
    (tmp_path / "rank1.txt").write_text("Process 6: python train.py\nError: Permission denied\n")
    incident = read_dumps(tmp_path)
    failed = processes(incident)[1]
    assert isinstance(failed.threads, Missing) and "Permission denied" in failed.threads.reason
    assert (incident.nodes[0].status, str(incident.nodes[0].unread)) == ("partial", "1")


def test_files_named_for_nodes(tmp_path: Path) -> None:
    """`trace-gpu31.out` holds the processes of one node."""
    for name in ("gpu31", "gpu32"):
        heading = "===== rank {} =====\n".format(0 if name == "gpu31" else 1)
        text = heading + TEXT.format(pid=5, frame=WAIT)
        (tmp_path / f"trace-{name}.out").write_text(text)
    incident = read_dumps(tmp_path)
    assert [(n.name, str(n.ranks)) for n in incident.nodes] == [("gpu31", "0"), ("gpu32", "1")]


@pytest.mark.timeout(10)
def test_own_reports_are_no_dumps(tmp_path: Path) -> None:
    """What `diagnose --write` left beside the dumps is not taken for dumps that failed."""
    (tmp_path / "rank0.txt").write_text(TEXT.format(pid=1, frame=WAIT))
    for name in ("diagnosis.md", "verdict.json", "report.txt"):
        (tmp_path / name).write_text("{}")
    incident = read_dumps(tmp_path)
    assert incident.sources["stacks"].ok
    assert len(processes(incident)) == 1


def test_a_pipe_among_the_files_is_not_opened(tmp_path: Path) -> None:
    """Only regular files are read: a pipe without a writer would never end."""
    os.mkfifo(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text(JSON)
    assert [p.rank for p in processes(read_dumps(tmp_path))] == [1]


def test_what_holds_no_stacks_is_refused(tmp_path: Path) -> None:
    """A wrong path is the user's mistake, and the message names what would be right."""
    (tmp_path / "a.txt").write_text("nothing here")
    with pytest.raises(UsageError, match="nor stacks") as refusal:
        read_dumps(tmp_path)
    assert "py-spy dump" in (refusal.value.hint or "")
    with pytest.raises(UsageError):
        read_evidence(tmp_path / "absent")


def test_json_that_is_no_dump_costs_that_file(tmp_path: Path) -> None:
    """Other dumps are still read; the broken one is named."""
    (tmp_path / "rank0.json").write_text('[{"frames": 3}]')
    (tmp_path / "rank1.json").write_text(JSON)
    incident = read_dumps(tmp_path)
    assert [p.rank for p in processes(incident)] == [1]
    assert "rank0.json" in (incident.sources["stacks"].reason or "")


def test_machines_and_their_gpus_are_counted_through() -> None:
    """GPU 1 of machine 1 is no rank 1 where machine 0 has a GPU 1 as well."""
    names = [Path(f"worker-{worker}-gpu-{gpu}.json") for worker in (0, 1) for gpu in (0, 1, 2)]
    assert list(ranks_of(names).values()) == [0, 1, 2, 3, 4, 5]
    assert list(ranks_of(names[3:]).values()) == [0, 1, 2]
    assert (
        list(ranks_of([Path("node0_local_rank1.txt"), Path("node1_local_rank1.txt")]).values())[1]
        == 3
    )
    assert node_in("node1_rank3") == "node1"
    assert node_in("rank3") is None


def test_two_files_of_one_rank_and_junk_are_told(tmp_path: Path) -> None:
    """The first file of a rank counts; the second, and what is no dump, stand in the sources."""
    for name in ("rank3.txt", "rank3-again.txt", "rank4.txt"):
        (tmp_path / name).write_text(TEXT.format(pid=5, frame=WAIT))
    (tmp_path / "rank5.log").write_bytes(b"\x00\xff\x7fELF" * 100)
    (tmp_path / "rank6.txt").write_text("")
    incident = read_dumps(tmp_path)
    assert [p.rank for p in processes(incident) if p.kind == "trainer"] == [3, 4]
    told = incident.sources["stacks"].reason or ""
    assert "rank3.txt: rank 3 was read from rank3-again.txt" in told
    assert "rank5.log" in told and "rank6.txt" in told


def test_files_of_a_machine_carry_its_name(tmp_path: Path) -> None:
    """`node1_rank3.txt` tells both."""
    (tmp_path / "node1_rank3.txt").write_text(TEXT.format(pid=5, frame=WAIT))
    assert [(n.name, str(n.ranks)) for n in read_dumps(tmp_path).nodes] == [("node1", "3")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_files_with_a_byte_order_mark_are_read(encoding: str, tmp_path: Path) -> None:
    """As editors and shells of other systems write them."""
    (tmp_path / "rank0.txt").write_bytes(TEXT.format(pid=5, frame=WAIT).encode(encoding))
    (tmp_path / "rank1.json").write_bytes(JSON.encode(encoding))
    assert [p.rank for p in processes(read_dumps(tmp_path))] == [0, 1]


def test_more_processes_than_a_job_has_are_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heading of many ranks, many times over, does not fill the memory."""
    monkeypatch.setattr(imported, "MAX_PROCESSES", 500)
    (tmp_path / "rank.txt").write_text(f"ranks 0-300:\n    {WAIT}\n\n" * 400)
    assert len(processes(read_dumps(tmp_path))) == 500


def test_children_have_the_rank_of_their_parent(tmp_path: Path) -> None:
    """A worker in a dump of subprocesses is told from those of other ranks by its parent."""
    heads = '### rank {rank}\nProcess {pid}: python a.py\nThread {pid} (idle): "MainThread"\n'
    worker = (
        "    get (queues.py:1)\n\nProcess {child}: python a.py\nParent Process {pid}: python a.py\n"
        'Thread {child} (idle): "MainThread"\n    get (multiprocessing/queues.py:1)\n'
        "    _worker_loop (torch/utils/data/_utils/worker.py:275)\n"
    )
    text = "".join((heads + worker).format(rank=r, pid=10 + r, child=20 + r) for r in (0, 1))
    (tmp_path / "paste.txt").write_text(text)
    read = processes(read_dumps(tmp_path / "paste.txt"))
    assert [(p.rank, p.kind, p.pid) for p in read] == [
        (0, "trainer", 10),
        (0, "dataloader", 20),
        (1, "trainer", 11),
        (1, "dataloader", 21),
    ]


def test_the_traceback_of_a_launcher_is_no_rank(tmp_path: Path) -> None:
    """What torchrun prints when a rank has failed tells nothing of where a rank stands."""
    paste = tmp_path / "paste.txt"
    paste.write_text(
        "Traceback (most recent call last):\n"
        '  File "/usr/local/bin/torchrun", line 8, in <module>\n'
        '  File "/x/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    )
    (process,) = processes(read_dumps(paste))
    assert (process.kind, process.rank) == ("launcher", None)


def test_a_text_of_another_kind_is_named(tmp_path: Path) -> None:
    """The refusal tells what was given, and what reads it."""
    paste = tmp_path / "paste.txt"
    paste.write_text("main (a.py:1);step (a.py:2) 30\n")
    with pytest.raises(UsageError, match="a profile over time"):
        read_dumps(paste)


def test_json_dumps_one_after_another(tmp_path: Path) -> None:
    """Headings between the dumps of several processes tell whose each is."""
    paste = tmp_path / "paste.md"
    paste.write_text("".join(f"### rank {rank}\n```json\n{JSON}\n```\n" for rank in (3, 5)))
    assert [p.rank for p in processes(read_dumps(paste))] == [3, 5]
    paste.write_text(f"{JSON}\n{JSON}\n[1, 2\n")
    assert [p.rank for p in processes(read_dumps(paste))] == [0, 1]


def test_a_process_that_occurs_twice_is_told(tmp_path: Path) -> None:
    """Without ranks nobody can say whether it is another machine's or was dumped again."""
    paste = tmp_path / "paste.txt"
    paste.write_text(TEXT.format(pid=5, frame=WAIT) * 2)
    assert "process 5 occurs more than once" in (read_dumps(paste).sources["stacks"].reason or "")
    paste.write_text(TEXT.format(pid=5, frame=WAIT) + TEXT.format(pid=6, frame=WAIT))
    assert "occurs" not in (read_dumps(paste).sources["stacks"].reason or "")
