"""Two jobs on one host: which one is meant is told by pid, by environment or by name."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from whyhang.collectors.process_table import list_processes
from whyhang.engine.cli.job_option import add_job_options, find_root
from whyhang.engine.jobs import find_jobs
from whyhang.schemas.errors import UsageError

pytestmark = pytest.mark.integration
# A launcher of two ranks; each rank says when it runs and waits for the end of its input.
LAUNCHER = """
import os, subprocess, sys
code = "import os, sys; os.write(1, b'ready\\\\n'); sys.stdin.read()"
for rank in range(2):
    environ = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1],
               "TORCHELASTIC_RUN_ID": sys.argv[2]}
    subprocess.Popen([sys.executable, "-c", code, *sys.argv[2:]], env=environ)
sys.stdin.read()
"""


class Jobs:
    """The pids of two launchers, and a word that is in the command lines of both."""

    def __init__(self) -> None:
        self.word = uuid.uuid4().hex
        names = (f"{self.word}-a", f"{self.word}-b")
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("RANK", "SLURM", "MASTER"))
        }
        self.children = [
            subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(port), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=kept,
                start_new_session=True,
            )
            for port, name in zip((29501, 29502), names, strict=True)
        ]
        for child in self.children:
            assert child.stdout is not None
            assert [child.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        self.pids = [child.pid for child in self.children]

    def end(self) -> None:
        """Leave nothing behind."""
        for child in self.children:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """Two jobs of two ranks each."""
    both = Jobs()
    yield both
    both.end()


def root(*words: str) -> int | None:
    """What the options find."""
    parser = argparse.ArgumentParser()
    add_job_options(parser)
    return find_root(parser.parse_args(words))


def ranks_below(pid: int | None) -> list[tuple[int | None, int | None]]:
    """Rank and parent of the trainers that a collection would read."""
    found = list_processes(node="n", root=pid)
    return [(p.rank, p.ppid) for p in found if p.kind == "trainer"]


def test_a_name_finds_the_launcher(jobs: Jobs) -> None:
    """The uppermost process whose command line fits; wildcards count."""
    assert root("--name", f"{jobs.word}-a") == jobs.pids[0]
    assert root("--name", f"{jobs.word[:9]}*-b") == jobs.pids[1]
    assert ranks_below(jobs.pids[0]) == [(0, jobs.pids[0]), (1, jobs.pids[0])]


@pytest.mark.parametrize("job", ["127.0.0.1:29502", "{word}-b"])
def test_the_environment_finds_the_ranks(job: str, jobs: Jobs) -> None:
    """By run ID or master, from any rank the whole job is found, and nothing of the other."""
    found = root("--job", job.format(word=jobs.word))
    assert ranks_below(found) == [(0, jobs.pids[1]), (1, jobs.pids[1])]


def test_what_fits_both_is_refused(jobs: Jobs) -> None:
    """The message gives the choice; so does one for what fits nothing."""
    with pytest.raises(UsageError, match="2 processes fit") as refusal:
        root("--name", jobs.word)
    assert all(f"--pid {pid}" in (refusal.value.hint or "") for pid in jobs.pids)
    for words in (("--name", "no such " + jobs.word), ("--job", "none:" + jobs.word)):
        with pytest.raises(UsageError, match="no "):
            root(*words)


def test_without_a_name_the_jobs_are_told_apart(jobs: Jobs) -> None:
    """Nothing is guessed: both jobs are offered by the process that started them."""
    assert root() is None
    found = find_jobs(list_processes(node="n"))
    assert {job.root for job in found} >= set(jobs.pids)
