"""Unknown is a value: a source answers with data or with the reason why it has none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """What a source could not tell, and why (``py-spy: permission denied``)."""

    reason: str
