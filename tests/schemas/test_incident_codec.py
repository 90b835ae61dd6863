"""``incident.json``: what is written is read back, and what is foreign is refused."""

from __future__ import annotations

import pytest

from whyhang.schemas.errors import FormatError
from whyhang.schemas.incident import Incident, Node, Snapshot, Source
from whyhang.schemas.incident_codec import decode_index, encode_index
from whyhang.schemas.progress import Progress
from whyhang.schemas.rankset import RankSet


def test_index_round_trips() -> None:
    """The index survives writing and reading; samples are named with their times."""
    incident = Incident(
        print_id="1780890495107774003",
        job_id="jo-1",
        trigger="stall",
        world_size=16,
        nodes=(
            Node(
                name="gpu31",
                ranks=RankSet.parse("0-7"),
                unread=RankSet([3]),
                status="partial",
                reason="py-spy: permission denied",
            ),
        ),
        samples=(Snapshot(index=0, at="2026-06-08T03:48:15", monotonic_seconds=0.0, processes=()),),
        progress=Progress(state="stalled", step=1200, phase="train", per_rank_step={3: 1199}),
        sources={"nccl_ras": Source(ok=False, reason="not asked")},
        whyhang="0.1.0",
    )
    read, times = decode_index(encode_index(incident))
    assert read.nodes == incident.nodes
    assert read.progress == incident.progress
    assert read.sources == incident.sources
    assert [(t.index, t.at) for t in times] == [(0, incident.samples[0].at)]


@pytest.mark.parametrize(
    "data",
    [b"{}", b'{"format": "other/1"}', b'{"format": "whyhang.incident/9"}', b"not json"],
)
def test_foreign_index_is_refused(data: bytes) -> None:
    """Another format or a later version is refused, not misread."""
    with pytest.raises(FormatError):
        decode_index(data)
