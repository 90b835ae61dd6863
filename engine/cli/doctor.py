"""``whyhang doctor``: can this host collect? Each trouble comes with its cure."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from whyhang.engine.cli.rules_option import add_rules_option, read_rules

FORMAT = "whyhang.doctor/1"
_WORDS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "unknown": "?   "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``doctor``."""
    add_rules_option(parser)
    parser.add_argument("--log", type=Path, help="a log to try the presets on")
    parser.add_argument("--pid", type=int, help="the job below this process (default: all ranks)")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")


def run(options: argparse.Namespace) -> int:
    """Print all checks; 1 where one of them keeps whyhang from collecting."""
    from whyhang.engine.doctor import examine
    from whyhang.schemas.errors import UsageError

    if options.log is not None and not options.log.is_file():
        raise UsageError(f"no such log file: {options.log}")
    checks = []
    for check in examine(read_rules(options, lenient=True).config, options.log, options.pid):
        checks.append(check)
        if not options.json:
            print(f"{_WORDS[check.status]}  {check.name}: {check.found}", flush=True)
            if check.cure and check.status != "ok":
                print(f"        {check.cure}")
    if options.json:
        print(
            json.dumps({"format": FORMAT, "checks": [asdict(check) for check in checks]}, indent=1)
        )
    return 1 if any(check.status == "fail" for check in checks) else 0
