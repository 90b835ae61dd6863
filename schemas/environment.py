"""The environment variables by which processes of a job, and our own, are told from others."""

from __future__ import annotations

# The job's processes carry it; its value is one run of `whyhang run`, so that orphans are found.
MARKER = "WHYHANG_JOB"
# Our own helpers carry it as 1 and never count as the job's. It must not reach the job.
INTERNAL = "WHYHANG_INTERNAL"
