"""What was not read, in lines for people: ranks, nodes, sources, each with what helps."""

from __future__ import annotations

from collections.abc import Iterator

from whyhang.renderers import words
from whyhang.renderers.clean import one_line
from whyhang.schemas.diagnosis import Diagnosis
from whyhang.schemas.incident import Incident, Node
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import NOBODY, RankSet
from whyhang.schemas.unread import UnreadKind

# Where a rank has ended there is no stack to miss.
_ENDED = ("exited", "zombie")


def not_seen(diagnosis: Diagnosis) -> Iterator[str]:
    """One line for each thing that was not read, and one for what helps."""
    incident = diagnosis.incident
    told = NOBODY
    cures: set[str] = set()
    for each in diagnosis.verdict.not_seen:
        told = told | each.ranks
        reason = one_line(each.reason)
        where = words.nodes(incident, each.ranks)
        known = not where or where in reason
        whose = words.ranks(each.ranks) + ("" if known else f" on {where}")
        yield f"{whose}: {reason}" if each.ranks else reason
        if each.cure and each.cure not in cures:
            cures.add(each.cure)
            yield f"to read them: {one_line(each.cure)}"
    yield from _native(incident, cures)
    for node in incident.nodes:
        if node.status != "ok":
            yield from _node(node, told)
            told = told | node.unread | node.ranks
    for group in diagnosis.groups:
        if group.status in _ENDED:
            told = told | RankSet(group.ranks)
    unread = (diagnosis.tree.unread if diagnosis.tree else NOBODY) - told
    if unread:
        yield f"{words.ranks(unread)}: no stack of the trainer was read"
    if incident.unranked:
        names = tuple(process.place for process in incident.unranked)
        has = "trainer has" if len(names) == 1 else "trainers have"
        yield f"{len(names)} {has} no known rank: {words.some(names, words.SHOWN_NAMELESS)}"
    if diagnosis.tree is None:
        yield "no stacks at all"
    if isinstance(diagnosis.topology, Missing):
        yield f"parallel groups: {one_line(diagnosis.topology.reason)}"
    for name, source in sorted(incident.sources.items()):
        if not source.ok:
            label = words.SOURCE_WORDS.get(name, one_line(name))
            yield f"{label}: {one_line(source.reason or '') or 'not read'}"


def _native(incident: Incident, cures: set[str]) -> Iterator[str]:
    """Trainers whose Python stack was read but not the frames below it, by the kind of reason."""
    found: dict[UnreadKind, tuple[RankSet, str, str | None]] = {}
    for process in incident.last.processes if incident.last else ():
        dump = process.dump
        if process.kind != "trainer" or process.rank is None or dump is None:
            continue
        if dump.ok and dump.kind is not None:
            ranks, reason, cure = found.get(dump.kind, (NOBODY, dump.error or "", dump.cure))
            found[dump.kind] = ranks | RankSet((process.rank,)), reason, cure
    for ranks, reason, cure in found.values():
        yield f"{words.ranks(ranks)}: {one_line(reason)}"
        if cure and cure not in cures:
            cures.add(cure)
            yield f"to read these: {one_line(cure)}"


def _node(node: Node, told: RankSet) -> Iterator[str]:
    """What is still to be said of a node once some of its ranks were told of."""
    name = one_line(node.name)
    reason = f": {one_line(node.reason)}" if node.reason else ""
    if node.status == "partial":
        if node.unread - told:
            yield f"node {name}, {words.ranks(node.unread)} not read{reason}"
        return
    silent = "was asked and stayed silent" if node.status == "missing" else "was not asked"
    if not node.ranks or node.ranks - told:
        whose = f" ({words.ranks(node.ranks)})" if node.ranks else ""
        yield f"node {name}{whose} {silent}{reason}"
    elif node.status == "missing":
        yield f"node {name} {silent}"
