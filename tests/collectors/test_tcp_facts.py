"""Retransmissions by peer: from recorded tables, and over a real link that is cut."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.collectors.tcp_facts import TcpReading, parse_sockets, read_tcp
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import TcpFacts

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000007     0        0 1194 1 0
   1: 0100000A:9005 0200000A:7530 01 00000400:00000000 01:00000200 00000009     0        0 1200 4 0
   2: 0100000A:9006 0200000A:7530 01 00000000:00000000 02:00000200 00000000     0        0 1201 1 0
   3: 0100000A:9007 0300000A:7530 06 00000000:00000000 03:00000200 00000003     0        0 0 3 0
   4: 0100007F:9008 0100007F:7531 01 00000000:00000000 01:00000200 00000005     0        0 1202 1 0
   5: torn
   6: ZZ00000A:9006 0200000A:7530 01 00000000:00000000 02:00000200 00000000     0        0 1203 1 0
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st tx rx
   0: 0000000000000000FFFF00000100000A:9005 0000000000000000FFFF00000200000A:7530 02 0:0 01:0 00000002 0 0 1300 1 0
   1: 000080FE00000000FF005450B6E63DFE:9005 000080FE00000000FF005450B6E63DFF:7530 01 0:0 01:0 00000004 0 0 1301 1 0
"""  # noqa: E501


@pytest.mark.skipif(sys.byteorder != "little", reason="the tables come from such a machine")
def test_sockets_with_a_peer() -> None:
    """Listening and closed sockets have none; the attempts since the last answer are counted."""
    found = [(s.inode, s.local, s.peer, s.retransmits) for s in parse_sockets(TABLE)]
    assert found == [
        (1200, "10.0.0.1", "10.0.0.2:30000", 9),
        (1201, "10.0.0.1", "10.0.0.2:30000", 0),
        (1202, "127.0.0.1", "127.0.0.1:30001", 5),
    ]


@pytest.mark.skipif(sys.byteorder != "little", reason="the tables come from such a machine")
def test_addresses_of_the_newer_kind() -> None:
    """An older address inside a newer one is the older one; the port stays apart."""
    assert [s.peer for s in parse_sockets(TABLE6)] == [
        "10.0.0.2:30000", "[fe80::5054:ff:ff3d:e6b6]:30000",
    ]  # fmt: skip


def process_files(root: Path, pid: int, inodes: list[int], table: str) -> None:
    """What /proc shows of a process that holds these sockets."""
    folder = root / str(pid)
    for name in ("fd", "net", "ns"):
        (folder / name).mkdir(parents=True)
    (folder / "ns" / "net").symlink_to("net:[4026531840]")
    (folder / "net" / "tcp").write_text(table)
    for number, inode in enumerate(inodes):
        (folder / "fd" / str(number)).symlink_to(f"socket:[{inode}]")
    (folder / "fd" / "99").symlink_to("/dev/null")


@pytest.mark.skipif(sys.byteorder != "little", reason="the tables come from such a machine")
def test_only_own_sockets_count_and_each_once(tmp_path: Path) -> None:
    """A worker that inherited its trainer's socket does not double it; loopback is no network."""
    process_files(tmp_path, 10, [1200, 1202], TABLE)
    process_files(tmp_path, 11, [1200, 1201], TABLE)
    process_files(tmp_path, 12, [], TABLE)
    assert read_tcp([10, 11, 12, 13], tmp_path) == TcpReading(
        tcp=(TcpFacts(pid=10, peer="10.0.0.2:30000", retransmits=9),), addresses=("10.0.0.1",)
    )


def test_processes_that_are_closed_to_us_are_unknown(tmp_path: Path) -> None:
    """No list of sockets means unknown, not that nothing was sent again."""
    assert isinstance(read_tcp([13], tmp_path), Missing)


@given(st.text(max_size=300))
def test_any_table_may_come(text: str) -> None:
    """A foreign table raises nothing."""
    list(parse_sockets(text))


# --- a real link ----------------------------------------------------------------------------------

