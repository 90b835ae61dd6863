"""`show` and `compare`: the raw stacks of single processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from whyhang.engine.cli.main import main
from whyhang.renderers.raw_stacks import render_side_by_side, render_stacks
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack, Thread

Write = Callable[[Mapping[str, Any]], Path]
HUNG = {"trainers": {"*": "backward", 2: "data"}, "workers": {2: "worker_blocked"}}


def test_show_a_rank(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """All processes of a rank, innermost frames first; a kind narrows it down."""
    incident = write_incident(HUNG)
    assert main(["show", str(incident), "--rank", "2"]) == 0
    text = capsys.readouterr().out
    assert "rank 2 trainer, pid" in text
    assert "rank 2 dataloader" in text
    assert "rank 1" not in text
    assert text.index("_try_get_data") < text.index("train.py:70")
    main(["show", str(incident), "--rank", "2", "--kind", "trainer"])
    assert "dataloader 0, pid" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "--rank", "99"], "ranks: 0-3"),
        (["show", "--sample", "9"], "samples: 0, 1"),
        (["compare", "2", "gpu31"], "write 3, or 3@0"),
        (["compare", "2", "3@9"], "samples: 0, 1"),
    ],
)
def test_what_is_not_there_is_explained(
    write_incident: Write, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """Exit status 2, and what there is."""
    incident = write_incident(HUNG)
    assert main([words[0], str(incident), *words[1:]]) == 2
    assert told in capsys.readouterr().err


def test_compare_two_ranks(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """What is equal stands on one row, what differs is marked; both ranks are named."""
    incident = write_incident(HUNG)
    assert main(["compare", str(incident), "1", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "rank 1 trainer" in lines[0]
    assert "rank 2 trainer" in lines[0]
    (common,) = (line for line in lines if "main (train.py:60)" in line)
    assert common.count("train.py:60") == 2
    assert " | " not in common
    (odd,) = (line for line in lines if "_engine_run_backward" in line)
    assert " | " in odd


def test_one_rank_at_two_times(write_incident: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A rank that stands still differs in nothing."""
    incident = write_incident(HUNG)
    assert main(["compare", str(incident), "2@0", "2@1"]) == 0
    assert " | " not in capsys.readouterr().out


def process(*frames: str, threads: tuple[Thread, ...] | Missing | None = None) -> Process:
    """A process of one thread."""
    stack = Stack(tuple(Frame(name, "/x/a.py", "a.py", 7) for name in frames))
    found = (Thread(name="MainThread", tid=1, stack=stack, owns_gil=True),)
    return Process(pid=1, node="n", kind="trainer", rank=0, threads=threads or found)


def test_names_from_outside_are_harmless() -> None:
    """Escapes in names do not reach the terminal, and no column is wider than it may be."""
    wild = process("evil\x1b[2Jname" + "x" * 200)
    for lines in (render_stacks([wild]), render_side_by_side(wild, process("b"), width=80)):
        text = list(lines)
        assert not any("\x1b" in line for line in text)
    assert all(len(line) <= 80 for line in render_side_by_side(wild, wild, width=80))


def test_an_unread_stack_says_why() -> None:
    """Neither form passes over a process that could not be read."""
    unread = process(threads=Missing("permission denied"))
    assert any("permission denied" in line for line in render_stacks([unread]))
    assert any("permission denied" in line for line in render_side_by_side(unread, process("a")))


def test_two_threads_of_one_name() -> None:
    """Both are shown."""
    thread = Thread(name="pool", tid=2, stack=Stack((Frame("work", "/x/a.py", "a.py", 1),)))
    two = process(threads=(thread, thread))
    assert sum("work (a.py:1)" in line for line in render_side_by_side(two, process("a"))) == 2
