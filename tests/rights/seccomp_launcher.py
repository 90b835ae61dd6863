"""Starts a command under a seccomp filter: ``seccomp_launcher.py ACTION NUMBER,… COMMAND…``.

ACTION is ``refuse`` (the call fails with EPERM, as in containers) or ``kill``. The filter is
inherited by all that the command starts. The program is classic BPF, eight bytes an instruction
(seccomp(2)); the numbers are those of this machine's own architecture.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW = 0x7FFF0000
ACTIONS = {"refuse": 0x00050000 | errno.EPERM, "kill": 0x80000000}


def assemble(action: int, numbers: list[int]) -> bytes:
    """Load the number of the call; any of ours jumps over the ALLOW."""
    program = [(LOAD_NUMBER, 0, 0, 0)]
    for place, number in enumerate(numbers):
        program.append((JUMP_IF_EQUAL, len(numbers) - place, 0, number))
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, action)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(filter_bytes: bytes) -> None:
    """Put this process, and all it starts, under the filter."""
    buffer = ctypes.create_string_buffer(filter_bytes, len(filter_bytes))
    program = Program(len(filter_bytes) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    install(assemble(ACTIONS[sys.argv[1]], [int(word) for word in sys.argv[2].split(",")]))
    os.execv(sys.argv[3], sys.argv[3:])
