"""A FUSE file system that tells of its files and never delivers what is in them.

``python -I -S dead_fuse.py MOUNTPOINT direct|cached`` mounts it (which needs root), prints
``mounted`` and serves until it is killed; the kernel then answers all waiting readers with an
error. ``direct`` readers wait for the server itself (state S), ``cached`` ones for a page of the
cache (state D). Speaks the kernel's protocol over /dev/fuse: no library is needed.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

HEADER = struct.Struct("<IIQQ")  # length, operation, number, node; 16 bytes of caller follow
HEADER_BYTES = 40
REPLY = struct.Struct("<IiQ")  # length, error, number
ATTRIBUTES = struct.Struct("<6Q10I")
ENTRY = struct.Struct("<4Q2I")
# Version and limits; the kernel reads 64 bytes.
GREETING = struct.Struct("<4I2H2I2H8I")

LOOKUP, FORGET, GETATTR, OPEN, READ = 1, 2, 3, 14, 15
RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 18, 25, 26, 27, 29
INTERRUPT, FORGET_MANY = 36, 42
# Nobody waits for an answer to these; of a read, everybody does in vain.
UNANSWERED = frozenset((FORGET, FORGET_MANY, INTERRUPT, READ))

ROOT, FILE = 1, 2
FILE_BYTES = 1 << 20
CACHE_SECONDS = 3600
ASYNC_READ = 1
DIRECT_IO = 1
NOT_IMPLEMENTED = -38


def attributes(node: int) -> bytes:
    """What stat(2) is to see of the root directory or of a file."""
    is_root = node == ROOT
    mode = stat.S_IFDIR | 0o755 if is_root else stat.S_IFREG | 0o444
    size = 0 if is_root else FILE_BYTES
    return ATTRIBUTES.pack(node, size, size // 512, *[0] * 6, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation: int, node: int, flags: int, *, cached: bool) -> bytes | None:
    """The payload of an answer; None for what this file system does not have."""
    if operation == INIT:
        wanted = flags & ASYNC_READ if cached else 0
        return GREETING.pack(7, 31, 1 << 17, wanted, 16, 12, 1 << 17, 1, 32, 0, *[0] * 8)
    if operation == LOOKUP:
        return ENTRY.pack(FILE, 0, CACHE_SECONDS, CACHE_SECONDS, 0, 0) + attributes(FILE)
    if operation == GETATTR:
        return struct.pack("<QII", CACHE_SECONDS, 0, 0) + attributes(node)
    if operation in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, 0 if cached else DIRECT_IO, 0)
    if operation in (RELEASE, RELEASEDIR, FLUSH):
        return b""
    return None


def serve(device: int, *, cached: bool) -> None:
    """Answer the kernel until it unmounts the file system."""
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return
        _length, operation, number, node = HEADER.unpack_from(request)
        if operation in UNANSWERED:
            continue
        # The only answer that depends on what was asked is INIT's, on the fourth word.
        flags = struct.unpack_from("<I", request, HEADER_BYTES + 12)[0] if operation == INIT else 0
        payload = answer(operation, node, flags, cached=cached)
        error = NOT_IMPLEMENTED if payload is None else 0
        payload = payload or b""
        os.write(device, REPLY.pack(REPLY.size + len(payload), error, number) + payload)


def mount(device: int, place: str) -> None:
    """Mount the file system of an open /dev/fuse. Raises OSError where that is refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"dead", place.encode(), b"fuse", 0, options) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)


def main(place: str, mode: str) -> None:
    """Mount and serve."""
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(device, place)
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    serve(device, cached=mode == "cached")


if __name__ == "__main__":
    main(*sys.argv[1:])
