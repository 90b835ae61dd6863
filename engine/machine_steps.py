"""What to do about a machine: concrete commands for its links, its memory and its scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from whyhang.engine.facts import Facts
from whyhang.schemas.missing import Missing

LINKS_SHOWN = 3
# Less free than this share, and the next allocation may fail.
SCARCE = 0.05


def keep_off(node: str) -> str:
    """How to keep new jobs off a node, by the two schedulers that most clusters have."""
    name = quote(node)
    return (
        f"keep new jobs off {node}: `scontrol update nodename={name} state=drain reason=hang` or "
        f"`kubectl cordon {name}`"
    )


def is_cut_off(facts: Facts, nodes: Iterable[str]) -> bool:
    """Whether one of the nodes is the one at which all failing links end."""
    last, links = facts.world.sample_count - 1, facts.world.machines.links
    return any(links.cut_off(node, last) is True for node in nodes)


def link_steps(facts: Facts) -> Iterator[str]:
    """How to try the links that fail, from one of their ends."""
    last = facts.world.sample_count - 1
    for link in facts.world.machines.links.failing(last)[:LINKS_SHOWN]:
        here, there = link.ends
        yield f"Try the link from {here}: `ping -c 3 {quote(there)}`, `ss -tio`, `ip -s link`"


def room_steps(facts: Facts, nodes: Iterable[str]) -> Iterator[str]:
    """What to free where a node at fault is short of memory or of shared memory."""
    last = facts.world.sample_count - 1
    for node in nodes:
        if _is_scarce(facts.world.machines.shm_free(node, last)):
            yield f"Shared memory is full on {node}: `df -h /dev/shm`, `ls -lS /dev/shm | head`"
        if _is_scarce(facts.world.machines.memory_free(node, last)):
            yield f"Memory runs out on {node}: `free -h`, `dmesg -T | grep -i oom-kill`"


def _is_scarce(free: float | Missing) -> bool:
    return not isinstance(free, Missing) and free < SCARCE
