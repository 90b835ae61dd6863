"""The function report."""

from __future__ import annotations

from dataclasses import replace

from whyhang.renderers.function_report import Sources, analysis_time, render_function_report
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.incident import Incident


def test_golden(diagnosis: Diagnosis, txt_file: object) -> None:
    """The reports of the hand-built diagnoses."""
    lines = render_function_report(diagnosis.tree, diagnosis.incident)
    assert "\n".join(lines) + "\n" == txt_file


def test_the_most_frequent_function_comes_first(local: Diagnosis) -> None:
    """Counts fall from top to bottom, and each counts the threads that show the function."""
    lines = list(render_function_report(local.tree, local.incident))
    counts = [int(line.rpartition(" ")[2]) for line in lines if line.startswith("  Call Count")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 17  # <module>: 8 trainers, 8 workers, the launcher
    at = lines.index("read_shard /workspace/data.py:88")
    assert lines[at + 1 : at + 3] == ["  Call Count: 1", "  Sources: gpu31-rank3"]


def test_a_recursion_counts_once(local: Diagnosis) -> None:
    """However often a function recurs in a thread, it is one call."""
    assert local.tree is not None
    stack = local.tree.stacks[0]
    deep = replace(stack, frames=(stack.frames[0],) * 5)
    tree = replace(local.tree, stacks=(deep,))
    lines = list(render_function_report(tree, local.incident))
    assert f"  Call Count: {stack.count}" in lines
    assert sum("Call Count" in line for line in lines) == 1


def test_sources_of_large_jobs_are_compressed_but_complete() -> None:
    """Few sources are listed one by one, many as runs, and no process is left out."""
    few = [f"gpu31-rank{rank}" for rank in range(3)]
    assert list(Sources.of(few).join()) == few
    many = [f"n{rank // 8}-rank{rank}" for rank in range(64) if rank != 9] + ["n0-pid77"]
    assert list(Sources.of(many).join())[:3] == ["n0-rank0..7", "n1-rank8", "n1-rank10..15"]
    assert list(Sources.of(many).join())[-1] == "n0-pid77"


def test_analysis_time_is_the_end_of_the_collection_in_utc() -> None:
    """Other time zones are converted, a Z is read on every Python, the unknown stays unknown."""
    made = Incident(print_id=None, finished_at="2026-06-08T05:49:05+02:00")
    assert analysis_time(made) == "2026-06-08 03:49:05 UTC"
    assert analysis_time(replace(made, finished_at="2026-06-08T03:49:05Z")) == (
        "2026-06-08 03:49:05 UTC"
    )
    assert analysis_time(Incident(print_id=None)) == "unknown"


def test_a_report_without_stacks_says_so(local: Diagnosis) -> None:
    """Where nothing was read there is still a report."""
    lines = list(render_function_report(None, local.incident))
    assert lines[0] == "Stack Trace Analysis Report"
    assert lines[-1] == "No stacks were read."
