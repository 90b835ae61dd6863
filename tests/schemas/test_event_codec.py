"""Progress and log events: what is written is read back."""

from __future__ import annotations

from whyhang.schemas.event_codec import (
    decode_log_event,
    decode_progress_event,
    encode_log_event,
    encode_progress_event,
)
from whyhang.schemas.progress import LogEvent, ProgressEvent
from whyhang.schemas.rankset import RankSet


def test_lines_round_trip() -> None:
    """Progress and log events survive writing and reading."""
    progress = ProgressEvent(at="x", monotonic_seconds=1.5, epoch=2.0, step=3, rank=1)
    event = LogEvent(kind="rank_failed", line="x", ranks=RankSet([1, 2]), exit_code=-9)
    assert decode_progress_event(encode_progress_event(progress)) == progress
    assert decode_log_event(encode_log_event(event)) == event
    single = LogEvent(kind="xid", line="x", source="kernel", ranks=RankSet([4]), node="a")
    assert decode_log_event(encode_log_event(single)) == single
