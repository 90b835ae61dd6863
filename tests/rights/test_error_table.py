"""What py-spy is known to say on other hosts, and what we make of it.

Yama, Docker and old releases cannot be had in a test: their texts are recorded here.
"""

from __future__ import annotations

import pytest

from whyhang.collectors.pyspy_failures import BACKTRACE, MAX_DETAIL, detail, explain
from whyhang.collectors.rights import Guarded, Rights, obstacle
from whyhang.schemas.unread import CURES, UnreadKind

NO_EXE = "Error: Failed to get process executable name. Check that the process is running.\n"
NO_OPEN = "Error: Failed to open process - check if it is running.\n"
NO_STACKS = "Error: Failed to get stack traces\n"
NO_SUSPEND = "    0: Failed to suspend process\n"
DENIED = (
    "Permission Denied: Try running again with elevated permissions by going "
    "'sudo env \"PATH=$PATH\" !!'\n"
)
IN_DOCKER = (
    "It looks like you are running in a docker container. Please make sure you started your "
    "container with the SYS_PTRACE capability. See https://github.com/benfred/py-spy for more\n"
)


def _error(headline: str, *causes: str) -> str:
    listed = "".join(f"    {number}: {cause}\n" for number, cause in enumerate(causes))
    return f"{headline}\nCaused by:\n{listed}\n{BACKTRACE}\n   0: anyhow::error\n   1: main\n"


# stderr, the letter of the process's state afterwards (None: gone), the kind, a second try?
ROWS: dict[str, tuple[str, str | None, UnreadKind, bool]] = {
    "Yama, or another user": (DENIED, "S", "permission", False),
    "Docker without the capability": (DENIED + IN_DOCKER, "S", "permission", False),
    "root without the capability": (
        _error(NO_EXE, "Permission denied (os error 13)", "Permission denied (os error 13)"),
        "S", "permission", False,
    ),
    "attach refused": (
        _error(NO_STACKS, "Failed to suspend process", "EPERM: Operation not permitted"),
        "S", "traced", True,
    ),
    "stopped": (
        _error(NO_STACKS, "Failed to suspend process",
               "unexpected waitpid result PtraceEvent(Pid(7), SIGSTOP, 128) to 7"),
        "T", "stopped", False,
    ),
    "a thread ended": (
        _error(NO_STACKS, "Failed to suspend process", "ESRCH: No such process"), "S", "torn", True
    ),
    "ended while it was attached to": (
        _error(NO_STACKS, "Failed to suspend process", "ESRCH: No such process"), None, "gone",
        False,
    ),
    "an old release in a container": (
        "Error: EPERM: Operation not permitted\n", "S", "unsupported", False
    ),
    "memory is closed": (
        _error(NO_STACKS, "Operation not permitted (os error 1)"), "S", "seccomp", False
    ),
    "no Python": ("Error: Failed to find python version from target process\n", "S", "not_python",
                  True),
    "Python of another build": (
        "Error: Failed to find a python interpreter in the .data section\n", "S", "namespace", False
    ),
    "stripped": (
        "Error: Failed to find _PyRuntime address from symbols\n", "S", "namespace", False
    ),
    "a Python too new": ("Error: Unsupported version of Python: 3.99.0\n", "S", "unsupported",
                         False),
    "pid gone": (_error(NO_EXE, "No such file or directory (os error 2)"), None, "gone", False),
    "pid of another namespace": (
        _error(NO_EXE, "No such file or directory (os error 2)"), "S", "namespace", False
    ),
    "binary not visible here": (
        _error(NO_OPEN, "No such file or directory (os error 2)"), "S", "namespace", False
    ),
    "zombie": (_error(NO_EXE, "No such file or directory (os error 2)"), "Z", "zombie", False),
    "ended during the dump": (
        _error(NO_STACKS, "No such process (os error 3)"), None, "gone", False
    ),
    "frames that do not merge": (
        "Error: Failed to merge native and python frames (Have 3 native and 4 python)\n", "S",
        "unwind", True,
    ),
    "register not readable": (
        _error(NO_STACKS, "UNW_EBADREG: bad register number"), "S", "unwind", False
    ),
    "unwind not possible": (_error(NO_STACKS, "UNW_EINVAL"), "S", "unwind", False),
    "thread moved": (
        _error("Error: Failed to copy PyThreadState\n", "Bad address (os error 14)"), "S", "torn",
        True,
    ),
    "frame moved": (
        _error("Error: Failed to copy PyFrameObject\n", "Bad address (os error 14)"), "S", "torn",
        True,
    ),
    "memory moved": (_error("Error: Bad address (os error 14)\n"), "S", "torn", True),
    "frames without end": ("Error: Max frame recursion depth reached\n", "S", "torn", True),
    "threads without end": ("Error: Max thread recursion depth reached\n", "S", "torn", True),
    "flags exclude each other": (
        "Can't get native stack traces with the --nonblocking option.\n", "S", "other", False
    ),
    "macOS": ("This program requires root on OSX.\n", "S", "permission", False),
    "unheard of": ("Error: something new\n", "S", "other", False),
    "no word": ("", "S", "other", False),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_each_text_has_its_kind_and_cure(row: str) -> None:
    """Headline, cause and the state of the process decide together."""
    stderr, state, kind, retry = ROWS[row]
    failure = explain(stderr, state=state, exists=state is not None)
    assert failure.kind == kind
    assert failure.reason.startswith("py-spy: ")
    assert (failure.retry_after_seconds is not None) is retry
    assert failure.cure == CURES[kind]
    assert bool(failure.cure) is (kind not in ("gone", "zombie"))


def test_what_is_unknown_is_quoted() -> None:
    """A text that we do not know is passed on, in one short line and without its backtrace."""
    failure = explain(
        "Error: a\n\nCaused by:\n  b\n\nStack backtrace:\n  c", state="S", exists=True
    )
    assert failure.reason == "py-spy: Error: a / Caused by: / b"
    assert len(detail("x" * 5000)) <= MAX_DETAIL


USER = Rights(uid=1000, capabilities=0)
ROOT = Rights(uid=0, capabilities=1 << 19)
OWN = Guarded(owners=frozenset((1000,)))


@pytest.mark.parametrize(
    ("rights", "guarded", "words"),
    [
        (Rights(uid=1000, capabilities=0, yama=1), OWN, "ptrace_scope is 1"),
        (Rights(uid=1000, capabilities=0, yama=2), OWN, "ptrace_scope is 2"),
        (Rights(uid=0, capabilities=1 << 19, yama=3), OWN, "ptrace_scope is 3"),
        (Rights(uid=0, capabilities=1 << 19, yama=2), OWN, None),
        (USER, OWN, None),
        (USER, Guarded(owners=frozenset((0,))), "runs as user 0, whyhang as user 1000"),
        (USER, Guarded(owners=frozenset((1000, 0))), "runs as user 0"),
        (USER, Guarded(owners=frozenset((1000,)), capabilities=1 << 21), "capabilities"),
        (USER, Guarded(owners=frozenset((1000,)), dumpable=False), "PR_SET_DUMPABLE"),
        (ROOT, Guarded(owners=frozenset((5,)), capabilities=1 << 21, dumpable=False), None),
        (Rights(uid=0), Guarded(owners=frozenset((5,))), None),
    ],
)
def test_the_rule_of_the_kernel_is_named(
    rights: Rights, guarded: Guarded, words: str | None
) -> None:
    """Owner, capabilities, the target's own wish, then Yama; the capability overrides all but 3."""
    found = obstacle(rights, guarded)
    assert found is None if words is None else found is not None and words in found
