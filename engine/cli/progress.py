"""``whyhang progress LOG``: what the tailer makes of a log, one event a line."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyhang.collectors.log_pieces import Place
    from whyhang.schemas.progress import LogLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``progress``."""
    parser.add_argument("log", type=Path, help="the log to read, from its beginning")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--preset", default="auto", help="a preset's name, `lines`, or `auto` (the default)"
    )
    chosen.add_argument("--pattern", help="your own regex; it needs a group (?P<step>…)")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text")


def run(options: argparse.Namespace) -> int:
    """Read the log and print its events; the preset is named on stderr."""
    from whyhang.schemas.errors import UsageError

    log: Path = options.log
    if not log.is_file():
        raise UsageError(f"no such log file: {log}")
    preset = options.preset
    if preset == "auto" and options.pattern is None:
        preset = _detected(log)
    if preset is None:
        _say("no preset fits this log: name one with --preset, or test your own --pattern")
        return 0
    count = 0
    for place, line in _events(log, preset, options.pattern):
        count += 1
        print(_jsonl(place, line) if options.format == "jsonl" else _text(place, line))
    name = "your pattern" if options.pattern is not None else f"preset {preset}"
    _say(f"{name}: {count} events")
    if preset == "lines" and options.pattern is None:
        _say("any line counts as progress: the weakest signal, for logs go on in a hang, too")
    return 0


def _detected(log: Path) -> str | None:
    from whyhang.collectors.log_pieces import detect_preset, read_blocks

    with _complaints(log):
        return detect_preset(read_blocks(log))


def _events(log: Path, preset: str, pattern: str | None) -> Iterator[tuple[Place, LogLine]]:
    """The log's events. What goes wrong in printing them is not blamed on reading."""
    from whyhang.collectors.log_pieces import read_blocks, read_progress

    with _complaints(log):
        yield from read_progress(read_blocks(log), preset, pattern)


@contextlib.contextmanager
def _complaints(log: Path) -> Iterator[None]:
    from whyhang.schemas.errors import UsageError

    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"cannot read {log}: {error.strerror}") from error


def _jsonl(place: Place, line: LogLine) -> str:
    event: dict[str, object] = {
        "line_no": place.line_no,
        "seg": place.seg,
        "step": line.step,
        "epoch": line.epoch,
        "loss": line.loss,
        "event": line.kind,
    }
    if line.total is not None:
        event["total"] = line.total
    if line.seconds_per_step is not None:
        event["step_time"] = line.seconds_per_step
    return json.dumps(event)


def _text(place: Place, line: LogLine) -> str:
    where = f"{place.line_no}" if not place.seg else f"{place.line_no}.{place.seg}"
    words = [f"{where:>8}", line.kind]
    if line.step is not None:
        words.append(f"step {line.step}" + ("" if line.total is None else f"/{line.total}"))
    elif line.total is not None:
        words.append(f"total {line.total}")
    if line.epoch is not None:
        words.append(f"epoch {line.epoch:g}")
    if line.loss is not None:
        words.append(f"loss {line.loss:g}")
    if line.seconds_per_step is not None:
        words.append(f"{line.seconds_per_step:g} s/step")
    return "  ".join(words)


def _say(text: str) -> None:
    print(f"whyhang: {text}", file=sys.stderr)
