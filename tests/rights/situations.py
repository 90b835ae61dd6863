"""Real situations in which rights are missing, and small real targets to read in them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.patience import eventually
from whyhang.collectors.procfs import read_stat, read_status
from whyhang.collectors.rights import read_rights

NOBODY = 65534
SECONDS = 90
HERE = Path(__file__).parent
LAUNCHER = HERE / "seccomp_launcher.py"
# ptrace and process_vm_readv; py-spy falls back to /proc/PID/mem without the second.
FORBIDDEN = {"x86_64": "101,310", "aarch64": "117,270"}.get(platform.machine())

_OWN = read_rights()
needs_ptrace = pytest.mark.skipif(
    _OWN.yama > 0 and not _OWN.capable, reason="Yama forbids reading other processes"
)
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)
needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("nsenter")),
    reason="needs root, unshare and nsenter",
)
needs_filter = pytest.mark.skipif(
    FORBIDDEN is None, reason="the system call numbers of this architecture are not known"
)

# Another user, who may read files (this Python may lie in a home directory) but trace nobody.
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)  # fmt: skip
WITHOUT_CAPABILITIES = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
IN_NEW_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

WAIT = """
import os, time
def wait_here():
    os.write(1, b"ready\\n")
    time.sleep(300)
wait_here()
"""
UNDUMPABLE = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + WAIT
_DUMP = """
import json, sys
from whyhang.collectors.pyspy import dump
found = dump(int(sys.argv[1]), sys.argv[2], 30)
threads = found.threads if found.failure is None else ()
print(json.dumps({
    "kind": found.dump.kind, "cure": found.dump.cure, "error": found.dump.error,
    "tids": [thread.tid for thread in threads],
    "frames": [frame.function for thread in threads for frame in thread.stack.python],
}))
"""


def under_filter(action: str = "refuse") -> tuple[str, ...]:
    """The words that put a command under a filter which forbids what py-spy needs."""
    return (sys.executable, str(LAUNCHER), action, FORBIDDEN or "")


@contextmanager
def target(
    code: str = WAIT, *, before: Sequence[str] = (), python: str = sys.executable, ready: int = 1
) -> Iterator[int]:
    """A process that runs the code, once it has said so; below ``before``, its only child."""
    process = subprocess.Popen(
        [*before, python, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        for _ in range(ready):
            assert process.stdout.readline() == "ready\n"
        yield child_of(process.pid) if "unshare" in before else process.pid
    finally:
        with_group(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def with_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all of its group, if they are still there."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def child_of(pid: int) -> int:
    """The first child of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def dump_in(before: Sequence[str], pid: int, mode: str = "nonblocking") -> dict[str, Any]:
    """What our dump of a process says, taken by a Python of its own in that situation."""
    return dict(json.loads(_run([*before, sys.executable, "-c", _DUMP, str(pid), mode])))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_free(pid: int) -> bool:
    """Whether a process neither is stopped nor traced: a tracer's end takes the kernel a moment."""

    def free() -> bool:
        tasks = [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
        states = [read_stat(pid, tid) for tid in tasks]
        running = all(stat is not None and stat.state in "RS" for stat in states)
        return running and read_status(pid).get("TracerPid") == "0"

    return eventually(free)


def python_without_pyspy(folder: Path) -> str:
    """An environment beside which no py-spy lies, but which has all else that this one has."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python3*/site-packages")
    packages = sysconfig.get_path("purelib")
    (site / "others.pth").write_text(f"import site; site.addsitedir({packages!r})\n")
    return str(folder / "bin/python")
