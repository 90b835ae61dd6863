"""``whyhang watch``: the watch of ``run``, attached to a job that already runs."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.cli.job_option import add_job_options, find_root
from whyhang.engine.cli.rules_option import add_rules_option, find_rules, read_rules
from whyhang.engine.temporary import temporary_directory
from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.collectors.log_files import LogAge
    from whyhang.schemas.config import Config
    from whyhang.schemas.process import Process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``watch``."""
    add_rules_option(parser)
    add_job_options(parser)
    parser.add_argument(
        "--log", action="append", default=[], metavar="FILE", help="its log (default: found)"
    )
    parser.add_argument("--store", type=Path, metavar="DIR", help="where incidents are kept")


def run(options: argparse.Namespace) -> int:
    """Watch until the job ends; Ctrl-C, or a pod that is taken down, ends the watch alone."""
    from whyhang.collectors.log_files import judge_age
    from whyhang.engine.configure import config_to
    from whyhang.engine.modesty import be_modest
    from whyhang.engine.ras_query import settled
    from whyhang.engine.watcher import Watcher

    config = read_rules(options, lenient=True).config
    named = find_root(options)
    processes = _processes(named)
    root = named or _root(processes)
    logs = _logs(options.log, config, processes)
    store = Path(options.store or config.store.path).absolute()
    marker = _marker(root)
    name = f"watch-{uuid.uuid4().hex[:8]}"
    rules = find_rules(options.config)
    settings = {
        "config": config_to(config),
        "pid": root,
        "logs": [[path, _size(path)] for path in logs],
        "scratch": [
            str(store / "jobs" / name),
            str(temporary_directory() / f"whyhang-{os.getuid()}" / "jobs" / name),
        ],
        "store": str(store),
        "rules": None if rules is None else str(rules.absolute()),
        "marker": marker,
        "supervised": False,
    }
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    be_modest()
    requests = os.open(os.devnull, os.O_WRONLY)
    watcher = Watcher(settings, requests)
    trainers = [process for process in processes if process.kind == "trainer"]
    for path in logs[:1]:
        age = _history(path, config)
        watcher.prime(judge_age(age), age.gaps, stepped=settled(trainers))
    whom = f"process {root} ({len(trainers)} ranks)"
    try:
        _say(f"watching {whom} by {', '.join(logs)}; Ctrl-C ends the watch")
        if config.on_hang.action == "stop":
            _say("on_hang: stop works with `whyhang run` only: this watch stops nothing")
        return watcher.run()
    except KeyboardInterrupt:
        watcher.leave()
        return 0
    finally:
        os.close(requests)


def _processes(pid: int | None) -> tuple[Process, ...]:
    import platform

    from whyhang.collectors.process_table import list_processes

    found = list_processes(node=platform.node() or "localhost", root=pid)
    if not any(process.kind == "trainer" for process in found):
        below = "" if pid is None else f" below process {pid}"
        raise UsageError(
            f"no process with a rank runs here{below}",
            hint="run this on a node of the job, as the job's user or root",
        )
    return found


def _root(processes: tuple[Process, ...]) -> int:
    """The process that stands for the whole job. Raises UsageError where none can be told."""
    from whyhang.engine.jobs import find_jobs

    jobs = find_jobs(processes)
    if len(jobs) != 1 or jobs[0].root is None:
        several = f"{len(jobs)} jobs run here" if len(jobs) > 1 else "nothing started all ranks"
        raise UsageError(
            several, hint=f"give --pid, --job or --name: {'; '.join(map(str, jobs[:8]))}"
        )
    return jobs[0].root


def _logs(given: list[str], config: Config, processes: tuple[Process, ...]) -> list[str]:
    from whyhang.collectors.log_files import find_log
    from whyhang.engine.streams import find_logs

    named = [log.path for log in find_logs(given or config.progress.log)]
    if named:
        return [str(Path(path).absolute()) for path in named]
    found = find_log(process.pid for process in processes)
    if found is None:
        raise UsageError("the job writes to no file that could be watched", hint="--log names one")
    return [str(found)]


def _history(path: str, config: Config) -> LogAge:
    """What the log has told so far, so that its rhythm need not be learned anew."""
    from whyhang.collectors.log_files import log_age

    return log_age(Path(path), time.time(), config.progress.preset, config.progress.pattern)


def _marker(root: int) -> str:
    """The job's own, where ``whyhang run`` started it; else one that nothing carries."""
    from whyhang.collectors.procfs import read_environ
    from whyhang.schemas.environment import MARKER

    marked = (read_environ(root) or {}).get(MARKER)
    return marked.rpartition(",")[2] if marked else str(uuid.uuid4())


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return Path(path).stat().st_size
    return 0


def _say(text: str) -> None:
    print(f"whyhang: {text}", file=sys.stderr, flush=True)
