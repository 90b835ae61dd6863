"""``whyhang show DIR --rank 3``: the raw stacks of single processes."""

from __future__ import annotations

import argparse
from pathlib import Path

from whyhang.schemas.words import PROCESS_KINDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``show``."""
    parser.add_argument("path", type=Path, help="incident directory, or a directory of dumps")
    parser.add_argument("--rank", type=int, help="processes of this rank")
    parser.add_argument("--kind", choices=PROCESS_KINDS, help="processes of this kind")
    parser.add_argument("--worker", type=int, metavar="N", help="the worker of this number")
    parser.add_argument("--gpu", type=int, metavar="N", help="the device, or the local rank")
    parser.add_argument("--pid", type=int, help="the process of this number")
    parser.add_argument("--node", help="processes of this node")
    parser.add_argument("--sample", type=int, metavar="N", help="this sample instead of the last")


def run(options: argparse.Namespace) -> int:
    """Print the processes that fit."""
    from whyhang.engine.cli.terminal import write_out
    from whyhang.engine.incidents import read_evidence
    from whyhang.engine.pick import pick, sample_of
    from whyhang.renderers.raw_stacks import render_stacks

    sample = sample_of(read_evidence(options.path), options.sample)
    found = pick(
        sample,
        rank=options.rank,
        kind=options.kind,
        worker=options.worker,
        gpu=options.gpu,
        pid=options.pid,
        node=options.node,
    )
    for line in render_stacks(found):
        write_out(line + "\n")
    return 0
