"""What a host's properties mean for collecting: pure judgements, each with its cure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from whyhang.collectors.ras_safety import Policy, RasBudget, RasSituation, permit
from whyhang.collectors.ras_version import LoadedNccl
from whyhang.collectors.rights import Guarded, Rights, obstacle
from whyhang.schemas.missing import Missing
from whyhang.schemas.unread import CURES, Unread

Status = Literal["ok", "warn", "fail", "unknown"]
# py-spy 0.4.3 reads Pythons up to this.
NEWEST_PYTHON = (3, 14)
OLDEST_PYSPY = (0, 4, 0)
QUALIFIED_PYSPY = (0, 4, 3)
_GIGABYTE = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One property of the host: what was found, and what to do where that is not well."""

    name: str
    status: Status
    found: str
    cure: str = ""


def rights(own: Rights, guarded: Mapping[int, Guarded], read: Collection[int] = ()) -> Check:
    """Whether the kernel lets this process read the job's, by pid; ``read`` were in fact."""
    name = "ptrace rights"
    if own.capabilities is None:
        return Check(name=name, status="unknown", found="the capabilities could not be read")
    unread = {f"process {pid}: ": guarded[pid] for pid in sorted(guarded) if pid not in read}
    if not guarded:
        unread = {"": Guarded(owners=frozenset((own.uid,)))}
    for whose, target in unread.items():
        why = obstacle(own, target)
        if why is not None:
            return Check(name=name, status="fail", found=f"{whose}{why}", cure=CURES["permission"])
    found = "CAP_SYS_PTRACE" if own.capable else "processes of this user can be read, no others"
    return Check(name=name, status="ok", found=found)


def seccomp(own: Rights, attach: Unread | None) -> Check:
    """Whether a filter of system calls keeps py-spy from its work; ``attach`` is a trial's end."""
    name = "seccomp"
    if not own.filtered:
        return Check(name=name, status="ok", found="no filter")
    if attach is not None and attach.kind == "seccomp":
        return Check(
            name=name, status="warn", found="a filter forbids ptrace", cure=CURES["seccomp"]
        )
    return Check(name=name, status="ok", found="a filter, which does not stand in the way")


def trial(reading: Unread | None, attach: Unread | None, seconds: float) -> Check:
    """Whether a process that whyhang started for the purpose was read, and could be attached to."""
    name = "reading a stack"
    if reading is not None:
        return Check(name=name, status="fail", found=reading.reason, cure=reading.cure)
    found = f"a process of ours was read in {seconds:.2f} s"
    if attach is not None:
        found += f", but native frames cannot be read: {attach.reason}"
        return Check(name=name, status="warn", found=found, cure=attach.cure)
    return Check(name=name, status="ok", found=f"{found}, and attached to")


def job_stacks(tried: Mapping[int, Unread | None], closed: Collection[int] = ()) -> Check:
    """Whether the job's own processes were read, by pid, without being stopped.

    ``closed`` are Python programs of which nobody can tell from here whether they are the job.
    """
    name = "stacks of the job"
    if not tried and closed:
        shown = ", ".join(map(str, sorted(closed)[:8])) + (", …" if len(closed) > 8 else "")
        found = f"no process with a rank could be read; closed to this user: {shown}"
        cure = f"--pid PID names the job; {CURES['permission']}"
        return Check(name=name, status="unknown", found=found, cure=cure)
    if not tried:
        return Check(name=name, status="unknown", found="no process with a rank runs here")
    for pid, failure in sorted(tried.items()):
        if failure is not None:
            found = f"process {pid}: {failure.reason}"
            return Check(name=name, status="fail", found=found, cure=failure.cure)
    return Check(name=name, status="ok", found=f"{len(tried)} of its processes were read")


def pyspy(binary: str | Missing, version: str | None) -> Check:
    """Whether py-spy is there, and new enough."""
    name = "py-spy"
    if isinstance(binary, Missing):
        return Check(name=name, status="fail", found=binary.reason, cure=CURES["no_tool"])
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


