"""Which nodes of the job no longer hear each other: unanswered retransmissions, by pair of nodes.

When a link is cut every stack looks alike. Two nodes blame the link, never one of them; among more,
the node at which all failing links end is the odd one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts, TcpFacts

# One or two in a row are usual where a network is busy.
FEW_RETRANSMITS = 3
NOT_TOLD = Missing("its node told nothing of its connections")
UNKNOWN_PEER = Missing("it sends again to an address that no node of the job is known by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two nodes, in the order of their names, and the retransmissions between them."""

    ends: tuple[str, str]
    retransmits: int


@dataclass(frozen=True)
class Links:
    """The connections of one incident, at each of its samples."""

    incident: Incident
    _known: dict[int, tuple[Link, ...]] = field(default_factory=dict, compare=False)

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        """The node behind each address; addresses that two nodes have, as bridges do, are left out.

        Where one node alone is silent, an address that nobody else has is its own.
        """
        told = [told for sample in range(len(self.incident.samples)) for told in self._told(sample)]
        seen: dict[str, set[str]] = {}
        for node, facts in told:
            for address in facts.addresses or ():
                seen.setdefault(address, set()).add(node)
        owners = {address: min(nodes) for address, nodes in seen.items() if len(nodes) == 1}
        heard = {node for node, _ in told}
        silent = [n.name for n in self.incident.nodes if n.status == "missing"]
        if len(silent) == 1 and silent[0] not in heard:
            peers = {_host(entry.peer) for _, facts in told for entry in facts.tcp or ()}
            owners.update((peer, silent[0]) for peer in peers - seen.keys())
        return owners

    def _told(self, sample: int) -> Iterator[tuple[str, NodeFacts]]:
        samples = self.incident.samples
        for node, facts in samples[sample].facts.items() if 0 <= sample < len(samples) else ():
            if not isinstance(facts, Missing):
                yield node, facts

    def retransmits(
        self, node: str | None, sample: int, pids: Iterable[int] | None = None
    ) -> int | Missing:
        """The most that a node, or some of its processes, sent to one other node unanswered."""
        samples = self.incident.samples
        told = samples[sample].facts.get(node or "") if 0 <= sample < len(samples) else None
        if told is None or isinstance(told, Missing):
            return NOT_TOLD if told is None else told
        if told.tcp is None:
            return Missing(told.unread.get("tcp", NOT_TOLD.reason))
        chosen = None if pids is None else frozenset(pids)
        entries = [entry for entry in told.tcp if chosen is None or entry.pid in chosen]
        known = [entry for entry in entries if self._peer(entry) is not None]
        if entries and not known:
            return UNKNOWN_PEER
        counts: dict[str | None, int] = {}
        for entry in known:
            peer = self._peer(entry)
            counts[peer] = counts.get(peer, 0) + (entry.retransmits or 0)
        return max((count for peer, count in counts.items() if peer != node), default=0)

    def _peer(self, entry: TcpFacts) -> str | None:
        return self._owners.get(_host(entry.peer))

    def failing(self, sample: int) -> tuple[Link, ...]:
        """The pairs of nodes of which one does not hear the other, the worst first."""
        if sample not in self._known:
            self._known[sample] = self._find(sample)
        return self._known[sample]

    def _find(self, sample: int) -> tuple[Link, ...]:
        counts: dict[tuple[str, str], int] = {}
        for node, facts in self._told(sample):
            for entry in facts.tcp or ():
                peer = self._peer(entry)
                if peer is not None and peer != node:
                    ends = (min(node, peer), max(node, peer))
                    counts[ends] = counts.get(ends, 0) + (entry.retransmits or 0)
        links = (Link(ends=ends, retransmits=n) for ends, n in counts.items())
        kept = [link for link in links if link.retransmits >= FEW_RETRANSMITS]
        return tuple(sorted(kept, key=lambda link: (-link.retransmits, link.ends)))

    def cut_off(self, node: str | None, sample: int) -> bool | Missing:
        """Whether several links fail and all of them end at this node."""
        if not any(facts.tcp is not None for _, facts in self._told(sample)):
            return NOT_TOLD
        links = self.failing(sample)
        return len(links) > 1 and all(node in link.ends for link in links)


def _host(peer: str) -> str:
    """``10.0.0.2:30000`` or ``[fe80::1]:30000`` without the port."""
    return peer.rpartition(":")[0].strip("[]")
