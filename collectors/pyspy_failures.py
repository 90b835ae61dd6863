"""What py-spy's error texts mean, and what helps.

py-spy ends with status 1 whatever went wrong; its headline can mislead (a process that may not be
read "is not running"), so headline, cause and the state of the process decide together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "permission", "gone", "zombie", "stopped", "traced", "not_python", "unsupported", "namespace",
    "torn", "unwind", "timeout", "no_tool", "garbage", "other",
]  # fmt: skip

_PTRACE_CURE = (
    "needs ptrace rights: root, cap_sys_ptrace on the py-spy binary, kernel.yama.ptrace_scope=0, "
    "or SYS_PTRACE for the container (--cap-add SYS_PTRACE; Kubernetes "
    "securityContext.capabilities.add)"
)
_NAMESPACE_CURE = "run whyhang in the PID namespace of the job (nsenter -t PID -p -m)"
_PYTHON_CURE = "a newer py-spy may know this Python"
BACKTRACE = "Stack backtrace:"
MAX_DETAIL = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no stack. ``retry_after_seconds`` is None where a second try is pointless."""

    kind: FailureKind
    reason: str
    retry_after_seconds: float | None = None


# In this order: the first text found decides.
_TABLE: tuple[tuple[str, FailureKind, str, float | None], ...] = (
    ("permission denied: try running again", "permission", f"permission denied; {_PTRACE_CURE}",
     None),
    ("unexpected waitpid result", "stopped", "the process is stopped", None),
    ("can't get native stack traces with the --nonblocking", "other",
     "native and nonblocking exclude each other", None),
    ("failed to merge native and python frames", "unwind",
     "native and Python frames could not be merged: the stack changed meanwhile", 0.0),
    ("unw_e", "unwind", "libunwind cannot unwind this binary", None),
    ("failed to find python version", "not_python",
     f"no Python interpreter found; {_PYTHON_CURE}", 2.0),
    ("unsupported version of python", "unsupported",
     "this Python is newer than py-spy; upgrade py-spy", None),
    ("failed to find a python interpreter", "namespace",
     f"no Python interpreter found in the binary; {_NAMESPACE_CURE}", None),
    ("failed to find _pyruntime", "namespace",
     f"the symbols of this Python are stripped; {_NAMESPACE_CURE}", None),
    ("requires root on osx", "permission", "needs root on macOS", None),
    ("failed to suspend process", "traced",
     "could not attach: traced already, or in an uninterruptible wait", 0.2),
    ("recursion depth reached", "torn", "the stack changed while it was read", 0.0),
    ("failed to copy py", "torn", "memory moved while it was read", 0.0),
    ("bad address (os error 14)", "torn", "memory moved while it was read", 0.0),
    ("no such process (os error 3)", "gone", "the process ended", None),
    ("esrch", "gone", "the process ended", None),
    ("permission denied (os error 13)", "permission", f"permission denied; {_PTRACE_CURE}", None),
    ("operation not permitted", "permission",
     f"permission denied; {_PTRACE_CURE}, and a seccomp profile that allows process_vm_readv",
     None),
)  # fmt: skip


def explain(stderr: str, *, state: str | None, exists: bool) -> Failure:
    """Turn what py-spy wrote into a reason with its cure.

    ``state`` is the kernel's letter for the process now (None unknown), ``exists`` whether there
    is still such a process.
    """
    if not exists:
        return Failure(kind="gone", reason="py-spy: the process ended")
    if state == "Z":
        return Failure(kind="zombie", reason="py-spy: the process is a zombie, it has no stack")
    text = stderr.lower()
    if "esrch" in text or "no such process" in text:
        # The process is there: a thread of it ended.
        return Failure(kind="torn", reason="py-spy: a thread ended meanwhile",
                       retry_after_seconds=0.0)  # fmt: skip
    if "no such file or directory" in text:
        return Failure(kind="namespace", reason=f"py-spy: its files are not visible here; "
                       f"{_NAMESPACE_CURE}")  # fmt: skip
    for sign, kind, meaning, retry in _TABLE:
        if sign in text:
            return Failure(kind=kind, reason=f"py-spy: {meaning}", retry_after_seconds=retry)
    return Failure(kind="other", reason=f"py-spy: {detail(stderr) or 'failed without a word'}")


def detail(stderr: str) -> str:
    """What py-spy said, in one line, without its backtrace."""
    said = stderr.partition(BACKTRACE)[0]
    return " / ".join(line.strip() for line in said.splitlines() if line.strip())[:MAX_DETAIL]
