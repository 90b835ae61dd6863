"""The process that reads node and GPU facts: a sick driver or adapter hangs it, and nobody else.

It prints one JSON object a line as soon as it knows a part, what is most likely to hang last: who
waits for it takes what is there when the time is over.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence

from whyhang.collectors import node_facts
from whyhang.collectors.gpu_facts import read_gpus
from whyhang.collectors.tcp_facts import TcpReading, read_tcp
from whyhang.schemas.errors import FormatError
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.node_facts_codec import facts_from_json, facts_to_json

NO_GPU = "--no-gpu"
PIDS = "--pids="
_GPU_LIMIT_SECONDS = 8.0


def main(arguments: Sequence[str]) -> int:
    """Print the parts, each as soon as it is known."""
    for facts in read_parts(gpu=NO_GPU not in arguments, pids=_pids(arguments)):
        sys.stdout.write(json.dumps(facts_to_json(facts)) + "\n")
        sys.stdout.flush()
    return 0


def _pids(arguments: Sequence[str]) -> tuple[int, ...]:
    given = next((text for text in arguments if text.startswith(PIDS)), PIDS)
    return tuple(int(text) for text in given.removeprefix(PIDS).split(",") if text)


def read_parts(*, gpu: bool = True, pids: Sequence[int] = ()) -> Iterator[NodeFacts]:
    """The facts of this node in parts; a part that cannot be read says why."""
    parts: list[tuple[str, Callable[[], object]]] = [
        ("memory", node_facts.read_memory),
        ("pressure", node_facts.read_pressure),
        ("shm", node_facts.read_shm),
        ("disks", node_facts.read_disks),
        ("mounts", node_facts.read_mounts),
        ("kernel", node_facts.read_kernel_log),
    ]
    if pids:
        parts.append(("tcp", lambda: read_tcp(pids)))
    if gpu:
        parts.append(("gpus", lambda: read_gpus(_GPU_LIMIT_SECONDS)))
    parts.append(("infiniband", node_facts.read_infiniband))
    for name, read in parts:
        value = read()
        if isinstance(value, Missing):
            yield NodeFacts(unread={name: value.reason})
        elif isinstance(value, TcpReading):
            yield NodeFacts(tcp=value.tcp, addresses=value.addresses)
        else:
            yield NodeFacts(**{name: value})  # type: ignore[arg-type]


def join_parts(text: str) -> NodeFacts:
    """The parts that came, as one; a torn last line is left out."""
    whole: dict[str, object] = {}
    unread: dict[str, str] = {}
    for line in text.splitlines():
        try:
            part = json.loads(line)
            reasons = facts_from_json(part).unread
        except (ValueError, FormatError):
            continue
        unread.update(reasons)
        whole.update((key, value) for key, value in part.items() if key != "unread")
    return facts_from_json({**whole, "unread": unread})
