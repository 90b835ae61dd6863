"""What a host's properties mean for collecting: pure judgements, each with its cure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from whyhang.schemas.missing import Missing

Status = Literal["ok", "warn", "fail", "unknown"]
# py-spy 0.4.3 reads Pythons up to this.
NEWEST_PYTHON = (3, 14)
OLDEST_PYTHON = (2, 3)
OLDEST_PYSPY = (0, 4, 0)
QUALIFIED_PYSPY = (0, 4, 3)
RAS_SINCE = (2, 24, 0)
_PTRACE_CURE = (
    "run whyhang as root; or `setcap cap_sys_ptrace=eip` on the py-spy binary; or `sysctl -w "
    "kernel.yama.ptrace_scope=0`; in a container `--cap-add SYS_PTRACE`, on Kubernetes "
    "securityContext.capabilities.add: [SYS_PTRACE]"
)
_GIGABYTE = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One property of the host: what was found, and what to do where that is not well."""

    name: str
    status: Status
    found: str
    cure: str = ""


def rights(*, capable: bool | None, uid: int, yama: int | None, owners: Collection[int]) -> Check:
    """Whether the kernel lets this process trace the job's; ``owners`` are its users' numbers.

    ``capable``: CAP_SYS_PTRACE is effective. ``yama``: ``kernel.yama.ptrace_scope``, None without.
    """
    name = "ptrace rights"
    if capable is None:
        return Check(name=name, status="unknown", found="the capabilities could not be read")
    if yama == 3:
        found = "kernel.yama.ptrace_scope is 3: nobody may trace"
        return Check(name=name, status="fail", found=found, cure="only a reboot changes it")
    if capable:
        return Check(name=name, status="ok", found="CAP_SYS_PTRACE")
    if yama:
        found = f"no CAP_SYS_PTRACE, and kernel.yama.ptrace_scope is {yama}"
        return Check(name=name, status="fail", found=found, cure=_PTRACE_CURE)
    others = sorted(owner for owner in owners if owner != uid)
    if others:
        found = f"no CAP_SYS_PTRACE, and the job runs as user {others[0]}, not {uid}"
        return Check(
            name=name, status="fail", found=found, cure=f"run as that user; or {_PTRACE_CURE}"
        )
    return Check(name=name, status="ok", found="processes of this user can be read, no others")


def trial(reason: str | None, seconds: float | None) -> Check:
    """Whether py-spy read a process that whyhang started for the purpose; ``reason`` why not."""
    name = "reading a stack"
    if reason is None:
        found = "a process of ours was read" + (f" in {seconds:.2f} s" if seconds else "")
        return Check(name=name, status="ok", found=found)
    cure = "" if ";" in reason else _PTRACE_CURE if "denied" in reason else "see `py-spy dump`"
    found, _, said = reason.partition("; ")
    return Check(name=name, status="fail", found=found, cure=said or cure)


def pyspy(binary: str | Missing, version: str | None) -> Check:
    """Whether py-spy is there, and new enough."""
    name = "py-spy"
    if isinstance(binary, Missing):
        return Check(name=name, status="fail", found=binary.reason, cure="pip install py-spy")
    numbers = version_numbers(version)
    if numbers is None:
        found = f"{binary}, of unknown version"
        return Check(name=name, status="warn", found=found, cure="pip install -U py-spy")
    found = f"{version} at {binary}"
    if numbers < OLDEST_PYSPY:
        return Check(name=name, status="fail", found=found, cure="pip install -U 'py-spy>=0.4'")
    if numbers < QUALIFIED_PYSPY:
        found += ": names of functions come without their class"
        return Check(name=name, status="warn", found=found, cure="pip install -U py-spy")
    return Check(name=name, status="ok", found=found)


def pythons(versions: Mapping[int, str | None]) -> Check:
    """Whether py-spy knows the Pythons of the job; by pid, None where the version is unknown."""
    name = "Python of the job"
    if not versions:
        return Check(name=name, status="unknown", found="no process with a rank runs here")
    told = {text: version_numbers(text) for text in versions.values() if text}
    newer = sorted(
        text for text, numbers in told.items() if numbers and numbers[:2] > NEWEST_PYTHON
    )
    if newer:
        found = f"{newer[0]} is newer than what py-spy is known to read"
        return Check(name=name, status="warn", found=found, cure="pip install -U py-spy")
    if len([text for text in versions.values() if text]) < len(versions):
        seen = ", ".join(sorted(told)) or "none"
        found = f"the version of some processes is unknown; known: {seen}"
        return Check(name=name, status="unknown", found=found)
    return Check(name=name, status="ok", found=", ".join(sorted(told)))


def namespace(inner: Collection[int], *, hidden: bool) -> Check:
    """Whether the job's processes are seen as they see themselves.

    ``inner`` are those in a PID namespace below ours; ``hidden``: /proc hides other users'.
    """
    name = "PID namespace"
    if hidden:
        found = "/proc is mounted with hidepid: other users' processes are invisible"
        return Check(name=name, status="warn", found=found, cure="run as the job's user or as root")
    if inner:
        pid = min(inner)
        found = f"process {pid} lives in a container's namespace: native frames cannot be read"
        cure = f"run inside the container, or `nsenter -t {pid} -p -m whyhang collect`"
        return Check(name=name, status="warn", found=found, cure=cure)
    return Check(name=name, status="ok", found="the job's processes are in this one")


