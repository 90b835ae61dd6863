"""What py-spy's error texts mean.

py-spy ends with status 1 whatever went wrong; its headline can mislead (a process that may not be
read "is not running"), so headline, cause and the state of the process decide together.
"""

from __future__ import annotations

from whyhang.schemas.unread import Unread, UnreadKind

BACKTRACE = "Stack backtrace:"
MAX_DETAIL = 300

# In this order: the first text found decides.
_TABLE: tuple[tuple[str, UnreadKind, str, float | None], ...] = (
    ("permission denied: try running again", "permission", "permission denied", None),
    ("unexpected waitpid result", "stopped", "the process is stopped", None),
    ("can't get native stack traces with the --nonblocking", "other",
     "native and nonblocking exclude each other", None),
    ("native stack traces are not supported", "unwind",
     "this py-spy reads no native frames", None),
    ("failed to merge native and python frames", "unwind",
     "native and Python frames could not be merged: the stack changed meanwhile", 0.0),
    ("unw_e", "unwind", "libunwind cannot unwind this binary", None),
    ("failed to find python version", "not_python", "no Python interpreter found", 2.0),
    ("unsupported version of python", "unsupported", "this Python is newer than py-spy", None),
    ("failed to find a python interpreter", "namespace",
     "no Python interpreter found in the binary", None),
    ("failed to find _pyruntime", "namespace", "the symbols of this Python are stripped", None),
    ("requires root on osx", "permission", "needs root on macOS", None),
    ("failed to suspend process", "traced",
     "could not attach: traced already, or in an uninterruptible wait", 0.2),
    ("recursion depth reached", "torn", "the stack changed while it was read", 0.0),
    ("failed to copy py", "torn", "memory moved while it was read", 0.0),
    ("bad address (os error 14)", "torn", "memory moved while it was read", 0.0),
    ("error: eperm", "unsupported", "too old to enter the mount namespace of a container", None),
    ("permission denied (os error 13)", "permission", "permission denied", None),
    ("operation not permitted", "seccomp", "reading another process's memory is forbidden", None),
)  # fmt: skip


def explain(stderr: str, *, state: str | None, exists: bool) -> Unread:
    """Turn what py-spy wrote into a reason.

    ``state`` is the kernel's letter for the process now (None unknown), ``exists`` whether there
    is still such a process.
    """
    if not exists:
        return Unread(kind="gone", reason="py-spy: the process ended")
    if state == "Z":
        return Unread(kind="zombie", reason="py-spy: the process is a zombie, it has no stack")
    text = stderr.lower()
    if "esrch" in text or "no such process" in text:
        # The process is there: a thread of it ended.
        return Unread(
            kind="torn", reason="py-spy: a thread ended meanwhile", retry_after_seconds=0.0
        )
    if "no such file or directory" in text:
        return Unread(kind="namespace", reason="py-spy: its files are not visible here")
    for sign, kind, meaning, retry in _TABLE:
        if sign in text:
            return Unread(kind=kind, reason=f"py-spy: {meaning}", retry_after_seconds=retry)
    return Unread(kind="other", reason=f"py-spy: {detail(stderr) or 'failed without a word'}")


def detail(stderr: str) -> str:
    """What py-spy said, in one line, without its backtrace."""
    said = stderr.partition(BACKTRACE)[0]
    return " / ".join(line.strip() for line in said.splitlines() if line.strip())[:MAX_DETAIL]
