"""Cleans the lines of a pasted stack dump: colours, quotes, and what stood before every line.

A prefix (``[rank3]: ``, a container's name, a Ray actor) says who printed a line. Lines of several
processes come interleaved, so each line carries the key of its stream.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_PREFIXES = 4
# Longer lines are no part of a stack (a command line may be long, but not that long).
MAX_LINE = 16 * 1024
_TAB = 4

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Docker's own log files: one JSON object a line.
_DOCKER = re.compile(r"^\{\"log\":\".*\}\r?$", re.MULTILINE)
_BREAKS = re.compile(r"\r\n|\r|\n")
_QUOTES = re.compile(r"(?: {0,3}> ?)+(?!>)")
# Typographic quotes, blanks that are none, and marks without a width: what web pages make of text.
_TYPOGRAPHY = str.maketrans(
    {
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00a0": " ",
        "\u200b": None,
        "\ufeff": None,
        "\0": None,
    }
)
_TAGS = re.compile(
    r"</?(?:details|summary|p|br|b|i|em|strong|code|pre|li|ul|ol|h[1-6]|span|div)(?: [^<>]*)?/?>",
    re.IGNORECASE,
)
_PREFIXES = (
    re.compile(r"\[rank(?P<rank>\d{1,7})\]: ?"),
    re.compile(r"\[\d+,(?P<rank>\d{1,7})\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(r"\[pod/[^\]\s]+\] "),  # kubectl logs --prefix
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?:std(?:out|err) [FP] )?"),
    re.compile(r"\([A-Za-z_][\w.]* pid=(?P<pid>\d{1,9})(?:, ip=[\d.]+)?\) ?"),  # Ray
    re.compile(r"[\w.-]{1,80} >> "),
    # srun -l; py-spy numbers its causes alike (`    0: Failed to …`).
    re.compile(
        r" {0,6}(?P<rank>\d{1,7}): (?=\s*\Z| {4,}\S|\s*(?:Thread |Process \d|Python v\d|Parent Proc"
        r"|Error|Reason|Current thread|Traceback|File \"|#\d))"
    ),
    re.compile(r"\[[A-Za-z_][\w-]*?(?P<rank>\d{1,7})\]:"),  # torchrun --tee
    # docker compose; a row of a table has a number or a heading in its second cell.
    re.compile(r"[A-Za-z0-9][\w.-]{0,80} *\|(?! *(?:\d+|pid|location) *\|) ?", re.IGNORECASE),
    # pdsh: a host's name, only before what is certainly of a dump.
    re.compile(
        r"[A-Za-z][\w.-]{0,80}: (?=Thread (?:\d|0x|\()|Process \d+:|Python v\d| {4,}\S|\s*File \")"
    ),
)


class Line(NamedTuple):
    """A clean line.

    ``text`` has no blanks at its ends, ``indent`` is how many stood before it. ``stream`` tells
    the printers of interleaved lines apart, ``rank`` and ``pid`` are what the prefix says.
    ``padded``: blanks ended the raw line, so what follows a break belongs to another word.
    """

    text: str
    indent: int
    stream: str = ""
    rank: int | None = None
    pid: int | None = None
    padded: bool = False


def clean_lines(text: str) -> Iterator[Line]:
    """The lines of a paste; blank lines and the fences of code blocks come as empty ones."""
    if '{"log":"' in text:
        text = _DOCKER.sub(_unwrap, text)
    text = _ESCAPES.sub("", text).translate(_TYPOGRAPHY)
    if "&lt;" in text or "&quot;" in text:
        text = html.unescape(text)
    if "</" in text:
        text = _TAGS.sub("", text)
    before = Line("", 0)
    for raw in _BREAKS.split(text):
        line = _BLANK if not raw or raw.isspace() else _clean(raw[:MAX_LINE])
        if line is not _BLANK or before is not _BLANK:
            yield line
        before = line


_BLANK = Line("", 0)


def _unwrap(match: re.Match[str]) -> str:
    try:
        line = json.loads(match[0]).get("log")
    except (ValueError, RecursionError):
        return match[0]
    return line.rstrip("\n") if isinstance(line, str) else match[0]


def _clean(raw: str) -> Line:
    rest = _unquote(raw)
    stream, rank, pid = "", None, None
    for _ in range(MAX_PREFIXES):
        match = _first_prefix(rest)
        if match is None:
            break
        found = match.groupdict()
        rank = rank if found.get("rank") is None else int(found["rank"])
        pid = pid if found.get("pid") is None else int(found["pid"])
        stream += "" if match[0][:4].isdecimal() else match[0].strip()
        rest = _unquote(rest[match.end() :])
    expanded = rest.expandtabs(_TAB)
    text = expanded.strip()
    if text[:3] in ("```", "~~~"):
        text = ""
    indent = len(expanded) - len(expanded.lstrip())
    padded = bool(text) and expanded[-1].isspace()
    return Line(text, indent, stream, rank, pid, padded)


def _unquote(text: str) -> str:
    quotes = _QUOTES.match(text) if ">" in text[:4] else None
    return text if quotes is None else text[quotes.end() :]


def _first_prefix(text: str) -> re.Match[str] | None:
    # Most lines of a dump start with blanks or a word: only few of them can have a prefix.
    head = text[:90]
    if not (":" in head or "|" in head or ">> " in head or head[:1] in "[("):
        return None
    for prefix in _PREFIXES:
        match = prefix.match(text)
        if match is not None:
            return match
    return None