LEFT, RIGHT = "10.203.77.1", "10.203.77.2"
SERVER = """
import socket, sys, time
server = socket.create_server((sys.argv[1], 30000))
print("ready", flush=True)
connection, _ = server.accept()
print("connected", flush=True)
while True:
    connection.recv(65536)
"""
CLIENT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 30000), timeout=20)
idle = socket.create_connection((sys.argv[1], 30000), timeout=20)
print("connected", flush=True)
sys.stdin.readline()
while True:
    connection.send(b"x" * 512)
    time.sleep(0.05)
"""


def why_no_namespaces() -> str | None:
    """Why no network of our own can be made here; None if one can."""
    if os.geteuid() != 0:
        return "a network namespace needs root"
    if shutil.which("ip") is None:
        return "not installed: ip"
    probe = subprocess.run(["ip", "netns", "add", "whyhang-probe"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"no network namespaces here: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", "whyhang-probe"], check=True)
    return None


def ip(*words: str) -> None:
    """One call of ip."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def link() -> Iterator[tuple[str, str]]:
    """Two networks with one cable between them; gone at the end, whatever happens."""
    reason = why_no_namespaces()
    if reason is not None:
        pytest.skip(reason)
    left, right = (f"whyhang-{side}-{os.getpid()}" for side in "lr")
    try:
        for name in (left, right):
            ip("netns", "add", name)
        ip("link", "add", "cable", "netns", left, "type", "veth", "peer", "cable", "netns", right)
        for name, address in ((left, LEFT), (right, RIGHT)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        yield left, right
    finally:
        for name in (left, right):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def run_in() -> Iterator[Callable[[str, str, str], subprocess.Popen[str]]]:
    """Starts a script in a network, waits for its first line, and kills it at the end."""
    with contextlib.ExitStack() as stack:

        def start(network: str, script: str, address: str) -> subprocess.Popen[str]:
            child = subprocess.Popen(
                ["ip", "netns", "exec", network, sys.executable, "-c", script, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(_end, child)
            assert child.stdout is not None
            child.stdout.readline()
            return child

        yield start


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def sent_again(pid: int) -> TcpReading:
    """What a process had to send again by now."""
    found = read_tcp([pid])
    assert isinstance(found, TcpReading)
    return found


@pytest.mark.integration
def test_a_cut_link_shows_at_the_sender(
    link: tuple[str, str], run_in: Callable[[str, str, str], subprocess.Popen[str]]
) -> None:
    """What is sent into a dead cable counts by peer and grows; idle and healthy sockets do not."""
    left, right = link
    server = run_in(right, SERVER, RIGHT)
    client = run_in(left, CLIENT, RIGHT)
    assert sent_again(client.pid) == TcpReading(tcp=(), addresses=(LEFT,))
    assert RIGHT in sent_again(server.pid).addresses

    ip("-n", right, "link", "set", "cable", "down")
    assert client.stdin is not None
    client.stdin.write("go\n")
    client.stdin.flush()

    counts: list[int] = []
    deadline = time.monotonic() + 60
    while (not counts or counts[-1] < 3) and time.monotonic() < deadline:
        time.sleep(0.5)
        for entry in sent_again(client.pid).tcp:
            assert (entry.pid, entry.peer) == (client.pid, f"{RIGHT}:30000")
            counts.append(entry.retransmits or 0)
    assert counts and counts[-1] >= 3 and counts == sorted(counts)
    assert sent_again(server.pid).tcp == ()

    ip("-n", right, "link", "set", "cable", "up")
    deadline = time.monotonic() + 60
    while sent_again(client.pid).tcp and time.monotonic() < deadline:
        time.sleep(0.5)
    assert sent_again(client.pid).tcp == ()


@pytest.mark.integration
def test_a_healthy_connection_sends_nothing_again() -> None:
    """Ordinary traffic of this machine itself is no sign of a cut."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connection,
    ):
        connection.send(b"x")
        assert read_tcp([os.getpid()]) == TcpReading(tcp=(), addresses=())
