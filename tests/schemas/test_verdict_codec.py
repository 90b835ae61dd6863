"""Verdicts as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.schemas import verdict_codec
from whyhang.schemas.errors import FormatError
from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import (
    CATEGORIES,
    CONFIDENCES,
    VERDICTS,
    NotSeen,
    Suppression,
    SuspectPosition,
    Suspects,
    Undecided,
    Verdict,
)
from whyhang.schemas.verdict_codec import decode_verdict, encode_verdict, verdict_to_json
from whyhang.schemas.words import PROCESS_KINDS

SCHEMA = json.loads(
    Path(verdict_codec.__file__).with_name("verdict.v1.json").read_text(encoding="utf-8")
)

TEXT = st.text(max_size=12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
MAYBE = st.none() | TEXT
RANKS = st.frozensets(st.integers(0, 70), max_size=8).map(RankSet)
SPANS = st.builds(
    Span,
    file=TEXT,
    line=st.integers(0, 99),
    column=st.integers(0, 99),
    length=st.integers(1, 99),
)
EVIDENCE = st.recursive(
    st.builds(Evidence, text=TEXT, value=st.sampled_from(Truth), span=SPANS, yes=RANKS),
    lambda inner: st.builds(
        Evidence,
        text=TEXT,
        value=st.sampled_from(Truth),
        span=SPANS,
        detail=TEXT,
        no=RANKS,
        unknown=RANKS,
        missing=TEXTS,
        children=st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=6,
)
VERDICT = st.builds(
    Verdict,
    verdict=st.sampled_from(VERDICTS),
    category=st.sampled_from(CATEGORIES),
    confidence=st.sampled_from(CONFIDENCES),
    headline=TEXT,
    rule=MAYBE,
    summary=TEXT,
    print_id=st.none() | st.integers(0, 10**19 - 1).map("{:019}".format),
    job_id=MAYBE,
    suspects=st.builds(
        Suspects,
        ranks=RANKS,
        nodes=TEXTS,
        groups=TEXTS,
        positions=st.lists(
            st.builds(
                SuspectPosition, frame=TEXT, kind=st.sampled_from(PROCESS_KINDS), ranks=RANKS
            ),
            max_size=2,
        ).map(tuple),
    ),
    evidence=st.none() | EVIDENCE,
    also=TEXTS,
    suppressed=st.lists(
        st.builds(Suppression, id=TEXT, summary=TEXT, evidence=EVIDENCE), max_size=1
    ).map(tuple),
    undecided=st.lists(st.builds(Undecided, rule=TEXT, because=TEXTS), max_size=2).map(tuple),
    not_seen=st.lists(st.builds(NotSeen, ranks=RANKS, reason=TEXT), max_size=2).map(tuple),
    lowered=TEXTS,
    next_steps=TEXTS,
    rules_digest=MAYBE,
    overrides=TEXTS,
    whyhang=MAYBE,
)


def example() -> Verdict:
    """A verdict with something in every field."""
    clause = Evidence(
        text='state == "D"',
        value=Truth.TRUE,
        span=Span(file="hang.yaml", line=12, column=7, length=12),
        detail="8 of 64",
        yes=RankSet.parse("40-47"),
        no=RankSet.parse("0-39"),
        unknown=RankSet.parse("48-63"),
        missing=("stacks",),
    )
    return Verdict(
        verdict="local_hang",
        category="disk_io",
        confidence="high",
        headline="Ranks 40-47 sleep",
        rule="pytorch/disk-sleep",
        summary="They sleep in a read.",
        print_id="1780890495107774003",
        job_id="jo-1",
        suspects=Suspects(
            ranks=RankSet.parse("40-41"),
            nodes=("gpu05",),
            groups=("pp stage 2",),
            positions=(
                SuspectPosition(frame="read data.py:88", kind="trainer", ranks=RankSet((40,))),
            ),
        ),
        evidence=Evidence(text="some", value=Truth.TRUE, children=(clause,)),
        also=("pytorch/local-hang",),
        suppressed=(Suppression(id="idle", summary="idle workers", evidence=clause),),
        undecided=(Undecided(rule="nccl/desync", because=("nccl_ras: not asked",)),),
        not_seen=(NotSeen(ranks=RankSet((7,)), reason="py-spy: permission denied"),),
        lowered=("one rank was not read",),
        next_steps=("look at the mount",),
        rules_digest="sha256:00",
        overrides=("still=30s",),
        whyhang="0.1.0",
    )


@given(VERDICT)
def test_what_is_written_reads_back_and_fits_the_schema(verdict: Verdict) -> None:
    """Every verdict survives the way through bytes."""
    data = encode_verdict(verdict)
    assert decode_verdict(data) == verdict
    jsonschema.validate(json.loads(data), SCHEMA)


def test_the_keys_are_those_of_the_format() -> None:
    """The format is public: names and forms do not change by accident."""
    value = verdict_to_json(example())
    assert list(value) == [
        "format", "print_id", "job_id", "verdict", "category", "confidence", "rule", "headline",
        "summary", "suspects", "evidence", "also", "suppressed", "undecided", "not_seen",
        "lowered", "next_steps", "rules_digest", "overrides", "whyhang",
    ]  # fmt: skip
    assert value["suspects"] == {
        "ranks": "40-41",
        "rank_list": [40, 41],
        "nodes": ["gpu05"],
        "groups": ["pp stage 2"],
        "positions": [{"frame": "read data.py:88", "kind": "trainer", "ranks": "40"}],
    }
    assert value["evidence"]["at"] is None
    assert value["evidence"]["children"][0] == {
        "text": 'state == "D"',
        "at": "hang.yaml:12:7",
        "length": 12,
        "value": "true",
        "detail": "8 of 64",
        "yes": "40-47",
        "no": "0-39",
        "unknown": "48-63",
        "missing": ["stacks"],
        "children": [],
    }
    assert value["not_seen"] == [{"ranks": "7", "reason": "py-spy: permission denied"}]
    assert value["undecided"] == [{"rule": "nccl/desync", "because": ["nccl_ras: not asked"]}]


def test_the_schema_is_a_schema() -> None:
    """It is valid draft 7, describes every key, and lists the words that the types have."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]) == set(verdict_to_json(example()))
    assert SCHEMA["properties"]["verdict"]["enum"] == list(VERDICTS)
    assert SCHEMA["properties"]["category"]["enum"] == list(CATEGORIES)
    assert SCHEMA["properties"]["confidence"]["enum"] == list(CONFIDENCES)
    kinds = SCHEMA["definitions"]["position"]["properties"]["kind"]["enum"]
    assert kinds == list(PROCESS_KINDS)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "hang"},
        {"suspects": {}},
        {"extra": 1},
        {"print_id": "abc"},
        {"not_seen": [{"ranks": "3,4", "reason": ""}]},
        {"format": "whyhang.verdict/2"},
    ],
)
def test_the_schema_is_strict(change: dict[str, Any]) -> None:
    """Foreign keys, words and forms are refused."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(verdict_to_json(example()) | change, SCHEMA)


def test_bytes_that_are_no_text_survive() -> None:
    """A path with half a surrogate is written as JSON and reads back the same."""
    verdict = Verdict(
        verdict="no_hang", category="other", confidence="low", headline="a\udc80b", whyhang="0"
    )
    assert decode_verdict(encode_verdict(verdict)) == verdict


def test_readers_ignore_unknown_keys_and_accept_missing_ones() -> None:
    """A later release may add, a smaller writer may leave out."""
    data = {
        "format": "whyhang.verdict/1",
        "verdict": "slow",
        "category": "other",
        "confidence": "low",
        "suspects": {"rank_list": [3, 4], "mood": "bad"},
        "new": True,
    }
    verdict = decode_verdict(json.dumps(data).encode())
    assert verdict.verdict == "slow"
    assert verdict.suspects.ranks == RankSet((3, 4))


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{}", b'{"format": "whyhang.verdict/9"}'])
def test_what_is_no_verdict_is_refused(data: bytes) -> None:
    """A torn or foreign file is an error that says so, never another exception."""
    with pytest.raises(FormatError, match="not a verdict"):
        decode_verdict(data)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "oops"},
        {"category": None},
        {"not_seen": [{"ranks": "9-3"}]},
        {"suspects": {"rank_list": [-1]}},
        {"suspects": "0-3"},
        {"also": "abc"},
        {"headline": 3},
        {"evidence": {"text": "x", "value": "maybe"}},
        {"evidence": {"text": "x", "value": "true", "at": "nowhere"}},
    ],
)
def test_a_verdict_with_a_wrong_value_is_refused(change: dict[str, Any]) -> None:
    """Every field is checked, and the error is the one that the command line shows."""
    data = json.dumps(verdict_to_json(example()) | change).encode()
    with pytest.raises(FormatError, match="not a verdict"):
        decode_verdict(data)
