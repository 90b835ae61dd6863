"""The file or socket that a process is blocked on, told by its system call.

Only links of /proc are read and the kernel's tables of sockets: nothing touches the file system
that the process waits for. A path that is being opened stands in the process's memory, which is
not read.
"""

from __future__ import annotations

import platform
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from whyhang.collectors import procfs
from whyhang.collectors.masking import shorten_homes
from whyhang.collectors.patient_read import read_patiently
from whyhang.schemas.process import BlockedOn, OsThread

# System calls whose first argument is the descriptor that they wait for.
_BY_NUMBER = {
    "x86_64": {
        0: "read", 1: "write", 16: "ioctl", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev",
        40: "sendfile", 42: "connect", 43: "accept", 44: "send", 45: "recv", 46: "sendmsg",
        47: "recvmsg", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate",
        217: "getdents", 285: "fallocate", 288: "accept", 295: "preadv", 296: "pwritev",
    },
    "aarch64": {
        25: "fcntl", 29: "ioctl", 32: "flock", 46: "ftruncate", 47: "fallocate", 61: "getdents",
        63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread", 68: "pwrite",
        69: "preadv", 70: "pwritev", 71: "sendfile", 82: "fsync", 83: "fdatasync", 202: "accept",
        203: "connect", 206: "send", 207: "recv", 211: "sendmsg", 212: "recvmsg", 242: "accept",
    },
}  # fmt: skip
_CALLS = _BY_NUMBER.get(platform.machine(), {})
_SOCKET = re.compile(r"socket:\[(\d+)\]\Z")
_LONGEST = 1024
# A host with more sockets than this is asked no further.
_MOST_SOCKETS = 200_000


def read_blocked_on(
    pid: int, threads: tuple[OsThread, ...] | None = None, *, home: str = ""
) -> BlockedOn | None:
    """What a thread in D, or else the main thread, waits for; None where /proc does not tell."""
    asleep = next((thread.tid for thread in threads or () if thread.state == "D"), pid)
    data = read_patiently(f"{procfs.PROC}/{pid}/task/{asleep}/syscall")
    words = (data or b"").split()
    if len(words) < 2 or not words[0].isdigit() or (call := _CALLS.get(int(words[0]))) is None:
        return None
    fd = int(words[1], 16)
    try:
        target = str(Path(f"{procfs.PROC}/{pid}/fd/{fd}").readlink())
    except OSError:
        return None
    match = _SOCKET.match(target)
    if match is not None:
        return BlockedOn(call=call, fd=fd, peer=_peer(pid, match[1]))
    return BlockedOn(call=call, fd=fd, path=shorten_homes(target[:_LONGEST], homes=(home,)))


def _peer(pid: int, inode: str) -> str | None:
    """The other end of a TCP connection, ``listening`` where there is none yet."""
    for table in ("tcp", "tcp6"):
        for row in _rows(f"{procfs.PROC}/{pid}/net/{table}"):
            if row[9] == inode:
                address = _address(row[2])
                return "listening" if address is not None and address.endswith(":0") else address
    return None


def _rows(path: str) -> Iterator[list[str]]:
    """The rows of a table of sockets; those that are none are left out."""
    lines = (read_patiently(path) or b"").decode("ascii", "replace").splitlines()
    for line in lines[1:_MOST_SOCKETS]:
        fields = line.split(maxsplit=10)
        if len(fields) > 9:
            yield fields


def _address(text: str) -> str | None:
    """``0100007F:7531`` as ``127.0.0.1:30001``: words in the machine's own byte order."""
    host, _, port = text.partition(":")
    try:
        packed = b"".join(
            struct.pack("=I", int(host[start : start + 8], 16)) for start in range(0, len(host), 8)
        )
        family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
        name = socket.inet_ntop(family, packed).removeprefix("::ffff:")
        return f"[{name}]:{int(port, 16)}" if ":" in name else f"{name}:{int(port, 16)}"
    except (ValueError, struct.error):
        return None
