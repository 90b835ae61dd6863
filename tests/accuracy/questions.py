"""Finds the questions of the accuracy command: recorded incidents, case files and test worlds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.accuracy.answers import Answer, Question
from tests.accuracy.case_files import build_case
from whyhang.engine.incidents import read_incident
from whyhang.engine.rule_tests import load_suites
from whyhang.engine.rule_worlds import build_incident
from whyhang.rules.test_cases import RuleTest
from whyhang.schemas.incident import Incident

EXPECTED = "expected.json"


def find_questions(paths: Iterable[Path]) -> Iterator[Question]:
    """All questions below the paths.

    An incident directory has an ``expected.json`` beside its ``incident.json``; a ``*.json`` with
    ``processes`` and ``expected`` is a case file; a ``*.yaml`` holds worlds as ``whyhang test``
    reads them, whose expectations are the answers.
    """
    for path in paths:
        yield from _at(path)


def _at(path: Path) -> Iterator[Question]:
    if path.is_dir():
        if (path / EXPECTED).is_file():
            told = json.loads((path / EXPECTED).read_text(encoding="utf-8"))
            yield _question(path.name, "recording", told, partial(read_incident, path))
            return
        for inner in sorted(path.iterdir()):
            if inner.is_dir() or inner.suffix in (".json", ".yaml"):
                yield from _at(inner)
    elif path.suffix == ".yaml":
        for test in load_suites([path])[0].file.tests:
            yield _of_world(test, path.stem)
    elif path.suffix == ".json":
        case = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(case, dict) and {"processes", "expected"} <= case.keys():
            expected = {"sure": case.get("confidence", "high"), **case["expected"]}
            yield _question(path.stem, "case", expected, partial(build_case, path))


def _question(
    name: str, kind: str, told: Mapping[str, Any], load: Callable[[], Incident]
) -> Question:
    answers = (told, *told.get("acceptable_alternatives", ()))
    more = frozenset(told.get("acceptable_categories", ()))
    return Question(
        name=name,
        kind=kind,
        load=load,
        sure=told.get("sure", "high"),
        numbered=not any(
            entry["verdict"] == "local_hang" and entry.get("suspect_ranks") is None
            for entry in answers
        ),
        answers=tuple(
            Answer(
                verdict=entry["verdict"],
                suspects=frozenset(entry.get("suspect_ranks") or ()),
                categories=more | {entry.get("category", "other")},
            )
            for entry in answers
        ),
    )


def _of_world(test: RuleTest, kind: str) -> Question:
    wanted = next(entry for entry in test.expect if entry.verdict is not None)
    assert wanted.verdict is not None
    answer = Answer(
        verdict=wanted.verdict,
        suspects=frozenset(wanted.suspects or ()),
        categories=frozenset(e.category for e in test.expect if e.category is not None),
    )
    return Question(
        name=test.name,
        kind=kind,
        load=lambda: build_incident(test.world),
        answers=(answer,),
        numbered=wanted.suspects is not None or wanted.verdict != "local_hang",
    )
