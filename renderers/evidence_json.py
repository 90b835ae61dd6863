"""How every rule decided, as JSON: all clauses, nothing left out."""

from __future__ import annotations

import json
from typing import Any

from whyhang.schemas.explanation import Explanation, RuleExplanation
from whyhang.schemas.verdict_codec import evidence_to_json, verdict_to_json


def render_explanation_json(explanation: Explanation) -> str:
    """The document: verdict, suppressions and rules, in the order of the rules' file."""
    document = {
        "format": "whyhang.explanation/1",
        "verdict": verdict_to_json(explanation.verdict),
        "definitions": {
            each.name: {"text": each.text, "at": str(each.span)} for each in explanation.definitions
        },
        "suppressions": [_entry(entry) for entry in explanation.suppressions],
        "rules": [_entry(entry) for entry in explanation.rules],
    }
    text = json.dumps(document, ensure_ascii=False, indent=1)
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


def _entry(entry: RuleExplanation) -> dict[str, Any]:
    keys = ("verdict", "category", "confidence")
    return {
        "id": entry.id,
        "at": str(entry.span) if entry.span.line else None,
        "result": entry.result,
        "summary": entry.summary,
        **dict(zip(keys, entry.concludes, strict=False)),
        "note": entry.note,
        "suspects": entry.suspects.format(),
        "evidence": evidence_to_json(entry.evidence),
        "who": None if entry.who is None else evidence_to_json(entry.who),
    }