def namespace(inner: Collection[int], *, hidden: bool, foreign_proc: bool) -> Check:
    """Whether the job's processes are seen as they see themselves.

    ``inner`` are those in a PID namespace below ours; ``hidden``: /proc hides other users';
    ``foreign_proc``: it is not that of the namespace we are in.
    """
    name = "PID namespace"
    if foreign_proc:
        found = "/proc belongs to another PID namespace: its numbers are not ours"
        cure = "mount a /proc of this namespace (`unshare --mount-proc`, `nsenter -m`)"
        return Check(name=name, status="fail", found=found, cure=cure)
    if hidden:
        found = "/proc is mounted with hidepid: other users' processes are invisible"
        return Check(name=name, status="warn", found=found, cure="run as the job's user or as root")
    if inner:
        pid = min(inner)
        found = f"process {pid} lives in a container's namespace: native frames cannot be read"
        cure = f"run inside the container, or `nsenter -t {pid} -p -m whyhang collect`"
        return Check(name=name, status="warn", found=found, cure=cure)
    return Check(name=name, status="ok", found="the job's processes are in this one")


def log(path: str | None, preset: str | None, *, has_job: bool, closed: bool = False) -> Check:
    """Whether progress can be read from a log; ``closed``: the job's open files are, to us."""
    name = "training log"
    if path is None and not has_job:
        found = "no job runs here and no log was named"
        return Check(name=name, status="unknown", found=found, cure="--log FILE checks one")
    if path is None and closed:
        found = "the job's open files could not be read, so its log was not found"
        cure = f"name the log: --log FILE, or progress.log of hang.yaml; else {CURES['permission']}"
        return Check(name=name, status="fail", found=found, cure=cure)
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
    """Which NCCL the job has loaded."""
    name = "NCCL"
    if isinstance(versions, Missing):
        return Check(name=name, status="unknown", found=versions.reason)
    spelled = " and ".join(".".join(map(str, version)) for version in versions)
    found = spelled + (f" at {path}" if path else "")
    if len(set(versions)) > 1:
        cure = "uninstall all but one nvidia-nccl wheel, and look for NCCL in LD_LIBRARY_PATH"
        return Check(name=name, status="warn", found=f"two versions at once: {found}", cure=cure)
    return Check(name=name, status="ok", found=found)


def ras(policy: Policy, library: LoadedNccl | Missing, *, enabled: bool = True) -> Check:
    """What ``collect: ras:`` would do in a hang of this job; ``enabled``: not off in the job."""
    name = "NCCL RAS"
    at_best = RasSituation(stepped=True, creating_communicator=False, all_alive=True)
    form = permit(policy, library, at_best, RasBudget())
    if isinstance(form, Missing):
        known = isinstance(library, LoadedNccl) and policy != "never"
        found = f"`ras: {policy}` never asks: {form.reason}"
        return Check(
            name=name,
            status="warn" if known else "unknown",
            found=found,
            cure="NCCL 2.29.2 or newer answers RAS safely" if known else "",
        )
    if not enabled:
        found = "the job has switched it off"
        return Check(name=name, status="warn", found=found, cure="unset NCCL_RAS_ENABLE")
    found = f"`ras: {policy}` asks in a hang, as {form}, after the first step"
    doubt = permit(policy, library, replace(at_best, all_alive=None), RasBudget())
    if isinstance(doubt, Missing):
        found += f", and only while all ranks live: {doubt.reason}"
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


def exchange(url: str) -> Check:
    """That a configured meeting place of the nodes' watchers is not used yet."""
    found = f"{url}: not built yet, each node is judged alone"
    cure = "unset store.exchange; run `whyhang collect` on every node (`srun --overlap`)"
    return Check(name="exchange", status="warn", found=found, cure=cure)


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
