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
# Docker's own log files, and what collectors of logs export: one JSON object a line.
_JSON_LINE = re.compile(r"^\{\"\w+\": ?.*\}\r?$", re.MULTILINE)
_MESSAGES = ("log", "message", "msg", "MESSAGE", "text", "line")
_PRINTERS = ("host", "hostname", "_HOSTNAME", "node", "pod")
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
    # mpirun --tag-output, horovodrun
    re.compile(r"\[(?:\d+,)?(?P<rank>\d{1,7})\]<std(?:out|err)>: ?"),
    re.compile(r"\[pod/(?P<node>[^\]\s/]+)[^\]\s]*\](?: |\Z)"),  # kubectl logs --prefix
    # The journal's lines, and a log's time as programs, `ts` and containers write it.
    re.compile(
        rf"(?P<stamp>(?:{_STAMP}|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d) )(?P<node>[\w.-]{{1,80}}) "
        r"[\w./@-]{1,80}\[\d{1,9}\]:(?: |\Z)"
    ),
    re.compile(
        rf"(?P<stamp>(?:\[{_STAMP}\]|{_STAMP})(?: std(?:out|err) [FP])?"
        r"(?:(?: -)? \[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\]?:?(?: -)?)?(?: |\Z))"
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
    r"| {4,}\S|\s*File \"|Current thread 0x|Traceback [(f]|\[rank\d)",
    re.MULTILINE,
)
_VALUE = re.compile(r"\"[\w.-]{1,80}\": ?\"")
# The lines that tell any other prefix: a file's name of grep, the numbers of `cat -n`.
_SURE = re.compile(
    r"Thread (?:\d+|0x[0-9A-Fa-f]+) \((?:idle|active|active\+gil|gil)\)"
    r"|Process \d{1,9}: |Python v\d+\.\d"
)
_RANK_IN_PREFIX = re.compile(r"(?<![A-Za-z])rank[-_ =]?(\d{1,7})", re.IGNORECASE)
# A prefix that stands before so many lines names their printer; a number or a time changes.
_LINES_OF_A_PRINTER = 4
_MAX_PREFIX = 120


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
    if text.lstrip()[:2] == '{"' or '\n{"' in text:
        text = _JSON_LINE.sub(_unwrap, text)
    text = _ESCAPES.sub("", text).translate(_TYPOGRAPHY)
    for _ in range(2):  # some pages escape what was escaped
        if re.search(r"&(?:amp;)?(?:lt|quot|#34);", text):
            text = html.unescape(text)
    if text.count("\\n    ") > text.count("\n"):  # a value of JSON
        text = _VALUE.sub("\n", text).replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if "</" in text:
        text = _TAGS.sub("", text)
    labels = _labels(text)
    before = Line("", 0)
    lines = _BREAKS.split(text)
    other = _other_prefix(lines, labels)
    for raw in lines:
        line = _BLANK if not raw or raw.isspace() else _clean(raw[:MAX_LINE], labels, other)
        if line is not _BLANK or before is not _BLANK:
            yield line
        before = line


_BLANK = Line("", 0)


def _unwrap(match: re.Match[str]) -> str:
    try:
        found = json.loads(match[0])
    except (ValueError, RecursionError):
        return match[0]
    if not isinstance(found, dict):
        return match[0]
    message = next((found[key] for key in _MESSAGES if key in found), None)
    if not isinstance(message, str):
        return match[0]
    printer = next((found[key] for key in _PRINTERS if isinstance(found.get(key), str)), "")
    prefix = f"{printer}: " if re.fullmatch(r"[A-Za-z][\w.-]{0,80}", printer) else ""
    return "\n".join(prefix + line for line in message.rstrip("\n").split("\n"))


def _labels(text: str) -> frozenset[str]:
    counts = Counter(match[1] for match in _LABELLED.finditer(text))
    return frozenset(label for label, seen in counts.items() if seen > 1)


class _OtherPrefix(NamedTuple):
    """A prefix of no known form, its digits left open; ``names`` whether it tells the printer."""

    pattern: re.Pattern[str]
    names: bool


def _other_prefix(lines: list[str], labels: frozenset[str]) -> _OtherPrefix | None:
    """What stands before most of the lines that are certainly of a dump, if it is one thing."""
    shapes: Counter[str] = Counter()
    for raw in lines:
        if "Thread " in raw or "Process " in raw or "Python v" in raw:
            rest = _without_prefixes(raw[:MAX_LINE], labels)
            match = _SURE.search(rest, 0, _MAX_PREFIX + 80)
            if match is not None and match.start() <= _MAX_PREFIX:
                shapes[re.sub(r"\d+", "0", rest[: match.start()].lstrip())] += 1
    if not shapes:
        return None
    shape, seen = shapes.most_common(1)[0]
    if not shape.strip() or seen < 2 or seen * 2 <= shapes.total():
        return None
    body = re.escape(shape.rstrip(" ")).replace("0", r"\d+")
    pattern = re.compile(rf"\s*{body}" + ("(?: |\\Z)" if shape.endswith(" ") else ""))
    prefixes = Counter(match[0] for match in map(pattern.match, lines) if match is not None)
    many = prefixes.total() >= _LINES_OF_A_PRINTER * len(prefixes)
    return _OtherPrefix(pattern, many)


def _without_prefixes(raw: str, labels: frozenset[str]) -> str:
    rest = _unquote(raw)
    for _ in range(MAX_PREFIXES):
        match = _first_prefix(rest, labels)
        if match is None:
            break
        rest = _unquote(rest[match.end() :])
    return rest


def _clean(raw: str, labels: frozenset[str], other: _OtherPrefix | None) -> Line:
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
    match = None if other is None else other.pattern.match(rest)
    if match is not None and other is not None:
        told = _RANK_IN_PREFIX.search(match[0])
        rank = rank if told is None else int(told[1])
        stream += match[0].strip() if other.names else "" if told is None else told[0]
        rest = rest[match.end() :]
    expanded = rest.expandtabs(_TAB)
    text = expanded.strip()
    if text[:3] in ("```", "~~~") or text.startswith(("{code", "{noformat")):
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
