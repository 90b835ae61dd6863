"""From the bytes of a log to clean pieces, each the text of one line or one state of a bar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

# A regex must never be handed a config dump of megabytes.
MAX_PIECE_BYTES = 64 * 1024
MAX_PREFIXES = 4

_BREAKS = re.compile(rb"[\r\n]+")
_DOCKER = b'{"log":"'
_ESCAPES_TEXT = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[@-Z\\-_])"
    r"|\x08+"
)
_ESCAPES = re.compile(_ESCAPES_TEXT)
_RAW_ESCAPES = re.compile(_ESCAPES_TEXT.encode())
_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d))"

# Each is tried at the start of the piece. `rank` is the global one, `local` counts within a node.
_CRI = re.compile(_STAMP + r" (?:stdout|stderr) (?P<tag>[FP])(?: |$)")
_KUBECTL_STAMP = re.compile(_STAMP + r" ")  # kubectl logs --timestamps
_TORCHX = re.compile(r"[\w.-]+/\d+ (?=\[)")  # TorchX, NeMo-Run
_SRUN = re.compile(r" {0,6}(?P<rank>\d{1,6}): (?=[\S ])")  # srun -l, NVRx
_BRACKETED = (
    re.compile(r"\[pod/[^\]]+\] "),  # kubectl logs --prefix
    re.compile(r"\[rank(?P<rank>\d{1,9})\]:(?: |(?=\[))"),  # c10d's hook, C++ logging
    re.compile(r"\[[A-Za-z_][\w-]*?(?P<local>\d{1,9})\]:"),  # torchrun --tee
    re.compile(r"\[\d+,(?P<rank>\d{1,9})\]<std(?:out|err)>: ?"),  # mpirun --tag-output
)
_RAY = (re.compile(r"\([A-Za-z_][\w.]* pid=\d+(?:, ip=[\d.]+)?\) "),)
_NUMERIC = (_CRI, _KUBECTL_STAMP, _TORCHX, _SRUN)
# By the first character, since most pieces of most logs have no prefix.
_BY_FIRST = {"[": _BRACKETED, "(": _RAY, " ": (_SRUN,), **dict.fromkeys("0123456789", _NUMERIC)}
_REPEATED = "x across cluster]"
_RAY_REPEATED = re.compile(r" \[repeated \d+x across cluster\]$")
# Standard logging writes while the line of a bar is still open: cut behind the closing bracket.
_GLUED_BAR = re.compile(r"(\d{1,3}%\|[^|]*\| *\d+/\d+ \[[^\]]*\])(?=\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A clean piece of a log.

    ``rank`` is what a known prefix says; with ``local`` it counts within one node only.
    ``stamp`` is the timestamp that a container runtime put before the line.
    """

    text: str
    rank: int | None = None
    local: bool = False
    stamp: str | None = None


class Normaliser:
    """Cleans the bytes of one source; keeps the begun line of a container runtime between calls."""

    def __init__(self) -> None:
        self._begun = ""
        self._is_cut = False  # of the line that was begun the rest follows
        self._logged: dict[str, str] = {}  # the begun line of each stream that docker keeps
        self.in_container = False  # the runtime's tags were seen: lines may come in parts

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The non-blank pieces of ``data``, which must end with whole lines. Never raises."""
        for raw in _BREAKS.split(data):
            raw = raw.lstrip(b"\0")
            if not raw or raw.isspace():
                continue
            logged = _docker_line(raw) if raw.startswith(_DOCKER) else None
            if logged is None:
                yield from self._clean(_decode(raw))
            else:
                for text in self._parted(*logged):
                    yield from self._clean(text)

    def _parted(self, stream: str, text: str) -> Iterator[str]:
        """What docker wrote as one line: it may hold states of a bar, or be a part of a line."""
        *whole, begun = re.split(r"[\r\n]", self._logged.get(stream, "") + text)
        self._logged[stream] = begun[-MAX_PIECE_BYTES:]
        yield from (state[:MAX_PIECE_BYTES] for state in whole if state.strip())

    def _clean(self, text: str) -> Iterator[Piece]:
        if self._is_cut and _CRI.match(text) is None:
            # A later state of a bar, within the line that was cut: what came before is whole.
            before, self._is_cut = self._begun, False
            yield from self._clean(before)
            self._begun, self._is_cut = text[:MAX_PIECE_BYTES], True
            return
        if "\x1b" in text or "\b" in text:
            text = _ESCAPES.sub("", text)
        rank: int | None = None
        local = False
        stamp: str | None = None
        for _ in range(MAX_PREFIXES):
            match = _first_prefix(text)
            if match is None:
                break
            found = match.groupdict()
            text = text[match.end() :]
            stamp = found.get("stamp") or stamp
            if found.get("rank") is not None:
                rank, local = int(found["rank"]), False
            elif found.get("local") is not None and rank is None:
                rank, local = int(found["local"]), True
            if match.re is _CRI:
                self.in_container = True
                # Runtimes cut lines at 16 KiB: tag P says that the rest follows.
                text = (self._begun + text)[: 2 * MAX_PIECE_BYTES]
                self._is_cut = found["tag"] == "P"
                self._begun = text if self._is_cut else ""
                if self._is_cut:
                    return
        if text.endswith(_REPEATED):
            text = _RAY_REPEATED.sub("", text)
        glued = _GLUED_BAR.search(text) if "%|" in text else None
        parts = (text,) if glued is None else (text[: glued.end(1)], text[glued.end(1) :])
        for part in parts:
            if part.strip():
                yield Piece(text=part, rank=rank, local=local, stamp=stamp)


def normalise(data: bytes) -> Iterator[Piece]:
    """The clean pieces of a whole log. Never raises."""
    return Normaliser().feed(data)


def strip_escapes(data: bytes) -> bytes:
    """Without colours, cursor movements and backspaces, which may stand in the midst of words."""
    return _RAW_ESCAPES.sub(b"", data) if b"\x1b" in data or b"\b" in data else data


def split_prefixes(line: str) -> tuple[str, str]:
    """Who printed a line, by the prefixes before it, and the line without them.

    Timestamps, which differ from line to line, are left out of the first.
    """
    source = ""
    for _ in range(MAX_PREFIXES):
        match = _first_prefix(line)
        if match is None:
            break
        line = line[match.end() :]
        source += "" if "stamp" in match.re.groupindex else match[0]
    return source, line


def _first_prefix(text: str) -> re.Match[str] | None:
    for prefix in _BY_FIRST.get(text[:1], (_TORCHX,)):
        match = prefix.match(text)
        if match is not None:
            return match
    return None


def _docker_line(raw: bytes) -> tuple[str, str] | None:
    """Stream and text of a line of docker's json-file log; None for any other JSON."""
    try:
        found = json.loads(raw[: 2 * MAX_PIECE_BYTES])
    except (ValueError, RecursionError):
        return None
    text, stream = found.get("log"), found.get("stream")
    return (stream, text) if isinstance(text, str) and stream in ("stdout", "stderr") else None


def _decode(raw: bytes) -> str:
    if len(raw) > MAX_PIECE_BYTES:
        half = MAX_PIECE_BYTES // 2
        raw = raw[:half] + b" ... " + raw[-half:]
    return raw.decode("utf-8", errors="replace")
