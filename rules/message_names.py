"""What the message of a rule may name."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGE_NAMES: Mapping[str, str] = {
    "ranks": "the ranks at fault, as text: 40-47/60",
    "who": "the same in words: rank 3, or ranks 40-47 (pp stage 2)",
    "nodes": "the names of their nodes, a list",
    "position": "where the first of them stands: read_shard /workspace/data.py:58",
    "links": "the pairs of nodes between which nothing is acknowledged, as text",
    "verdict": "the rule's verdict",
    "category": "the rule's category",
    "summary": "the rule's summary",
}
