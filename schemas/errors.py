"""The tree of errors that people get to read.

::

    WhyhangError            message (what happened) and hint (what to do)
    ├── UsageError          wrong use of the command line; exit status 2
    ├── FormatError         a file that is not what it should be (incident, verdict, dump)
    └── RuleErrors          one or more findings in hang.yaml (whyhang.rules.findings)

Only the command line prints them and exits. A source that cannot be read is no error: it answers
with :class:`whyhang.schemas.missing.Missing`.
"""

from __future__ import annotations


class WhyhangError(Exception):
    """Root of our errors; ``hint`` is the remedy."""

    exit_status = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WhyhangError):
    """The command line asks for what cannot be done."""


class FormatError(WhyhangError):
    """A file does not have the expected format."""
