"""A port of its own for the NCCL RAS of a job, so that two jobs of a host do not share one.

At the default address any job of the same user may answer. The variable only moves the local
client port: it opens nothing else, older releases ignore it, and where the port proves to be taken
NCCL goes on without it.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "NCCL_RAS_ADDR"
# Below the ports that the kernel gives to outgoing connections by default.
_FIRST, _LAST = 20000, 32000
_TRIES = 50
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST_FILE_BYTES = 1 << 16


def choose_address(environ: Mapping[str, str], marker: str) -> str | None:
    """``localhost:port`` for a job; None where it says something of RAS itself, or none is free."""
    if any(environ.get(name) for name in (VARIABLE, "NCCL_RAS_ENABLE")):
        return None
    # What NCCL reads from files would be overridden by the environment.
    if any(_mentions(path) for path in _files(environ)):
        return None
    last = min(_LAST, _first_outgoing() - 1)
    if last <= _FIRST:
        return None
    begin = int(marker.replace("-", "")[:8], 16)
    for step in range(_TRIES):
        port = _FIRST + (begin + step) % (last - _FIRST)
        if _is_free(port):
            return f"localhost:{port}"
    return None


def _files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    named = environ.get("NCCL_CONF_FILE")
    own = Path(named) if named else Path(environ.get("HOME") or "/") / ".nccl.conf"
    return own, Path("/etc/nccl.conf")


def _mentions(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return VARIABLE.encode() in file.read(_MOST_FILE_BYTES)
    except OSError:
        return True  # it may, and we cannot know


def _first_outgoing() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(_RANGE.read_text().split()[0])
    return _LAST


def _is_free(port: int) -> bool:
    """Whether nobody listens there, on either family that ``localhost`` may mean."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                trial.bind((host, port))
        except OSError:
            if family == socket.AF_INET or not _lacks_v6():
                return False
    return True


def _lacks_v6() -> bool:
    return not Path("/proc/net/if_inet6").exists() or not Path("/proc/net/if_inet6").read_bytes()
