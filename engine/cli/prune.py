"""``whyhang prune``: deletes incidents that are too old or too many."""

from __future__ import annotations

import argparse
from pathlib import Path

from whyhang.engine.cli.rules_option import add_rules_option, read_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``prune``."""
    parser.add_argument(
        "store", type=Path, nargs="?", help="default: the path of `store:`, whose limits apply too"
    )
    add_rules_option(parser)


def run(options: argparse.Namespace) -> int:
    """Delete, and say what was deleted; the newest incident always stays."""
    import time

    from whyhang.engine.store import prune
    from whyhang.schemas.errors import UsageError

    config = read_rules(options).config.store
    store = options.store or Path(config.path)
    if not store.is_dir():
        raise UsageError(f"no such store: {store}", hint="give the directory of incidents")
    deleted = prune(
        store, now_ns=time.time_ns(), keep_seconds=config.keep, max_bytes=config.max_size
    )
    for directory in deleted:
        print(f"deleted {directory}")
    print(f"{len(deleted)} incidents deleted from {store}")
    return 0
