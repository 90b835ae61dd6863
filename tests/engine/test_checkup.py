"""What a host's properties mean for collecting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from whyhang.collectors.ras_version import LoadedNccl
from whyhang.collectors.rights import Guarded, Rights
from whyhang.engine import checkup
from whyhang.engine.checkup import Check, Status
from whyhang.schemas.missing import Missing
from whyhang.schemas.unread import Unread

USER = Rights(uid=1000, capabilities=0)
ROOT = Rights(uid=0, capabilities=1 << 19)
MINE = Guarded(owners=frozenset((1000,)))
OTHERS = Guarded(owners=frozenset((0,)))
DENIED = Unread(kind="permission", reason="denied")


def _nccl(*version: int) -> LoadedNccl:
    major, minor, patch = version
    return LoadedNccl(versions=((major, minor, patch),), method="library")


CASES: dict[str, tuple[Check, Status, str]] = {
    "capability": (checkup.rights(ROOT, {7: OTHERS}), "ok", "CAP_SYS_PTRACE"),
    "yama": (
        checkup.rights(replace(USER, yama=1), {}), "fail", "ptrace_scope is 1"
    ),
    "yama 3 holds for all": (
        checkup.rights(replace(ROOT, yama=3), {}), "fail", "until a reboot"
    ),
    "same user": (checkup.rights(USER, {7: MINE}), "ok", "of this user"),
    "rights without a job": (checkup.rights(USER, {}), "ok", "of this user"),
    "other user": (checkup.rights(USER, {7: MINE, 8: OTHERS}), "fail", "process 8: it runs as"),
    "more capabilities": (
        checkup.rights(USER, {7: replace(MINE, capabilities=2)}), "fail", "has capabilities"
    ),
    "undumpable": (
        checkup.rights(USER, {7: replace(MINE, dumpable=False)}), "fail", "PR_SET_DUMPABLE"
    ),
    "read in spite of it": (checkup.rights(USER, {8: OTHERS}, read=[8]), "ok", "this user"),
    "unread rights": (
        checkup.rights(replace(USER, capabilities=None), {}), "unknown", "could not be read"
    ),
    "no filter": (checkup.seccomp(USER, None), "ok", "no filter"),
    "harmless filter": (checkup.seccomp(replace(USER, filtered=True), None), "ok", "a filter"),
    "filter": (
        checkup.seccomp(replace(USER, filtered=True), Unread(kind="seccomp", reason="")),
        "warn", "forbids ptrace",
    ),
    "stack read": (checkup.trial(None, None, 0.04), "ok", "0.04 s"),
    "stack refused": (checkup.trial(DENIED, DENIED, 0.1), "fail", "denied"),
    "attaching refused": (checkup.trial(None, DENIED, 0.1), "warn", "native frames"),
    "job read": (checkup.job_stacks({7: None, 8: None}), "ok", "2 of its"),
    "job partly read": (checkup.job_stacks({7: None, 8: DENIED}), "fail", "process 8: denied"),
    "closed to us": (checkup.job_stacks({}, closed=[9, 7]), "unknown", "closed to this user: 7, 9"),
    "no job to read": (checkup.job_stacks({}), "unknown", "no process"),
    "no py-spy": (checkup.pyspy(Missing("py-spy: not found"), None), "fail", "not found"),
    "old py-spy": (checkup.pyspy("/b/py-spy", "py-spy 0.3.14"), "fail", "0.3.14"),
    "py-spy without classes": (checkup.pyspy("/b/py-spy", "py-spy 0.4.1"), "warn", "class"),
    "py-spy": (checkup.pyspy("/b/py-spy", "py-spy 0.4.3"), "ok", "0.4.3"),
    "odd py-spy": (checkup.pyspy("/b/py-spy", "py-spy"), "warn", "unknown version"),
    "no job": (checkup.pythons({}), "unknown", "no process"),
    "known Pythons": (checkup.pythons({1: "3.8.1", 2: "3.13.0"}), "ok", "3.13.0, 3.8.1"),
    "too new a Python": (checkup.pythons({1: "3.99.0", 2: "3.8"}), "warn", "3.99.0"),
    "unread Python": (checkup.pythons({1: None, 2: "3.8"}), "unknown", "3.8"),
    "own namespace": (checkup.namespace([], hidden=False, foreign_proc=False), "ok", "in this one"),
    "container": (
        checkup.namespace([77, 9], hidden=False, foreign_proc=False), "warn", "process 9"
    ),
    "hidepid": (
        checkup.namespace([], hidden=True, foreign_proc=False), "warn", "hidepid"
    ),
    "foreign /proc": (
        checkup.namespace([], hidden=False, foreign_proc=True), "fail", "another PID namespace"
    ),
    "nothing to read": (checkup.log(None, None, has_job=False), "unknown", "no job"),
    "no log": (checkup.log(None, None, has_job=True), "fail", "no file"),
    "closed log": (checkup.log(None, None, has_job=True, closed=True), "fail", "open files"),
    "no preset": (checkup.log("a.log", None, has_job=True), "warn", "no preset"),
    "any line": (checkup.log("a.log", "lines", has_job=True), "warn", "weakest"),
    "preset": (checkup.log("a.log", "megatron", has_job=True), "ok", "megatron"),
    "buffered": (checkup.buffering({7: False, 8: True}), "warn", "process 7"),
    "buffering unread": (checkup.buffering({7: None}), "unknown", "could not be read"),
    "unbuffered": (checkup.buffering({7: True}), "ok", "at once"),
    "NCCL": (checkup.nccl([(2, 27, 3)], "/l/libnccl.so.2"), "ok", "2.27.3 at /l"),
    "two NCCLs": (checkup.nccl([(2, 21, 5), (2, 27, 3)], None), "warn", "two versions"),
    "no NCCL": (checkup.nccl(Missing("none mapped"), None), "unknown", "none mapped"),
    "room": (checkup.space("store", "/s", 5 * 10**9, wanted_bytes=10**9), "ok", "5.0 GB"),
    "little room": (checkup.space("store", "/s", 5 * 10**8, wanted_bytes=10**9), "warn", "0.5"),
    "no room": (checkup.space("spool", "/s", 1000, wanted_bytes=10**9), "fail", "0.0 GB"),
    "no store": (
        checkup.space("store", "/s", Missing("read-only"), wanted_bytes=1), "fail", "read-only"
    ),
    "exchange": (checkup.exchange("/shared/x"), "warn", "not built"),
    "no RAS": (checkup.ras("auto", _nccl(2, 21, 5)), "warn", "has no RAS"),
    "safe RAS": (checkup.ras("auto", _nccl(2, 30, 3)), "ok", "as json"),
    "risky RAS": (checkup.ras("auto", _nccl(2, 27, 5)), "ok", "only while all ranks live"),
    "forced RAS": (checkup.ras("force", _nccl(2, 27, 5)), "ok", "asks in a hang"),
    "RAS refused": (checkup.ras("never", _nccl(2, 30, 3)), "unknown", "never asks: switched"),
    "RAS off": (checkup.ras("auto", _nccl(2, 30, 3), enabled=False), "warn", "switched it off"),
    "RAS unknown": (checkup.ras("auto", Missing("none")), "unknown", "release is unknown"),
    "GPUs": (checkup.gpus(8, has_device=True), "ok", "8 answer"),
    "silent driver": (checkup.gpus(Missing("no answer"), has_device=True), "warn", "no answer"),
    "no GPUs": (checkup.gpus(Missing("not found"), has_device=False), "unknown", "not found"),
    "kernel log": (checkup.kernel_log(None), "ok", "readable"),
    "closed kernel log": (checkup.kernel_log("/dev/kmsg: denied"), "warn", "denied"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_property_is_judged(name: str) -> None:
    """Status and finding fit, and what is not well names its cure."""
    check, status, found = CASES[name]
    assert check.status == status
    assert found in check.found
    assert bool(check.cure) or status in ("ok", "unknown")


def test_versions_are_compared_as_numbers() -> None:
    """0.10 is newer than 0.4, and text without numbers is no version."""
    assert checkup.version_numbers("py-spy 0.10.0") == (0, 10, 0)
    assert checkup.version_numbers("py-spy") is None
    assert checkup.version_numbers(None) is None
