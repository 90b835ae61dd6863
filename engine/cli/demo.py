"""``whyhang demo``: starts a small real job that really hangs, and diagnoses it."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from whyhang.schemas.errors import UsageError

RANKS = 8
DEFAULT_RANK = 3
# Half a minute is usual; a busy machine takes longer.
LIMIT_SECONDS = 110.0
STOP_SECONDS = 4.0
# In the environment of everything that the demo starts.
MARKER = "WHYHANG_DEMO"
PROGRAMS = ("launch.py", "train.py", "worker.py", "hang.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``demo``."""
    parser.add_argument(
        "--rank",
        type=int,
        default=DEFAULT_RANK,
        metavar="N",
        help=f"the rank that is going to hang, 0 to {RANKS - 1}",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="where to run it (default: a new directory)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the demo; 0 if the diagnosis names the rank that was made to hang."""
    if not 0 <= options.rank < RANKS:
        raise UsageError(f"--rank {options.rank}: the demo has ranks 0 to {RANKS - 1}")
    directory = prepare(options.keep)
    tell(f"{RANKS} processes train in {directory}; rank {options.rank} is going to hang")
    with ended_by_signal(), running(directory, options.rank) as job:
        verdict_file = wait_for_verdict(directory, job)
    if verdict_file is None:
        tell(f"no verdict within {LIMIT_SECONDS:.0f} s; see {directory / 'whyhang.log'}")
        return 1
    return report(verdict_file, directory, options)


def prepare(keep: Path | None) -> Path:
    """Lay out the job: its programs, a shard of data, and one that never answers."""
    if keep is None:
        directory = Path(tempfile.mkdtemp(prefix="whyhang-demo-"))
    else:
        directory = keep.absolute()
        if directory.exists() and any(directory.iterdir()):
            raise UsageError(f"{keep} is not empty", hint="give a new directory")
        directory.mkdir(parents=True, exist_ok=True)
    programs = files("whyhang.engine.demo")
    for name in PROGRAMS:
        (directory / name).write_bytes((programs / name).read_bytes())
    (directory / "data.bin").write_bytes(bytes(range(256)))
    os.mkfifo(directory / "stuck.fifo")
    return directory


@contextlib.contextmanager
def running(directory: Path, rank: int) -> Iterator[subprocess.Popen[bytes]]:
    """The job under ``whyhang run``; nothing of it is left afterwards."""
    from whyhang.collectors.own_module import module_command
    from whyhang.engine.orphans import kill_marked

    command = module_command(
        "whyhang.engine.cli.main",
        *("run", "-c", "hang.yaml", "--", sys.executable, "launch.py"),
        *("--ranks", str(RANKS), "--hang-rank", str(rank)),
    )
    with (directory / "train.log").open("wb") as log, (directory / "whyhang.log").open("wb") as own:
        job = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, MARKER: str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=own,
            # Ctrl-C is for us: we end the job in order.
            start_new_session=True,
        )
    try:
        yield job
    finally:
        job.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(STOP_SECONDS)
        job.kill()
        kill_marked(str(directory), MARKER)
        job.wait()


@contextlib.contextmanager
def ended_by_signal() -> Iterator[None]:
    """Within, SIGTERM ends the demo as Ctrl-C does: in order."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def wait_for_verdict(directory: Path, job: subprocess.Popen[bytes]) -> Path | None:
    """Wait for the watcher's verdict, and show what the job prints meanwhile."""
    log = directory / "train.log"
    shown = 0
    silent = False
    started = time.monotonic()
    while time.monotonic() - started < LIMIT_SECONDS:
        found = next(directory.glob("incidents/*/verdict.json"), None)
        if found is not None:
            return found
        if job.poll() is not None:
            tell(f"the job ended with exit status {job.returncode}")
            return None
        lines = log.read_text(errors="replace").splitlines()
        for line in lines[shown:]:
            print(f"  {line}", file=sys.stderr)
        if shown and len(lines) == shown and not silent and log_age(log) > 2:
            silent = True
            tell("no step any more: the watcher is going to suspect it, then look twice")
        shown = len(lines)
        time.sleep(0.2)
    return None


def log_age(log: Path) -> float:
    """Seconds since something was written to it."""
    return time.time() - log.stat().st_mtime


def report(verdict_file: Path, directory: Path, options: argparse.Namespace) -> int:
    """Print the verdict; 0 if it names the rank."""
    from whyhang.engine.diagnose import diagnose
    from whyhang.engine.incidents import read_incident
    from whyhang.rules.load import load_ruleset

    place = verdict_file.parent
    # Judged again from the evidence on disk, with the same rules, as `whyhang diagnose` would.
    diagnosis = diagnose(read_incident(place), load_ruleset(directory / "hang.yaml"))
    if options.format == "json":
        with verdict_file.open("r") as document:
            shutil.copyfileobj(document, sys.stdout)
    else:
        from whyhang.engine.cli.terminal import print_diagnosis

        rules = directory / "hang.yaml"
        command = f"whyhang diagnose {shlex.quote(str(place))} -c {shlex.quote(str(rules))}"
        reports = tuple(str(path) for path in sorted(place.iterdir()) if path.is_file())
        print_diagnosis(diagnosis, reports, command=command)
        tell(f"why? {command.replace('diagnose', 'explain', 1)}")
    verdict = diagnosis.verdict
    return 0 if verdict.is_hang and tuple(verdict.suspects.ranks) == (options.rank,) else 1


def tell(text: str) -> None:
    """Tell people how it goes."""
    print(f"whyhang demo: {text}", file=sys.stderr)
