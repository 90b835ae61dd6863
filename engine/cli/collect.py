"""``whyhang collect``: sample a job that runs without whyhang, now, and diagnose it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from whyhang.engine.cli.job_option import add_job_options, find_root
from whyhang.engine.cli.rules_option import add_rules_option, read_rules
from whyhang.schemas.errors import UsageError

if TYPE_CHECKING:
    from whyhang.engine.collection import Collection
    from whyhang.engine.store import IncidentWriter
    from whyhang.rules.ruleset import Ruleset
    from whyhang.schemas.config import Config
    from whyhang.schemas.diagnosis import Diagnosis
    from whyhang.schemas.incident import Source
    from whyhang.schemas.process import Process
    from whyhang.schemas.progress import Progress

LOG_LINES_KEPT = 200
EXCERPT_BYTES = 1 << 16
PAUSE_PER_TRAINER_SECONDS = 0.7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``collect``."""
    add_rules_option(parser)
    add_job_options(parser)
    parser.add_argument("--log", type=Path, help="the job's log (default: found through /proc)")
    parser.add_argument(
        "--native", choices=("auto", "always", "never"), help="native frames (default: auto)"
    )
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="how many (default: 2)")
    parser.add_argument(
        "--interval",
        default="10s",
        metavar="DURATION",
        help="the time between two samples (default: 10s)",
    )
    parser.add_argument("--store", type=Path, metavar="DIR", help="where incidents are kept")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    """Take the samples, write the incident and its reports, print the verdict."""
    from dataclasses import replace

    from whyhang.engine.collection import Collection
    from whyhang.engine.store import IncidentWriter
    from whyhang.rules.quantities import parse_duration

    try:
        interval = parse_duration(options.interval)
    except ValueError as error:
        raise UsageError(f"--interval: {error}", hint="for example: --interval 10s") from error
    if options.samples < 1:
        raise UsageError("--samples must be 1 or more", hint="two samples tell a wait from a hang")
    ruleset = read_rules(options, lenient=True)
    config = ruleset.config
    if options.native:
        config = replace(config, collect=replace(config.collect, native=options.native))
    root = find_root(options)
    collection = Collection(config=config.collect, root=root, checkpoint=config.progress.checkpoint)
    processes = collection.find()
    if not any(process.kind == "trainer" for process in processes):
        raise _no_job(root)
    _one_job(processes)
    _announce(processes, config, options.samples, interval)
    try:
        writer = IncidentWriter(options.store or Path(config.store.path), collection.print_id)
        return _collect(options, ruleset, config, collection, processes, writer, interval)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"cannot keep the evidence: {error}", hint="TMPDIR names a directory with room"
        ) from error


def _no_job(root: int | None) -> UsageError:
    from whyhang.collectors.process_table import read_identities
    from whyhang.collectors.unread_ranks import closed_pythons
    from whyhang.schemas.unread import CURES

    closed = sorted(closed_pythons(read_identities()))
    if root is None and closed:
        shown = ", ".join(map(str, closed[:8])) + (", …" if len(closed) > 8 else "")
        return UsageError(
            "no process with a rank could be read here; the environment of these Python "
            f"processes is closed to this user: {shown}",
            hint=f"{CURES['permission']}; or name the job's first process: --pid PID",
        )
    below = "" if root is None else f" below process {root}"
    return UsageError(
        f"no process with a rank runs here{below}",
        hint="run this on a node of the job, as the job's user or root; for recorded "
        "evidence use `whyhang diagnose PATH`",
    )