def log(path: str | None, preset: str | None, *, has_job: bool) -> Check:
    """Whether progress can be read from a log."""
    name = "training log"
    if path is None and not has_job:
        found = "no job runs here and no log was named"
        return Check(name=name, status="unknown", found=found, cure="--log FILE checks one")
    if path is None:
        found = "the job writes to no file"
        cure = "redirect its output to a file, or name the log in progress.log of hang.yaml"
        return Check(name=name, status="fail", found=found, cure=cure)
    if preset is None:
        found = f"{path}: no preset finds progress in it"
        cure = f"`whyhang progress {path} --pattern …` tests one of your own for progress.pattern"
        return Check(name=name, status="warn", found=found, cure=cure)
    if preset == "lines":
        found = f"{path}: any line counts, the weakest signal"
        return Check(name=name, status="warn", found=found, cure="set progress.pattern")
    return Check(name=name, status="ok", found=f"{path}, preset {preset}")


def buffering(unbuffered: Mapping[int, bool | None]) -> Check:
    """Whether the job's Python writes each line at once; by pid, None where unknown."""
    name = "buffering"
    if not unbuffered:
        return Check(name=name, status="unknown", found="no process with a rank runs here")
    late = sorted(pid for pid, at_once in unbuffered.items() if at_once is False)
    if late:
        found = f"process {late[0]} may hold its lines back for minutes: progress comes in bursts"
        cure = "start it with PYTHONUNBUFFERED=1 or `python -u`; `whyhang run` sets it"
        return Check(name=name, status="warn", found=found, cure=cure)
    if None in unbuffered.values():
        return Check(name=name, status="unknown", found="its environment could not be read")
    return Check(name=name, status="ok", found="lines are written at once")


def nccl(versions: Sequence[tuple[int, int, int]] | Missing, path: str | None) -> Check:
    """Which NCCL the job has loaded, and whether it can tell of itself (RAS)."""
    name = "NCCL"
    if isinstance(versions, Missing):
        return Check(name=name, status="unknown", found=versions.reason)
    spelled = " and ".join(".".join(map(str, version)) for version in versions)
    found = spelled + (f" at {path}" if path else "")
    if len(set(versions)) > 1:
        cure = "uninstall all but one nvidia-nccl wheel, and look for NCCL in LD_LIBRARY_PATH"
        return Check(name=name, status="warn", found=f"two versions at once: {found}", cure=cure)
    if versions and versions[0] < RAS_SINCE:
        found += ": it has no RAS"
        return Check(name=name, status="warn", found=found, cure="NCCL 2.24 or newer has RAS")
    return Check(name=name, status="ok", found=found)


def space(what: str, path: str, free_bytes: int | Missing, *, wanted_bytes: int) -> Check:
    """Whether evidence can be kept at a place."""
    if isinstance(free_bytes, Missing):
        cure = (
            "set store.path to a directory that can be written" if what == "store" else "set TMPDIR"
        )
        return Check(name=what, status="fail", found=f"{path}: {free_bytes.reason}", cure=cure)
    found = f"{path}: {free_bytes / _GIGABYTE:.1f} GB free"
    if free_bytes < wanted_bytes:
        cure = "make room, or set store.path" if what == "store" else "make room, or set TMPDIR"
        status: Status = "fail" if free_bytes < wanted_bytes / 10 else "warn"
        return Check(name=what, status=status, found=found, cure=cure)
    return Check(name=what, status="ok", found=found)


def exchange(url: str | None, trouble: str | None) -> Check:
    """Whether the place where the nodes' watchers meet can be used."""
    name = "exchange"
    if url is None:
        found = "none: this node is judged alone"
        return Check(name=name, status="ok", found=found)
    if trouble is not None:
        cure = "make it a directory that all nodes can write, outside the disk under suspicion"
        return Check(name=name, status="fail", found=f"{url}: {trouble}", cure=cure)
    return Check(name=name, status="ok", found=url)


def gpus(count: int | Missing, *, has_device: bool) -> Check:
    """Whether the GPUs can be asked."""
    name = "GPUs"
    if isinstance(count, Missing):
        status: Status = "warn" if has_device else "unknown"
        cure = (
            "put nvidia-smi on PATH; a driver that does not answer is a finding"
            if has_device
            else ""
        )
        return Check(name=name, status=status, found=count.reason, cure=cure)
    return Check(name=name, status="ok", found=f"{count} answer to nvidia-smi")


def kernel_log(trouble: str | None) -> Check:
    """Whether the kernel's own words (Xid, hung tasks, OOM) can be read."""
    name = "kernel log"
    if trouble is not None:
        cure = "run as root, or `sysctl -w kernel.dmesg_restrict=0`"
        return Check(name=name, status="warn", found=trouble, cure=cure)
    return Check(name=name, status="ok", found="readable")


def version_numbers(text: str | None) -> tuple[int, ...] | None:
    """The numbers of ``0.4.3`` or ``py-spy 0.4.3``; None where there are none."""
    match = re.search(r"\d{1,4}(?:\.\d{1,4})+", text or "")
    return None if match is None else tuple(int(part) for part in match[0].split("."))
