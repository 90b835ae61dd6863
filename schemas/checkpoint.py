"""The newest checkpoint of a job: what a restart goes back to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What its name and its files tell, when the first sample was taken; None where unknown.

    ``max_age_seconds`` is how old the configuration lets it get.
    """

    name: str | None = None
    step: int | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None
