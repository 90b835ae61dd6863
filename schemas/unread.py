"""Why stacks were not read: a closed set of reasons, each with what helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

UnreadKind = Literal[
    "permission", "seccomp", "no_tool", "namespace", "unsupported", "not_python", "starting",
    "stopped", "traced", "uninterruptible", "zombie", "gone", "torn", "unwind", "timeout",
    "not_reached", "not_wanted", "garbage", "other",
]  # fmt: skip
UNREAD_KINDS: tuple[UnreadKind, ...] = get_args(UnreadKind)

# Empty where nothing is to be done: the fact itself is the finding.
CURES: Mapping[UnreadKind, str] = {
    "permission": "run whyhang as root; or `setcap cap_sys_ptrace=eip` on the py-spy binary; or "
    "`sysctl -w kernel.yama.ptrace_scope=0`; in a container `--cap-add SYS_PTRACE`, on Kubernetes "
    "securityContext.capabilities.add: [SYS_PTRACE]",
    "seccomp": "run whyhang under a seccomp profile that allows ptrace and process_vm_readv "
    "(`--security-opt seccomp=unconfined`; SYS_PTRACE opens Docker's own)",
    "no_tool": "install py-spy beside whyhang (`pip install py-spy`) or put it on PATH",
    "namespace": "run whyhang inside the job's namespaces: in its container, or by "
    "`nsenter -t PID -p -m`",
    "unsupported": "upgrade py-spy: `pip install -U py-spy`",
    "not_python": "nothing to read where this is no Python; else a newer py-spy may know it",
    "starting": "collect again in a few seconds",
    "stopped": "find out who stopped it; `kill -CONT PID` lets it go on",
    "traced": "end the debugger or strace that holds it, then collect again",
    "uninterruptible": "none from outside: it waits in the kernel, which is the finding",
    "zombie": "",
    "gone": "",
    "torn": "collect again",
    "unwind": "native frames need gdb or eu-stack here; the Python stack does not",
    "timeout": "collect again; a larger collect.timeout helps on a loaded machine",
    "not_reached": "collect again, or name fewer kinds in collect.kinds",
    "not_wanted": "name the kind in collect.kinds",
    "garbage": "upgrade py-spy: `pip install -U py-spy`",
    "other": "try `py-spy dump --pid PID` by hand",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Why there is no stack. ``retry_after_seconds`` is None where a second try is pointless."""

    kind: UnreadKind
    reason: str
    retry_after_seconds: float | None = None

    @property
    def cure(self) -> str:
        """What to do to read it; empty where nothing helps or need be done."""
        return CURES[self.kind]
