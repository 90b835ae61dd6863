"""What a host's properties mean for collecting."""

from __future__ import annotations

import pytest

from whyhang.engine import checkup
from whyhang.engine.checkup import Check, Status
from whyhang.schemas.missing import Missing

ME = 1000
CASES: dict[str, tuple[Check, Status, str]] = {
    "capability": (
        checkup.rights(capable=True, uid=0, yama=1, owners={ME}), "ok", "CAP_SYS_PTRACE"
    ),
    "yama": (
        checkup.rights(capable=False, uid=ME, yama=1, owners={ME}), "fail", "ptrace_scope is 1"
    ),
    "yama 3 holds for all": (
        checkup.rights(capable=True, uid=0, yama=3, owners=()), "fail", "nobody may trace"
    ),
    "same user": (
        checkup.rights(capable=False, uid=ME, yama=0, owners={ME}), "ok", "of this user"
    ),
    "no yama": (
        checkup.rights(capable=False, uid=ME, yama=None, owners=()), "ok", "of this user"
    ),
    "other user": (
        checkup.rights(capable=False, uid=ME, yama=0, owners={ME, 0}), "fail", "runs as user 0"
    ),
    "unread rights": (
        checkup.rights(capable=None, uid=ME, yama=0, owners=()), "unknown", "could not be read"
    ),
    "stack read": (checkup.trial(None, 0.04), "ok", "0.04 s"),
    "stack refused": (
        checkup.trial("py-spy: permission denied; needs ptrace rights", None), "fail", "denied"
    ),
    "no py-spy": (checkup.pyspy(Missing("py-spy: not found"), None), "fail", "not found"),
    "old py-spy": (checkup.pyspy("/b/py-spy", "py-spy 0.3.14"), "fail", "0.3.14"),
    "py-spy without classes": (checkup.pyspy("/b/py-spy", "py-spy 0.4.1"), "warn", "class"),
    "py-spy": (checkup.pyspy("/b/py-spy", "py-spy 0.4.3"), "ok", "0.4.3"),
    "odd py-spy": (checkup.pyspy("/b/py-spy", "py-spy"), "warn", "unknown version"),
    "no job": (checkup.pythons({}), "unknown", "no process"),
    "known Pythons": (checkup.pythons({1: "3.8.1", 2: "3.13.0"}), "ok", "3.13.0, 3.8.1"),
    "too new a Python": (checkup.pythons({1: "3.99.0", 2: "3.8"}), "warn", "3.99.0"),
    "unread Python": (checkup.pythons({1: None, 2: "3.8"}), "unknown", "3.8"),
    "own namespace": (checkup.namespace([], hidden=False), "ok", "in this one"),
    "container": (checkup.namespace([77, 9], hidden=False), "warn", "process 9"),
    "hidepid": (checkup.namespace([], hidden=True), "warn", "hidepid"),
    "nothing to read": (checkup.log(None, None, has_job=False), "unknown", "no job"),
    "no log": (checkup.log(None, None, has_job=True), "fail", "no file"),
    "no preset": (checkup.log("a.log", None, has_job=True), "warn", "no preset"),
    "any line": (checkup.log("a.log", "lines", has_job=True), "warn", "weakest"),
    "preset": (checkup.log("a.log", "megatron", has_job=True), "ok", "megatron"),
    "buffered": (checkup.buffering({7: False, 8: True}), "warn", "process 7"),
    "buffering unread": (checkup.buffering({7: None}), "unknown", "could not be read"),
    "unbuffered": (checkup.buffering({7: True}), "ok", "at once"),
    "old NCCL": (checkup.nccl([(2, 21, 5)], "/l/libnccl.so.2"), "warn", "no RAS"),
    "NCCL": (checkup.nccl([(2, 27, 3)], "/l/libnccl.so.2"), "ok", "2.27.3 at /l"),
    "two NCCLs": (checkup.nccl([(2, 21, 5), (2, 27, 3)], None), "warn", "two versions"),
    "no NCCL": (checkup.nccl(Missing("none mapped"), None), "unknown", "none mapped"),
    "room": (checkup.space("store", "/s", 5 * 10**9, wanted_bytes=10**9), "ok", "5.0 GB"),
    "little room": (checkup.space("store", "/s", 5 * 10**8, wanted_bytes=10**9), "warn", "0.5"),
    "no room": (checkup.space("spool", "/s", 1000, wanted_bytes=10**9), "fail", "0.0 GB"),
    "no store": (
        checkup.space("store", "/s", Missing("read-only"), wanted_bytes=1), "fail", "read-only"
    ),
    "one node": (checkup.exchange(None, None), "ok", "alone"),
    "exchange": (checkup.exchange("/shared/x", None), "ok", "/shared/x"),
    "exchange lost": (checkup.exchange("/shared/x", "cannot be written"), "fail", "cannot"),
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
