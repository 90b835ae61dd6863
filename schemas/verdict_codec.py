"""Verdicts as JSON: the format ``whyhang.verdict/1``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from whyhang.schemas.errors import FormatError
from whyhang.schemas.evidence import Evidence, Span
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.unread import UNREAD_KINDS
from whyhang.schemas.verdict import (
    CATEGORIES,
    CONFIDENCES,
    FORMAT,
    VERDICTS,
    NotSeen,
    Suppression,
    SuspectPosition,
    Suspects,
    Undecided,
    Verdict,
)
from whyhang.schemas.words import PROCESS_KINDS

_Choice = TypeVar("_Choice", bound=str)


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON values, keys in the order of the format."""
    return {
        "format": FORMAT,
        "print_id": verdict.print_id,
        "job_id": verdict.job_id,
        "verdict": verdict.verdict,
        "category": verdict.category,
        "confidence": verdict.confidence,
        "rule": verdict.rule,
        "headline": verdict.headline,
        "summary": verdict.summary,
        "suspects": _suspects_to_json(verdict.suspects),
        "evidence": None if verdict.evidence is None else evidence_to_json(verdict.evidence),
        "also": list(verdict.also),
        "suppressed": [
            {"id": each.id, "summary": each.summary, "evidence": evidence_to_json(each.evidence)}
            for each in verdict.suppressed
        ],
        "undecided": [
            {"rule": each.rule, "because": list(each.because)} for each in verdict.undecided
        ],
        "not_seen": [_not_seen_to_json(each) for each in verdict.not_seen],
        "lowered": list(verdict.lowered),
        "next_steps": list(verdict.next_steps),
        "rules_digest": verdict.rules_digest,
        "overrides": list(verdict.overrides),
        "whyhang": verdict.whyhang,
    }


def _not_seen_to_json(entry: NotSeen) -> dict[str, Any]:
    told = {"ranks": entry.ranks.format(), "reason": entry.reason}
    more = {"kind": entry.kind, "cure": entry.cure}
    return told | {key: value for key, value in more.items() if value is not None}


def _suspects_to_json(suspects: Suspects) -> dict[str, Any]:
    return {
        "ranks": suspects.ranks.format(),
        "rank_list": list(suspects.ranks),
        "nodes": list(suspects.nodes),
        "groups": list(suspects.groups),
        "positions": [
            {"frame": each.frame, "kind": each.kind, "ranks": each.ranks.format()}
            for each in suspects.positions
        ],
    }


def evidence_to_json(evidence: Evidence) -> dict[str, Any]:
    """A clause and its parts. ``at`` is ``file:line:column``, null where the place is unknown."""
    known = evidence.span != Span()
    return {
        "text": evidence.text,
        "at": str(evidence.span) if known else None,
        "length": evidence.span.length,
        "value": evidence.value.value,
        "detail": evidence.detail,
        "yes": evidence.yes.format(),
        "no": evidence.no.format(),
        "unknown": evidence.unknown.format(),
        "missing": list(evidence.missing),
        "children": [evidence_to_json(child) for child in evidence.children],
    }


def encode_verdict(verdict: Verdict) -> bytes:
    """``verdict.json``: UTF-8, indented, with a line end.

    Half surrogates, which stand for bytes of a path or log that are no UTF-8, are escaped.
    """
    text = json.dumps(verdict_to_json(verdict), ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def decode_verdict(data: bytes) -> Verdict:
    """Read ``verdict.json``; unknown keys are ignored, missing ones keep their defaults.

    Raises FormatError where it is no verdict of a format that we know.
    """
    try:
        value = json.loads(data)
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise FormatError("not a verdict", f"the format must be {FORMAT}")
        return _verdict(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"not a verdict: {error}") from error


def _verdict(value: Mapping[str, Any]) -> Verdict:
    evidence = value.get("evidence")
    return Verdict(
        verdict=_one_of(VERDICTS, value["verdict"]),
        category=_one_of(CATEGORIES, value["category"]),
        confidence=_one_of(CONFIDENCES, value["confidence"]),
        headline=_text(value.get("headline")),
        rule=_optional(value.get("rule")),
        summary=_text(value.get("summary")),
        print_id=_optional(value.get("print_id")),
        job_id=_optional(value.get("job_id")),
        suspects=_suspects(value.get("suspects") or {}),
        evidence=None if evidence is None else _evidence(evidence),
        also=_texts(value.get("also")),
        suppressed=tuple(
            Suppression(
                id=_text(each["id"]),
                summary=_text(each.get("summary")),
                evidence=_evidence(each["evidence"]),
            )
            for each in value.get("suppressed") or ()
        ),
        undecided=tuple(
            Undecided(rule=_text(each["rule"]), because=_texts(each.get("because")))
            for each in value.get("undecided") or ()
        ),
        not_seen=tuple(
            NotSeen(
                ranks=_ranks(each.get("ranks")),
                reason=_text(each.get("reason")),
                kind=next((kind for kind in UNREAD_KINDS if kind == each.get("kind")), None),
                cure=_optional(each.get("cure")),
            )
            for each in value.get("not_seen") or ()
        ),
        lowered=_texts(value.get("lowered")),
        next_steps=_texts(value.get("next_steps")),
        rules_digest=_optional(value.get("rules_digest")),
        overrides=_texts(value.get("overrides")),
        whyhang=_optional(value.get("whyhang")),
    )


def _suspects(value: Mapping[str, Any]) -> Suspects:
    ranks = value.get("ranks")
    return Suspects(
        ranks=RankSet(value.get("rank_list") or ()) if ranks is None else _ranks(ranks),
        nodes=_texts(value.get("nodes")),
        groups=_texts(value.get("groups")),
        positions=tuple(
            SuspectPosition(
                frame=_text(each["frame"]),
                kind=_one_of(PROCESS_KINDS, each["kind"]),
                ranks=_ranks(each.get("ranks")),
            )
            for each in value.get("positions") or ()
        ),
    )


def _evidence(value: Mapping[str, Any]) -> Evidence:
    return Evidence(
        text=_text(value["text"]),
        value=Truth(value["value"]),
        span=_span(value.get("at"), value.get("length") or 1),
        detail=_text(value.get("detail")),
        yes=_ranks(value.get("yes")),
        no=_ranks(value.get("no")),
        unknown=_ranks(value.get("unknown")),
        missing=_texts(value.get("missing")),
        children=tuple(_evidence(child) for child in value.get("children") or ()),
    )


def _span(at: str | None, length: int) -> Span:
    if at is None:
        return Span(length=length)
    file, line, column = at.rsplit(":", 2)
    return Span(file=file, line=int(line), column=int(column), length=length)


def _one_of(choices: tuple[_Choice, ...], value: object) -> _Choice:
    for choice in choices:
        if choice == value:
            return choice
    raise ValueError(f"{value!r} is none of {', '.join(choices)}")


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"not a text: {value!r}")
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"not a list: {value!r}")
    return tuple(_text(each) for each in value)


def _ranks(value: object) -> RankSet:
    return RankSet.parse(_text(value))
