"""The environment variables by which processes of a job, and our own, are told from others."""

from __future__ import annotations

# The job's processes carry it; its value names the run of `whyhang run`, so that orphans are found.
# Where one runs inside another it names both, the inner one last.
MARKER = "WHYHANG_JOB"
# Our own helpers carry it as 1 and never count as the job's. It must not reach the job.
INTERNAL = "WHYHANG_INTERNAL"


def nested(outer: str | None, marker: str) -> str:
    """The value of ``MARKER`` for a run whose own environment has the value ``outer``."""
    return f"{outer},{marker}" if outer else marker


def is_marked(value: str | None, marker: str) -> bool:
    """Whether a process with this value of ``MARKER`` belongs to a run, or to one inside it."""
    return value is not None and marker in value.split(",")
