"""``python -m bench.startup``: what starting whyhang costs, against a Python that does nothing.

CPU time of children, interleaved, medians; ratios, since machines differ.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "--help": ("-m", "whyhang.engine", "--help"),
    "check hang.yaml": ("-m", "whyhang.engine", "check", str(ROOT / "hang.yaml")),
}
NOTHING = ("-c", "pass")


def cpu_seconds(arguments: Sequence[str], cache: str) -> float:
    """User and system time of a Python with these arguments; ``cache`` is its user's cache."""
    # Compiled modules are kept, as they are for whoever installed it.
    kept = {name: each for name, each in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        env={**kept, "XDG_CACHE_HOME": cache},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print one line for each command: its ratio, and both times in milliseconds."""
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as cache:
        for name, arguments in COMMANDS.items():
            cpu_seconds(arguments, cache)  # fills the cache
            pairs = [
                (cpu_seconds(NOTHING, cache), cpu_seconds(arguments, cache)) for _ in range(rounds)
            ]
            bare, own = (statistics.median(times) for times in zip(*pairs, strict=True))
            ratio = statistics.median(own / bare for bare, own in pairs)
            print(f"{name:16} {ratio:5.1f} x   {1000 * own:4.0f} ms against {1000 * bare:.0f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
