"""What following logs costs: ``python -m bench.follow``, from the top of the repository.

- Reading: a made-up log of a large job and each log of the tests (or those named), repeated; as it
  is, and its progress lines alone. It grows by a mebibyte a poll, as fast as the watcher can read
  all of it. A bare read of the same mebibyte, just before, is the measure: of the search for the
  built-in patterns (exit status 1 below a tenth of it) and of the whole watcher. Of a log that grew
  by more than that since the last poll only the newest mebibyte is read.
- ``--idle SECONDS``: 1,024 logs of ranks and one of 1 GiB in which nothing happens.
- ``--idle-watcher MINUTES``: the watcher of a real job; exit status 1 above 40 MB or 1 % of a core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from bench.follow.idling import follow_idle
from bench.follow.reading import (
    MIB,
    START_BLOCKS,
    measure,
    measure_behind,
    mixed,
    own_logs,
    repeated,
)
from bench.follow.watching import watch_job

_MIXED_BLOCKS = 150
MAX_WATCHER_BYTES = 40_000_000
MAX_WATCHER_SHARE = 0.01
MAX_IDLE_SHARE = 0.02
MIN_PATTERNS_SHARE = 0.1


def main() -> int:
    """Measure what is asked for, and answer 1 where a limit is passed."""
    parser = argparse.ArgumentParser(prog="bench.follow", description=__doc__.partition("\n")[0])
    parser.add_argument("logs", nargs="*", type=Path, help="logs to repeat (default: the tests')")
    parser.add_argument("--megabytes", type=int, default=40, help="the size of each log")
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
        blocks = max(options.megabytes * 1_000_000 // MIB, 2 * START_BLOCKS)
        slowest = _report_reading(named or own_logs(), Path(directory) / "log", blocks)
    print(f"patterns: the slowest log is searched at {slowest:.3f} of a bare read")
    return int(slowest < MIN_PATTERNS_SHARE)


def _report_watcher(seconds: float) -> int:
    cost = watch_job(seconds)
    print(
        f"the watcher of a healthy job: {cost.cpu:.2%} of a core and"
        f" {cost.rss_bytes / 1e6:.1f} MB after {cost.seconds:.0f} s"
    )
    return int(cost.rss_bytes > MAX_WATCHER_BYTES or cost.cpu > MAX_WATCHER_SHARE)


def _report_reading(logs: Iterable[tuple[str, bytes, bytes]], path: Path, size: int) -> float:
    """Print how fast each log is read; the share of the slowest search for patterns."""
    print(
        f"{'log':24} {'':5} {'bare MB/s':>9} {'patterns':>9} {'share':>6}"
        f" {'watcher':>9} {'share':>6} {'first ms/MiB':>12}"
    )
    shares = [_report(path, "large job", "", islice(mixed(), _MIXED_BLOCKS))]
    bare, ours = measure_behind(path, islice(mixed(), _MIXED_BLOCKS))
    print(f"  all at once: bare {bare * 1e3:.1f} ms, the watcher {ours * 1e3:.1f} ms")
    for name, whole, dense in logs:
        shares.append(_report(path, name, "whole", islice(repeated(b"", whole), size)))
        if dense:
            shares.append(_report(path, name, "dense", islice(repeated(whole, dense), size)))
    return min(shares)


def _report(path: Path, name: str, kind: str, blocks: Iterator[bytes]) -> float:
    speed = measure(path, blocks)
    bare, patterns, watcher = (
        MIB / 1e6 / seconds for seconds in (speed.bare, speed.patterns, speed.watcher)
    )
    print(
        f"{name[:24]:24} {kind:5} {bare:9.0f} {patterns:9.0f} {speed.patterns_share:6.3f}"
        f" {watcher:9.0f} {speed.watcher_share:6.3f} {speed.start * 1e3:12.1f}",
        flush=True,
    )
    return speed.patterns_share


if __name__ == "__main__":
    sys.exit(main())
