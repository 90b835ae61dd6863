"""What following logs costs: ``python -m bench.follow``, from the top of the repository.

- Reading: each log of the tests (or those named), repeated to 100 MB and read as the watcher does,
  a mebibyte a poll; as it is, and its progress lines alone. The watcher searches all of it for
  faults, but reads only the newest progress of each mebibyte. The speed of a bare read of the same
  file, in the same run, is the measure.
- ``--idle SECONDS``: 1,024 logs of ranks and one of 1 GiB in which nothing happens.
- ``--idle-watcher MINUTES``: the watcher of a real job; exit status 1 above 40 MB or 1 % of a core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.follow.idling import follow_idle
from bench.follow.reading import MIB, measure, own_logs, write_log
from bench.follow.watching import watch_job

MAX_WATCHER_BYTES = 40_000_000
MAX_WATCHER_SHARE = 0.01
MAX_IDLE_SHARE = 0.02


def main() -> int:
    """Measure what is asked for, and answer 1 where a limit is passed."""
    parser = argparse.ArgumentParser(prog="bench.follow", description=__doc__.partition("\n")[0])
    parser.add_argument("logs", nargs="*", type=Path, help="logs to repeat (default: the tests')")
    parser.add_argument("--megabytes", type=int, default=100, help="the size of each log")
    parser.add_argument("--idle", type=float, metavar="SECONDS")
    parser.add_argument("--idle-watcher", type=float, metavar="MINUTES")
    options = parser.parse_args()
    if options.idle_watcher is not None:
        return _report_watcher(options.idle_watcher * 60)
    with tempfile.TemporaryDirectory() as directory:
        if options.idle is not None:
            share, peak = follow_idle(Path(directory), options.idle)
            print(f"idle: {share:.2%} of a core, {peak:.0f} MiB at most")
            return int(share > MAX_IDLE_SHARE)
        named = [(log.name, log.read_bytes(), b"") for log in options.logs]
        _report_reading(named or own_logs(), Path(directory), options.megabytes * 1_000_000)
    return 0


def _report_watcher(seconds: float) -> int:
    cost = watch_job(seconds)
    print(
        f"the watcher of a healthy job: {cost.cpu:.2%} of a core and"
        f" {cost.rss_bytes / 1e6:.1f} MB after {cost.seconds:.0f} s"
    )
    return int(cost.rss_bytes > MAX_WATCHER_BYTES or cost.cpu > MAX_WATCHER_SHARE)


def _report_reading(logs: Iterable[tuple[str, bytes, bytes]], directory: Path, size: int) -> None:
    print(f"{'log':26} {'kind':6} {'bare MB/s':>10} {'ours MB/s':>10} {'ratio':>6}")
    for name, whole, dense in logs:
        for kind, head, body in (("mixed", b"", whole), ("dense", whole, dense)):
            if not body:
                continue
            path = directory / "log"
            write_log(path, head, body, size)
            speed = measure(path)
            bare, ours = (MIB / 1e6 / seconds for seconds in (speed.bare, speed.ours))
            print(f"{name:26} {kind:6} {bare:10.0f} {ours:10.0f} {speed.ratio:6.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
