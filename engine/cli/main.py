"""Entry point: parses the command line and imports only what the chosen command needs.

``--help`` and ``--version`` must stay cheap, because the entry point stands before every training
job: nothing but argparse is imported here (a test keeps it so).
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper

VERSION = "0.1.0"


# Each command stands in a module of its own name.
COMMANDS = {
    "run": "start a training command and watch it; diagnose a hang",
    "watch": "the same watch for a job that already runs",
    "collect": "sample a running job now and diagnose it",
    "diagnose": "verdict and reports from recorded evidence",
    "render": "write one output of an incident again",
    "show": "raw stacks of single processes",
    "compare": "two ranks side by side, or one rank at two times",
    "check": "find all errors in hang.yaml",
    "fmt": "write hang.yaml in its usual form",
    "config": "show what hang.yaml and its packs come to, item by item",
    "schema": "print the JSON Schema of hang.yaml, or of another file format",
    "fields": "list what conditions may ask",
    "test": "run the unit tests of rules",
    "explain": "which clauses decided, and why; or what the code of a finding means",
    "replay": "judge recorded incidents with changed rules and detection thresholds",
    "diff": "what changes on recorded incidents between two versions of the rules",
    "list": "the incidents that are kept",
    "prune": "delete incidents that are too old or too many",
    "ras": "ask NCCL RAS, within safety rules, or read a saved reply",
    "fr": "analyse flight recorder dumps: who is missing, whose sizes differ",
    "doctor": "say whether this host can collect, with a cure for each trouble",
    "progress": "show what the tailer makes of a log, one event a line",
    "demo": "start a small real job that really hangs, and diagnose it",
}

# A full disk behind stdout is no fault of ours.
UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 fine, 1 findings, 2 usage, 3 internal."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    fill_streams()
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # A log or terminal of ASCII lacks our signs: better another sign than no answer.
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = build_parser(arguments[0] if arguments else None)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        getattr(options, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
        return 2
    return guard(options.run, options)


def fill_streams() -> None:
    """Put the null device where a standard stream is closed.

    Else the next file that we open takes its number, and passes for a stream of the job. A command
    that we start still finds it closed, for descriptors of ours end at its start.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen command's own options are loaded."""
    parser = argparse.ArgumentParser(
        prog="whyhang",
        description="Finds out why a distributed training job hangs.",
        formatter_class=page,
    )
    parser.add_argument("--version", action="version", version=f"whyhang {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary, formatter_class=page)
        if name == chosen:
            from importlib import import_module

            module = import_module(f"whyhang.engine.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run, parser=sub)
    return parser


def page(prog: str) -> argparse.HelpFormatter:
    """A help page as wide as the terminal.

    Left to itself, argparse imports shutil and four compression libraries to find that out.
    """
    try:
        width = os.get_terminal_size().columns - 2
    except OSError:
        width = 98
    return argparse.HelpFormatter(prog, width=max(width, 40))


def guard(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command; errors become a message with a hint, never a traceback."""
    from whyhang.schemas.errors import WhyhangError

    try:
        status = run(options)
        sys.stdout.flush()
    except WhyhangError as error:
        print(f"whyhang: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  help: {error.hint}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is left to say.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        if error.errno not in UNWRITTEN:
            return _fault()
        print(f"whyhang: cannot write the results: {error.strerror}", file=sys.stderr)
        return 2
    except Exception:  # noqa: BLE001 - the last line of defence: say that the fault is ours
        return _fault()
    return status


def _drop_output() -> None:
    """Forget what could not be printed: Python would try again at its end, and speak of it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fault() -> int:
    import traceback

    traceback.print_exc()
    print("whyhang: internal error; please report it with the lines above", file=sys.stderr)
    return 3
