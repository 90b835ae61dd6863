"""RAS and flight recorder facts of an incident, and reading them from its directory."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whyhang.collectors.ras_replies import parse_report
from whyhang.engine.comm_facts import CommFacts
from whyhang.engine.evaluate import Evaluator
from whyhang.engine.facts import Facts
from whyhang.engine.incidents import read_evidence
from whyhang.engine.positions import Positions
from whyhang.engine.world import World
from whyhang.rules.load import load_ruleset
from whyhang.rules.parse import parse_expr
from whyhang.schemas.flight_recorder import FlightDump, FlightEntry, FlightGroup
from whyhang.schemas.incident import Incident, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.ras import RasReport

DATA = Path(__file__).parent.parent / "data" / "ras"
Write = Callable[[Mapping[str, Any]], Path]


def reply(name: str) -> RasReport:
    """A transcript."""
    return parse_report((DATA / f"{name}.txt").read_bytes())


def incident(
    *replies: RasReport, flight: tuple[FlightDump, ...] = (), seen: bool = True
) -> Incident:
    """An incident of eight ranks on two nodes, with the pids of the transcripts."""
    trainers = tuple(
        Process(pid=7000 + 3 * rank, node=f"n{rank // 4}", kind="trainer", rank=rank)
        for rank in range(8)
    )
    sample = Snapshot(index=0, at="", monotonic_seconds=0.0, processes=trainers if seen else ())
    return Incident(print_id=None, world_size=8, samples=(sample,), ras=replies, flight=flight)


def flight(rank: int, *, came: bool = True, size: int = 4) -> FlightDump:
    """A rank that waits in a collective of all eight, or never came to it."""
    entry = FlightEntry(
        record=1, group="0", op="nccl:all_reduce", seq=2, input_sizes=((size,),), created_ns=1
    )
    before = FlightEntry(record=0, group="0", op="nccl:all_reduce", seq=1, state="completed")
    return FlightDump(
        rank=rank,
        groups=(FlightGroup(name="0", ranks=tuple(range(8))),),
        entries=(before, entry) if came else (before,),
    )


def test_ranks_behind_by_process() -> None:
    """The ranks whose processes are behind are named, all others are known not to be."""
    facts = CommFacts(incident(reply("behind_none_launched")))
    assert (facts.ras_known(), facts.ras_mismatch(), facts.ras_missing()) == (True, True, 0)
    assert [rank for rank in range(8) if facts.ras_behind(rank) is True] == [6, 7]
    assert facts.ras_behind(0) is False


def test_ranks_behind_by_number() -> None:
    """Without processes the numbers of a communicator of all ranks stand for the ranks."""
    facts = CommFacts(incident(reply("behind_none_launched"), seen=False))
    assert facts.ras_behind(6) is True
    whole = replace(incident(reply("behind_none_launched"), seen=False), world_size=16)
    assert isinstance(CommFacts(whole).ras_behind(6), Missing)


def test_unnamed_sides_stay_unknown() -> None:
    """Where NCCL names nobody, no rank is behind and none is not."""
    facts = CommFacts(incident(reply("status_then_block_without_blank")))
    assert facts.ras_mismatch() is True
    assert isinstance(facts.ras_behind(0), Missing)


def test_without_a_reply() -> None:
    """No reply is unknown, with the reason of the source, never a verdict."""
    facts = CommFacts(incident())
    for answer in (facts.ras_known(), facts.ras_mismatch(), facts.ras_missing()):
        assert isinstance(answer, Missing)
    assert isinstance(facts.ras_behind(1), Missing)
    assert isinstance(CommFacts(incident(reply("empty"))).ras_mismatch(), Missing)


def test_another_job_answered() -> None:
    """A reply of another job at the shared port is not used."""
    other = replace(incident(reply("json_crosswise")), samples=incident(seen=False).samples)
    assert CommFacts(other).ras_known() is True
    foreign = replace(
        other,
        samples=(
            Snapshot(
                index=0,
                at="",
                monotonic_seconds=0.0,
                processes=(Process(pid=5, node="n0", kind="trainer", rank=0),),
            ),
        ),
    )
    answer = CommFacts(foreign).ras_known()
    assert isinstance(answer, Missing)
    assert "another job" in answer.reason


def test_moving_counts() -> None:
    """Two replies with different counts belong to a job that lives."""
    facts = CommFacts(incident(reply("healthy"), reply("behind_none_launched")))
    assert facts.ras_mismatch() is False
    assert facts.ras_behind(6) is False


def test_flight_recorder() -> None:
    """The rank that never came is behind; one without a dump is unknown."""
    dumps = tuple(flight(rank, came=rank != 3) for rank in range(7))
    facts = CommFacts(incident(flight=dumps))
    assert [rank for rank in range(8) if facts.fr_behind(rank) is True] == [3]
    assert facts.fr_behind(0) is False
    assert isinstance(facts.fr_behind(7), Missing)
    assert isinstance(CommFacts(incident()).fr_behind(0), Missing)


def test_sizes() -> None:
    """The smaller side differs; with two equal sides both do."""
    odd = CommFacts(incident(flight=tuple(flight(r, size=4 + (r == 2)) for r in range(8))))
    assert [rank for rank in range(8) if odd.fr_sizes_differ(rank) is True] == [2]
    even = CommFacts(incident(flight=tuple(flight(r, size=4 + r % 2) for r in range(8))))
    assert all(even.fr_sizes_differ(rank) is True for rank in range(8))
    assert even.fr_behind(0) is False


def test_files_of_an_incident(write_incident: Write) -> None:
    """Replies are read in the order of their numbers, dumps by rank; damage becomes a problem."""
    directory = write_incident({"trainers": {"*": "backward", 2: "data"}})
    replies = directory / "nccl_ras"
    replies.mkdir()
    shutil.copy(DATA / "healthy.txt", replies / "2.txt")
    shutil.copy(DATA / "json_crosswise.txt", replies / "10.json")
    shutil.copy(DATA / "client_refused.txt", replies / "11.txt")
    dumps = directory / "fr"
    dumps.mkdir()
    (dumps / "0").write_bytes(pickle.dumps({"version": "2.9", "entries": []}, 2))
    (dumps / "1").write_bytes(b"\x80\x02cos\nsystem\n.")
    found = read_evidence(directory)
    assert [report.version for report in found.ras] == ["2.29.7", "2.30.7"]
    assert [dump.rank for dump in found.flight] == [0]
    reason = found.sources["files"].reason or ""
    assert "nccl_ras/11.txt: not a report" in reason
    assert "fr/1: refused: it holds a global" in reason


@pytest.mark.parametrize(
    ("text", "with_reply", "without"),
    [
        ("ras is known", "true", "false"),
        ("ras.mismatch and ras.missing == 0", "true", "unknown"),
        ("exactly 2 ranks are ras.behind", "true", "unknown"),
        ("any rank is (fr.behind or fr.sizes_differ)", "unknown", "unknown"),
    ],
)
def test_in_rules(text: str, with_reply: str, without: str) -> None:
    """Rules ask these facts; without a reply they are unknown, never false."""
    ruleset = load_ruleset()

    def answer(given: Incident) -> str:
        facts = Facts(World(given), Positions(ruleset.lists))
        return Evaluator(ruleset, facts).truth(parse_expr(text)).one().value

    assert answer(incident(reply("behind_none_launched"))) == with_reply
    assert answer(incident()) == without


@pytest.mark.parametrize("folder", ["nccl_ras", "fr"])
def test_a_file_in_place_of_a_folder(write_incident: Write, folder: str) -> None:
    """An incident with something else there is still read."""
    directory = write_incident({"trainers": {"*": "backward"}})
    (directory / folder).write_text("x")
    found = read_evidence(directory)
    assert (found.ras, found.flight) == ((), ())
