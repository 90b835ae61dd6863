"""What the job's processes sent to their peers and was not acknowledged, from ``/proc/PID/net``.

A link that is cut tells nobody: the sender only sends again, for a quarter of an hour, and every
stack shows a wait. The kernel counts these attempts per socket and starts again from zero with each
acknowledgement. Formats: proc(5) and Documentation/networking/proc_net_tcp.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from pathlib import Path

from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import TcpFacts

MOST_DESCRIPTORS = 65_536
MOST_SOCKETS = 200_000
MOST_PEERS = 512
_INODE = re.compile(r"socket:\[(\d+)\]\Z")
# LISTEN has no peer, and the last stages of closing belong to no process any more.
_NO_PEER = frozenset(("0A", "06", "07"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """A line of ``/proc/net/tcp``: ``retransmits`` since the last acknowledgement."""

    inode: int
    local: str
    peer: str
    retransmits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpReading:
    """The peers to which something was sent again, and the node's own addresses in use."""

    tcp: tuple[TcpFacts, ...]
    addresses: tuple[str, ...]


def read_tcp(pids: Iterable[int], proc: Path = Path("/proc")) -> TcpReading | Missing:
    """The retransmissions of these processes, the most important ones first.

    Missing where no process's sockets can be read.
    """
    tables: dict[str, dict[int, Socket]] = {}
    found: list[TcpFacts] = []
    addresses: dict[str, None] = {}
    is_read = False
    for pid in pids:
        inodes, table = _inodes(proc / str(pid) / "fd"), _table(proc / str(pid), tables)
        if inodes is None or table is None:
            continue
        is_read = True
        # A socket that a fork left to several processes counts once, for the first of them.
        own = [table.pop(inode) for inode in inodes if inode in table]
        addresses.update((s.local, None) for s in own if not _is_loopback(s.local))
        found += _by_peer(pid, own)
    if not is_read:
        return Missing("the sockets of the job's processes cannot be read")
    found.sort(key=lambda entry: -(entry.retransmits or 0))
    return TcpReading(tcp=tuple(found[:MOST_PEERS]), addresses=tuple(addresses))


def parse_sockets(text: str) -> Iterator[Socket]:
    """The sockets of ``/proc/net/tcp`` or ``tcp6`` that have a peer; other lines are skipped."""
    for line in text.splitlines()[:MOST_SOCKETS]:
        cells = line.split()
        if len(cells) < 10 or cells[3] in _NO_PEER:
            continue
        try:
            local, peer = _address(cells[1])[0], _address(cells[2])
            retransmits, inode = int(cells[6], 16), int(cells[9])
        except (ValueError, struct.error):
            continue
        host = f"[{peer[0]}]" if ":" in peer[0] else peer[0]
        yield Socket(inode=inode, local=local, peer=f"{host}:{peer[1]}", retransmits=retransmits)


def _address(cell: str) -> tuple[str, int]:
    """``0100007F:1F90``: words in the machine's own byte order, then the port."""
    words, _, port = cell.partition(":")
    data = bytes.fromhex(words)
    raw = struct.pack(f"!{len(data) // 4}I", *struct.unpack(f"={len(data) // 4}I", data))
    if len(raw) == 4:
        return str(IPv4Address(raw)), int(port, 16)
    address = IPv6Address(raw)
    return str(address.ipv4_mapped or address), int(port, 16)


def _table(folder: Path, tables: dict[str, dict[int, Socket]]) -> dict[int, Socket] | None:
    """The sockets of a process's network by inode; each network is read once."""
    try:
        network = str((folder / "ns" / "net").readlink())
    except OSError:
        return None
    if network not in tables:
        texts = [_read(folder / "net" / name) for name in ("tcp", "tcp6")]
        if texts[0] is None:
            return None
        tables[network] = {s.inode: s for text in texts if text for s in parse_sockets(text)}
    return tables[network]


def _inodes(folder: Path) -> list[int] | None:
    """The sockets that a process holds open; None where they cannot be listed."""
    try:
        links = list(islice(folder.iterdir(), MOST_DESCRIPTORS))
    except OSError:
        return None
    found = []
    for link in links:
        try:
            match = _INODE.match(str(link.readlink()))
        except OSError:
            continue
        if match:
            found.append(int(match[1]))
    return found


def _by_peer(pid: int, sockets: Iterable[Socket]) -> Iterator[TcpFacts]:
    """Only what was sent again: a job has thousands of healthy connections."""
    counts: dict[str, int] = {}
    for socket in sockets:
        if socket.retransmits and not _is_loopback(socket.local):
            counts[socket.peer] = counts.get(socket.peer, 0) + socket.retransmits
    for peer, retransmits in counts.items():
        yield TcpFacts(pid=pid, peer=peer, retransmits=retransmits)


def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
