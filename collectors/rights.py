"""What the kernel lets this process read of others, and which rule of it stands in the way.

The order is the kernel's (ptrace(2), "Ptrace access mode checking"): owner, capabilities, what the
target itself forbids, Yama; a seccomp filter refuses the call itself, whoever makes it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from whyhang.collectors import procfs
from whyhang.schemas.unread import Unread

_CAP_SYS_PTRACE = 19
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """This process's own; None where /proc does not tell. ``yama`` is 0 without that module."""

    uid: int
    capabilities: int | None = None
    yama: int = 0
    filtered: bool = False

    @property
    def capable(self) -> bool:
        """Whether CAP_SYS_PTRACE is effective."""
        return bool((self.capabilities or 0) >> _CAP_SYS_PTRACE & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What protects another process: its owner, its capabilities, whether it may be dumped."""

    owners: frozenset[int] = frozenset()
    capabilities: int = 0
    dumpable: bool = True


def read_rights() -> Rights:
    """The rights of this process, which py-spy inherits."""
    status = procfs.read_status(os.getpid())
    scope = 0
    with contextlib.suppress(OSError, ValueError):
        scope = int(_YAMA.read_text())
    return Rights(
        uid=os.geteuid(),
        capabilities=int(status["CapEff"], 16) if "CapEff" in status else None,
        yama=scope,
        filtered=status.get("Seccomp", "0") != "0",
    )


def read_guarded(pid: int) -> Guarded | None:
    """What protects a process; None where it is gone."""
    status = procfs.read_status(pid)
    if "Uid" not in status:
        return None
    owners = frozenset(map(int, status["Uid"].split()[:3]))
    owner = next(iter(owners))
    with contextlib.suppress(OSError):
        # The kernel gives the files of a process that may not be dumped to root.
        owner = Path(f"{procfs.PROC}/{pid}/environ").stat().st_uid
    return Guarded(
        owners=owners, capabilities=int(status.get("CapPrm", "0"), 16), dumpable=owner in owners
    )


def obstacle(rights: Rights, guarded: Guarded) -> str | None:
    """Why the kernel refuses to let a process be read; None where nothing is known to."""
    if rights.yama == 3:
        return "kernel.yama.ptrace_scope is 3: nobody may trace until a reboot"
    if rights.capable or rights.capabilities is None:
        return None
    lack = "without CAP_SYS_PTRACE"
    others = guarded.owners - {rights.uid}
    if others:
        return f"it runs as user {max(others)}, whyhang as user {rights.uid} {lack}"
    if guarded.capabilities & ~rights.capabilities:
        return f"it has capabilities that whyhang has not, and whyhang runs {lack}"
    if not guarded.dumpable:
        return f"it has forbidden to be read (PR_SET_DUMPABLE), and whyhang runs {lack}"
    if rights.yama:
        return f"kernel.yama.ptrace_scope is {rights.yama}, and whyhang runs {lack}"
    return None


def sharpen(failure: Unread, pid: int) -> Unread:
    """Say what a refusal comes from; py-spy tells a missing right only that it is one."""
    if failure.kind == "unwind" and procfs.read_inner_pid(pid) is not None:
        # It looks for the threads under the numbers that they have in there.
        reason = "py-spy: native frames of a container cannot be read from outside"
        return Unread(kind="namespace", reason=reason)
    if failure.kind not in ("permission", "traced"):
        return failure
    hazard = procfs.dump_hazard(pid) if failure.kind == "traced" else None
    if hazard is not None:
        retry = failure.retry_after_seconds if hazard.kind == "traced" else None
        reason = f"py-spy: could not attach: {hazard.reason}"
        return replace(hazard, reason=reason, retry_after_seconds=retry)
    rights, guarded = read_rights(), read_guarded(pid)
    why = obstacle(rights, guarded) if guarded is not None else None
    if why is not None:
        return Unread(kind="permission", reason=f"py-spy: permission denied: {why}")
    if failure.kind == "traced" and rights.filtered:
        # The tracer may also have gone since: the second try stays.
        reason = "py-spy: could not attach: a seccomp filter forbids ptrace"
        return replace(failure, kind="seccomp", reason=reason)
    return failure
