"""Events whose kind is not one of ours: the line that they keep says what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from whyhang.collectors.log_events import find_events
from whyhang.rules.fields import EVENT_KINDS
from whyhang.schemas.progress import LogEvent


def classify_events(events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    """The events, those of foreign kinds as what their lines tell of.

    Other tools that write ``events.jsonl`` call an Xid or a killed process what they like. What
    they know of rank, node, device and time stays; a line that tells of nothing stays as it is.
    """
    for event in events:
        if event.kind in EVENT_KINDS:
            yield event
            continue
        told = find_events((event.line,), first_rank=None, node=event.node)
        yield from (_adopt(own, event) for own in told) if told else (event,)


def _adopt(own: LogEvent, event: LogEvent) -> LogEvent:
    return replace(
        own,
        ranks=event.ranks or own.ranks,
        node=event.node or own.node,
        device=event.device or own.device,
        at=event.at or own.at,
        source=event.source,
    )
