"""What RAS replies mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyhang.collectors.ras_replies import parse_report
from whyhang.engine.ras_reading import comm_sizes, is_our_job, join_ranks, owners, read_report
from whyhang.schemas.ras import RasReport

DATA = Path(__file__).parent.parent / "data" / "ras"


def report(name: str, *swaps: tuple[str, str]) -> RasReport:
    """A transcript, with texts replaced."""
    text = (DATA / f"{name}.txt").read_text()
    for old, new in swaps:
        text = text.replace(old, new)
    return parse_report(text.encode())


@pytest.mark.parametrize(
    ("name", "suspects"),
    [
        ("healthy", []),
        ("dead_ipv6", [("dead", None), ("incomplete", 5)]),
        ("unresponsive", [("incomplete", None), ("incomplete", 5), ("incomplete", 6)]),
        ("behind_none_launched", [("behind:Broadcast", 6), ("behind:Broadcast", 7)]),
        ("sum_2.25", [("behind:collective", 4)]),
        ("errors_of_two_phases", [("initialization:Unhandled CUDA error", 1)]),
        ("one_unknown_2.24", []),
        ("status_then_block_without_blank", []),
        ("many_dead", []),
        ("ghost", []),
        ("excerpt_without_headings", [("dead", None), ("behind:AllReduce", 5)]),
        ("json_crosswise", [("ahead:AllGather", 1), ("behind:AllReduce", 1)]),
        ("json_left_and_states", [("incomplete", 5), ("asynchronous:System error", 3)]),
        ("json_cut", [("behind:AllReduce", 2)]),
    ],
)
def test_suspects(name: str, suspects: list[tuple[str, int | None]]) -> None:
    """Ranks behind, gone or in error are named; those that only wait or only left are not."""
    found = read_report(report(name)).suspects
    assert [(suspect.reason, suspect.rank) for suspect in found] == suspects


def test_how_far_behind() -> None:
    """The distance to the foremost side is told for each operation."""
    found = read_report(report("behind_two_operations")).suspects
    assert [(s.reason, s.behind_by) for s in found] == [
        ("behind:AllGather", 1),
        ("behind:AllReduce", 88),
    ]


@pytest.mark.parametrize(
    ("name", "missing", "mismatch"),
    [
        ("healthy", 0, False),
        ("many_dead", 16, False),
        ("unresponsive", 2, False),
        ("several_gpus_nvml", 2, False),
        ("json_left_and_states", 1, False),
        ("sum_2.25", 0, True),
        ("ghost", 0, False),
        ("empty", None, None),
        ("collection_not_finished", None, None),
    ],
)
def test_counts(name: str, missing: int | None, mismatch: bool | None) -> None:
    """A dead process counts once for all its communicators; a cut reply tells nothing."""
    found = read_report(report(name))
    assert (found.missing, found.mismatch) == (missing, mismatch)


def test_counts_that_move_are_no_hang() -> None:
    """The job lives where a second reply shows other counts, or the first showed no mismatch."""
    first = report("behind_none_launched")
    later = report("behind_none_launched", ("operation 3", "operation 4"))
    assert read_report(first, first).mismatch
    assert read_report(first, first).suspects
    assert not read_report(later, first).mismatch
    assert not read_report(first, report("healthy")).suspects


def test_two_sides_of_one_size_name_nobody() -> None:
    """Half against half is a mismatch without a suspect."""
    found = read_report(report("status_then_block_without_blank"))
    assert found.mismatch
    assert found.suspects == ()


def test_join_by_pid_and_node() -> None:
    """Addresses become nodes by the pids they share; the same pid on two nodes is not mixed up."""
    trainers = {("a", 7000 + 3 * rank): rank for rank in range(4)}
    trainers |= {("b", 7000 + 3 * rank): rank for rank in range(4, 8)}
    joined = join_ranks(report("behind_none_launched"), trainers)
    assert joined == {("192.168.7.21", 7018): 6, ("192.168.7.21", 7021): 7}
    twins = {("a", 7018): 0, ("b", 7018): 1}
    assert join_ranks(report("behind_none_launched"), twins) == {}
    by_address = {("192.168.7.21", 7018): 6, ("c", 7018): 1}
    assert join_ranks(report("behind_none_launched"), by_address) == {("192.168.7.21", 7018): 6}


def test_identity_of_the_job() -> None:
    """A reply that names none of our processes, or another number of them, is another job's."""
    assert is_our_job(report("json_crosswise"), [7000]) is True
    assert is_our_job(report("json_crosswise"), [1, 2]) is False
    assert is_our_job(report("json_crosswise"), []) is None
    assert is_our_job(report("behind_none_launched"), [7018]) is True
    assert is_our_job(report("healthy"), [1], processes=8) is None
    assert is_our_job(report("healthy"), [1], processes=16) is False


def test_ghosts_own_nothing() -> None:
    """What a row that does not exist names is not used."""
    assert owners(report("ghost")) == {("192.168.7.20", 7009)}
    assert comm_sizes(report("ghost")) == {"00ab00000000beef": 4}
