"""Wall-clock times as files carry them."""

from __future__ import annotations

from datetime import datetime, timezone


def utc_now(nanoseconds: int) -> str:
    """A time since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=timezone.utc).isoformat()