def _collect(
    options: argparse.Namespace,
    ruleset: Ruleset,
    config: Config,
    collection: Collection,
    processes: tuple[Process, ...],
    writer: IncidentWriter,
    interval: float,
) -> int:
    from whyhang.collectors.log_events import find_events
    from whyhang.engine.cli.main import VERSION
    from whyhang.engine.conclude import conclude, publish
    from whyhang.engine.ras_query import settled

    progress, source, excerpt = _read_log(options.log, processes, config)
    # Nobody has watched this job: that it made a step is told by its age alone.
    stepped = settled([process for process in processes if process.kind == "trainer"])
    try:
        for number in range(options.samples):
            if number:
                time.sleep(interval)
            deep = number == options.samples - 1
            collection.take(deep=deep, writer=writer, stepped=stepped)
    except KeyboardInterrupt:
        print(f"whyhang: stopped; what was read is in {writer.directory}", file=sys.stderr)
        raise
    later, later_source, later_excerpt = _read_log(options.log, processes, config)
    if (later.epoch, later.step) != (progress.epoch, progress.step) and later.step is not None:
        # A step was made while the samples were taken: the stall is over.
        progress, source, excerpt = later, later_source, later_excerpt
    stalled = progress.stalled_seconds
    collection.pick_up_dumps(writer, stalled_seconds=stalled, may_ask=stepped)
    incident = collection.incident(
        trigger="manual",
        progress=progress,
        log=source,
        job=config.job,
        events=find_events(excerpt),
        log_excerpt=excerpt,
        version=VERSION,
    )
    diagnosis = conclude(incident, ruleset, writer, version=VERSION)
    place = publish(writer, config.store)
    if place != writer.final:
        print(f"whyhang: {writer.final} cannot be written: all is in {place}", file=sys.stderr)
    _report(diagnosis, place, options)
    return 0


def _read_log(
    given: Path | None, processes: tuple[Process, ...], config: Config
) -> tuple[Progress, Source, tuple[str, ...]]:
    """What the job's log says of progress, judged by its age; why not, where there is none."""
    from whyhang.collectors.log_files import find_log, is_closed, read_old_log
    from whyhang.schemas.incident import Source
    from whyhang.schemas.progress import Progress

    path = given or find_log(process.pid for process in processes)
    if path is None:
        reason = "the job writes to no file that could be read afterwards (--log names one)"
        if any(is_closed(process.pid) for process in processes):
            reason = "the job's open files are closed to this user (--log names its log)"
        return Progress(), Source(ok=False, reason=reason), ()
    if not path.is_file():
        # Opening a pipe or a terminal would wait, and take lines away from who reads it.
        return Progress(), Source(ok=False, reason=f"{path} is no regular file"), ()
    try:
        with path.open("rb") as file:
            file.seek(-min(EXCERPT_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            text = file.read(EXCERPT_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return Progress(), Source(ok=False, reason=f"{path}: {error.strerror}"), ()
    excerpt = tuple(text.splitlines()[-LOG_LINES_KEPT:])
    floor = config.detect.stall or config.detect.floor
    progress = read_old_log(
        path,
        time.time(),
        floor,
        preset=config.progress.preset,
        pattern=config.progress.pattern,
    )
    if progress.state == "unknown":
        return progress, Source(ok=False, reason=f"{path} shows no progress line"), excerpt
    return progress, Source(ok=True), excerpt


def _one_job(processes: tuple[Process, ...]) -> None:
    """Refuse to mix jobs: a rank of one would be accused of holding up the other."""
    from whyhang.engine.jobs import find_jobs

    jobs = find_jobs(processes)
    if len(jobs) > 1:
        raise UsageError(
            f"{len(jobs)} jobs run here",
            hint=f"name one of them: {'; '.join(map(str, jobs[:8]))}",
        )


def _report(diagnosis: Diagnosis, place: Path, options: argparse.Namespace) -> None:
    from whyhang.engine.cli.terminal import print_diagnosis, write_out

    if options.format == "json":
        from whyhang.schemas.verdict_codec import encode_verdict

        write_out(encode_verdict(diagnosis.verdict).decode())
        return
    files = tuple(str(path) for path in sorted(place.iterdir()) if path.is_file())
    command = f"whyhang diagnose {shlex.quote(str(place))}"
    if options.config:
        command += f" -c {shlex.quote(str(options.config))}"
    print_diagnosis(diagnosis, files, command=command)


def _announce(
    processes: tuple[Process, ...], config: Config, samples: int, interval: float
) -> None:
    """Say what will happen to the job before it happens."""
    from whyhang.renderers.clean import count_of

    trainers = [process for process in processes if process.kind == "trainer"]
    seconds = interval * (samples - 1)
    pause = "without stopping any process"
    if config.collect.native != "never":
        pause = (
            f"each trainer is stopped once, for about {PAUSE_PER_TRAINER_SECONDS:g} s at most, "
            "to read its native frames (--native never avoids it)"
        )
    print(
        f"whyhang: {count_of(len(trainers), 'rank')}, "
        f"{count_of(len(processes), 'process', 'processes')}; {count_of(samples, 'sample')} "
        f"{interval:g} s apart ({seconds:.0f} s and the time to read); {pause}",
        file=sys.stderr,
    )
