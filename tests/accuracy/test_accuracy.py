"""The floors of accuracy on the worlds in tests/data/cases, and the scoring itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.accuracy.__main__ import CASES, answer_all, main
from tests.accuracy.answers import Answer, Question, grade, score
from tests.accuracy.case_files import build_case
from tests.accuracy.questions import find_questions
from tests.accuracy.table import Totals, misses
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import CATEGORIES, Category, Suspects, Verdict, VerdictKind

REPOSITORY = Path(__file__).parents[2]


def test_the_built_in_rules_reach_the_floors(capsys: pytest.CaptureFixture[str]) -> None:
    """Nine of ten verdicts are right, most suspects exact, and nobody is accused wrongly."""
    floors = ["--min-verdict", "0.95", "--min-exact", "0.95", "--min-category", "0.95"]
    assert main([*floors, "--max-accused", "0"]) == 0, capsys.readouterr()


def test_a_floor_that_does_not_hold_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 1 and stderr says which floor; 2 where there is nothing to judge."""
    assert main(["--min-verdict", "1.01", str(CASES / "together.yaml")]) == 1
    assert "100.0% is below 101.0%" in capsys.readouterr().err
    assert main([str(REPOSITORY / "docs")]) == 2


def test_the_cases_cover_every_category() -> None:
    """At least 25 incidents, and each category is right in one."""
    questions = list(find_questions([CASES]))
    assert len(questions) >= 25
    covered = {category for one in questions for category in one.answers[0].categories}
    assert covered == set(CATEGORIES)


def test_high_confidence_is_never_wrong() -> None:
    """What is said with high confidence is right."""
    scores = answer_all(find_questions([CASES]))
    sure = [one for one in scores if one.given and one.given.confidence == "high"]
    assert sure
    assert not list(misses(sure))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({2}, "subset"),
        ({2, 3}, "exact"),
        ({2, 3, 4}, "superset"),
        ({2, 3, 4, 5, 6}, "wrong"),
        ({2, 4}, "wrong"),
        (set(), "none"),
    ],
)
def test_grades(named: set[int], expected: str) -> None:
    """How named ranks compare with the wanted ranks 2 and 3."""
    assert grade(frozenset({2, 3}), frozenset(named)) == expected


def ask(*answers: Answer, numbered: bool = True) -> Question:
    """A question with these answers."""
    load: Callable[[], Incident] = lambda: Incident(print_id=None)  # noqa: E731
    return Question(name="q", kind="k", load=load, answers=answers, numbered=numbered)


def say(verdict: VerdictKind, *ranks: int, category: Category = "other") -> Verdict:
    """A verdict that names these ranks."""
    suspects = Suspects(ranks=RankSet(ranks))
    return Verdict(
        verdict=verdict, category=category, confidence="high", headline="", suspects=suspects
    )


def test_a_false_accusation() -> None:
    """Innocents named in a hang, or anybody where no answer names somebody."""
    local = ask(Answer(verdict="local_hang", suspects=frozenset({1})))
    assert not score(local, say("local_hang", 1)).accused
    assert score(local, say("local_hang", 2)).accused
    assert score(local, say("global_hang", 2)).accused
    assert not score(local, say("inconclusive", 2)).accused
    quiet = ask(Answer(verdict="no_hang"))
    assert score(quiet, say("local_hang", 0)).accused
    assert not score(quiet, say("no_hang", 0)).accused
    unnumbered = ask(Answer(verdict="local_hang"), numbered=False)
    assert not score(unnumbered, say("local_hang", 0)).accused


def test_any_accepted_answer_counts() -> None:
    """The answer with the same verdict decides about names and category."""
    both = ask(
        Answer(verdict="global_hang", categories=frozenset({"network"})),
        Answer(verdict="local_hang", suspects=frozenset({3}), categories=frozenset({"user_code"})),
    )
    found = score(both, say("local_hang", 3, category="user_code"))
    assert (found.verdict, found.suspects, found.category) == (True, "exact", True)
    assert not score(both, say("local_hang", 3, category="network")).category
    assert Totals([found]).verdict == 1.0


CASE = {
    "id": "1-reader",
    "world_size": 16,
    "processes": [
        *({"rank": rank, "process_type": "trainer", "threads": "wait"} for rank in range(7)),
        {"rank": 7, "process_type": "trainer", "threads": "read", "cpu_time_growing": False},
    ],
    "expected": {"verdict": "inconclusive", "suspect_ranks": None, "category": "other"},
}
STACKS = {
    "wait": [
        ("all_reduce", "/v/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py")
    ],
    "read": [("read", "/src/data.py"), ("poll", "libc.so.6")],
}


def write_case(place: Path, **more: object) -> Path:
    """A case file whose threads are spelled out."""
    case = json.loads(json.dumps({**CASE, **more}))
    for process in case["processes"]:
        frames = [
            {"name": name, "filename": path, "line": 3}
            for name, path in reversed(STACKS[process["threads"]])
        ]
        process["threads"] = [{"thread_name": "MainThread", "frames": frames}]
    path = place / "case.json"
    path.write_text(json.dumps(case), encoding="utf-8")
    return path


def test_a_case_file_is_an_incident(tmp_path: Path) -> None:
    """Ranks that a report does not show were not collected, which accuses nobody."""
    incident = build_case(write_case(tmp_path))
    assert [node.status for node in incident.nodes] == ["ok", "not_collected"]
    last = incident.samples[-1].processes[7]
    assert last.cpu_seconds == 0.0
    assert isinstance(last.threads, tuple)
    assert last.threads[0].stack.has_native
    (found,) = answer_all(find_questions([tmp_path]))
    assert found.given is not None
    assert found.given.verdict == "local_hang"
    assert found.accused


def test_a_case_of_the_whole_job(tmp_path: Path) -> None:
    """The rank outside is named, and that is right."""
    expected = {"verdict": "local_hang", "suspect_ranks": [7], "category": "user_code"}
    write_case(tmp_path, world_size=8, expected=expected)
    (found,) = answer_all(find_questions([tmp_path]))
    assert (found.verdict, found.suspects, found.category) == (True, "exact", True)
    assert not found.accused


def test_recorded_incidents_are_found(tmp_path: Path) -> None:
    """A directory with `expected.json` beside `incident.json` is judged by it."""
    place = tmp_path / "one"
    place.mkdir()
    source = REPOSITORY / "tests/data/incidents/ras_behind"
    for path in source.rglob("*"):
        target = place / path.relative_to(source)
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
    expected = {"verdict": "global_hang", "suspect_ranks": [2], "category": "collective_wait"}
    (place / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    (found,) = answer_all(find_questions([tmp_path]))
    assert (found.verdict, found.suspects, found.category) == (True, "exact", True)
