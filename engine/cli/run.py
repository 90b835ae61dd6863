"""``whyhang run``: starts a training command, watches it, diagnoses a hang."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.streams import (
    STDERR,
    STDOUT,
    LogFile,
    StreamPlan,
    copy_paths,
    find_logs,
    inspect_stream,
    plan_streams,
)
from whyhang.schemas.environment import MARKER, nested
from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.engine.lane import Lane
    from whyhang.engine.supervise import Supervisor
    from whyhang.schemas.config import Config

# Set for the job where it does not say otherwise: block-buffered output looks like a hang. The
# other variable is NCCL_RAS_ADDR, a port of the job's own (ras_port.py).
ADDED_ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; all after ``--`` is the job's."""
    parser.usage = "whyhang run [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("-c", "--config", type=Path, help="the rules (default: ./hang.yaml)")
    parser.add_argument(
        "--log", action="append", default=[], metavar="FILE", help="a log to watch, may be a glob"
    )
    parser.add_argument(
        "--strict", action="store_true", help="do not start with an invalid hang.yaml (exit 2)"
    )
    parser.add_argument("--store", type=Path, metavar="DIR", help="where incidents are kept")
    parser.add_argument("--no-watch", action="store_true", help="only start the command")
    parser.add_argument("job", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    command = tuple(options.job[1:] if options.job[:1] == ["--"] else options.job)
    if not command:
        raise UsageError("no command given", hint="whyhang run -- torchrun … train.py")
    try:
        supervisor = _prepare(options, command)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 (no trouble of ours may keep the job from starting)
        say(f"cannot prepare the watch ({error}): nobody watches this job")
        supervisor = _unwatched(command)
    return supervisor.run()


def _prepare(options: argparse.Namespace, command: tuple[str, ...]) -> Supervisor:
    """The job with all that watches it."""
    from whyhang.engine.configure import config_to
    from whyhang.engine.lookout import Lookout
    from whyhang.engine.supervise import Job, Supervisor
    from whyhang.engine.temporary import temporary_directory

    path, config = _configure(options)
    marker = str(uuid.uuid4())
    store = Path(options.store or config.store.path).absolute()
    scratch = tuple(
        root / "jobs" / marker[:13]
        for root in (store, temporary_directory() / f"whyhang-{os.getuid()}")
    )
    plan = StreamPlan() if options.no_watch else _plan(options.log or config.progress.log)
    lanes = _lanes(plan, scratch)
    logs = plan.logs + tuple(
        LogFile(path=str(copy)) for lane in lanes.values() for copy in lane.log_paths
    )
    settings = {
        "marker": marker,
        "rules": str(path.absolute()) if path else None,
        "config": config_to(config),
        "store": str(store),
        "scratch": [str(directory) for directory in scratch],
        "logs": [[log.path, log.start] for log in logs],
    }
    ras = bool(logs) and config.collect.ras != "never"
    return Supervisor(
        job=Job(
            command=command,
            environ={
                **_added(marker, ras=ras),
                **os.environ,
                MARKER: nested(os.environ.get(MARKER), marker),
            },
            marker=marker,
        ),
        say=say,
        lanes=lanes,
        lookout=Lookout(settings, say) if logs else None,
        may_stop=config.on_hang.action == "stop",
        grace_seconds=config.on_hang.grace,
    )


def _unwatched(command: tuple[str, ...]) -> Supervisor:
    from whyhang.engine.supervise import Job, Supervisor

    marker = str(uuid.uuid4())
    environ = {**ADDED_ENVIRONMENT, **os.environ, MARKER: nested(os.environ.get(MARKER), marker)}
    return Supervisor(job=Job(command=command, environ=environ, marker=marker), say=say)


def _configure(options: argparse.Namespace) -> tuple[Path | None, Config]:
    """The file of rules and what it configures; both the built-in ones where it is broken."""
    from whyhang.engine.configure import DEFAULT_PATH, Configured, configure
    from whyhang.schemas.config import Config

    path = find_config(options.config, Path(DEFAULT_PATH))
    if options.config and not path:
        trouble = f"{options.config}: no such file"
        configured = Configured(config=Config(), trouble=trouble)
    else:
        configured = configure(path) if path else Configured(config=Config())
    if configured.trouble:
        if options.strict:
            raise UsageError(configured.trouble, hint="the job was not started (--strict)")
        say(configured.trouble)
        say("WARNING: the configuration is not used; the job starts on the built-in rules")
        path = None
    return path, configured.config


def _plan(logs: Sequence[str]) -> StreamPlan:
    """Where progress will be read."""
    plan = plan_streams([inspect_stream(fd) for fd in (STDOUT, STDERR)], find_logs(logs))
    if not plan.logs and not plan.relayed:
        say(
            "no log to watch: the output goes to a terminal or nowhere; "
            "name one with --log FILE or progress.log in hang.yaml"
        )
    return plan


def _lanes(plan: StreamPlan, scratch: tuple[Path, ...]) -> Mapping[tuple[int, ...], Lane]:
    """What copies the output that no file holds; none where that cannot be."""
    from whyhang.engine.lane import Lane

    try:
        return {fds: Lane(fds[0], copy_paths(scratch, fds)) for fds in plan.relayed}
    except OSError as error:
        say(f"cannot relay the job's output ({error.strerror}): it is not watched")
        return {}


def _added(marker: str, *, ras: bool) -> Mapping[str, str]:
    """The variables that the job gets where it sets none of its own."""
    if not ras:
        return ADDED_ENVIRONMENT
    from whyhang.engine.ras_port import VARIABLE, choose_address

    address = choose_address(os.environ, marker)
    return {**ADDED_ENVIRONMENT, **({} if address is None else {VARIABLE: address})}


def find_config(named: Path | None, default: Path) -> Path | None:
    """The file to use: the one named, else the default if it is there."""
    path = named or default
    return path if path.is_file() else None


def say(text: str) -> None:
    """Tell people something, beside the job's output; nobody may be listening."""
    with contextlib.suppress(OSError):
        print(f"whyhang: {text}", file=sys.stderr, flush=True)
