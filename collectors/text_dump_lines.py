"""Cleans the lines of a pasted stack dump: colours, quotes, and what stood before every line.

A prefix (``[rank3]: ``, a container's name, a Ray actor) says who printed a line. Lines of several
processes come interleaved, so each line carries the key of its stream.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
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
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = (
    re.compile(r"\[rank(?P<rank>\d{1,7})\]: ?"),
    re.compile(r"\[\d+,(?P<rank>\d{1,7})\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(r"\[pod/(?P<node>[^\]\s/]+)[^\]\s]*\](?: |\Z)"),  # kubectl logs --prefix
    # A log's time, as programs, `ts`, containers and the journal write it.
    re.compile(
        rf"(?P<stamp>(?:\[{_STAMP}\]|{_STAMP})(?: std(?:out|err) [FP])?"
        r"(?:(?: -)? \[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\]?:?(?: -)?)?(?: |\Z))"
    ),
    re.compile(
        r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )(?P<node>[\w.-]{1,80}) "
        r"[\w./@-]{1,80}(?:\[\d{1,9}\])?:(?: |\Z)"
    ),
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
)
# pdsh and `srun -l` name a host or a task before every line. A name counts where it stands more
# than once before what is certainly of a dump; then it counts before any other line as well.
_LABEL = re.compile(r" {0,3}(?P<label>[A-Za-z][\w.-]{0,80}|\d{1,7}):(?: |\Z)")
_LABELLED = re.compile(
    r"^ {0,3}([A-Za-z][\w.-]{0,80}|\d{1,7}): (?=Thread (?:\d|0x|\()|Process \d+:|Python v\d"
    r"| {4,}\S|\s*File \"|Current thread 0x|Traceback [(f])",
    re.MULTILINE,
)


class Line(NamedTuple):
    """A clean line.

    ``text`` has no blanks at its ends, ``indent`` is how many stood before it. ``stream`` tells
    the printers of interleaved lines apart; ``rank``, ``pid`` and ``node`` are what the prefix
    says. ``padded``: blanks ended the raw line, so what follows a break belongs to another word.
    """

    text: str
    indent: int
    stream: str = ""
    rank: int | None = None
    pid: int | None = None
    padded: bool = False
    node: str | None = None


def clean_lines(text: str) -> Iterator[Line]:
    """The lines of a paste; blank lines and the fences of code blocks come as empty ones."""
    if '{"log":"' in text:
        text = _DOCKER.sub(_unwrap, text)
    text = _ESCAPES.sub("", text).translate(_TYPOGRAPHY)
    if "&lt;" in text or "&quot;" in text:
        text = html.unescape(text)
    if "</" in text:
        text = _TAGS.sub("", text)
    labels = _labels(text)
    before = Line("", 0)
    for raw in _BREAKS.split(text):
        line = _BLANK if not raw or raw.isspace() else _clean(raw[:MAX_LINE], labels)
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


def _labels(text: str) -> frozenset[str]:
    counts = Counter(match[1] for match in _LABELLED.finditer(text))
    return frozenset(label for label, seen in counts.items() if seen > 1)


def _clean(raw: str, labels: frozenset[str]) -> Line:
    rest = _unquote(raw)
    stream, rank, pid, node = "", None, None, None
    for _ in range(MAX_PREFIXES):
        match = _first_prefix(rest, labels)
        if match is None:
            break
        found = match.groupdict()
        label = found.get("label")
        if label is not None:
            found["rank" if label.isdecimal() else "node"] = label
        rank = rank if found.get("rank") is None else int(found["rank"])
        pid = pid if found.get("pid") is None else int(found["pid"])
        node = found.get("node") or node
        stream += match[0][len(found.get("stamp") or "") :].strip()
        rest = _unquote(rest[match.end() :])
    expanded = rest.expandtabs(_TAB)
    text = expanded.strip()
    if text[:3] in ("```", "~~~"):
        text = ""
    indent = len(expanded) - len(expanded.lstrip())
    padded = bool(text) and expanded[-1].isspace()
    return Line(text, indent, stream, rank, pid, padded, node)


def _unquote(text: str) -> str:
    quotes = _QUOTES.match(text) if ">" in text[:4] else None
    return text if quotes is None else text[quotes.end() :]


def _first_prefix(text: str, labels: frozenset[str]) -> re.Match[str] | None:
    # Most lines of a dump start with blanks or a word: only few of them can have a prefix.
    head = text[:90]
    if not (":" in head or "|" in head or ">> " in head or head[:1] in "[("):
        return None
    for prefix in _PREFIXES:
        match = prefix.match(text)
        if match is not None:
            return match
    label = _LABEL.match(text) if labels else None
    return label if label is not None and label["label"] in labels else None
