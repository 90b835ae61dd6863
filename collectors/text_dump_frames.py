"""Frames as text: py-spy's ``name (file:line)``, CPython's ``File "…", line N``, gdb's ``#0 …``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from whyhang.schemas.frame import Frame, is_address

_SOURCE = r"py|pyw|pyi|pyx|pxd|ipynb"
_NATIVE_SOURCE = r"c|cc|cpp|cxx|c\+\+|cu|cuh|h|hh|hpp|inc|ipp|tcc|rs|S|s|go"
_FILE = re.compile(
    rf"(?:[^()]*\.(?:{_SOURCE}|{_NATIVE_SOURCE}|so(?:\.[\w.]+)?)|<[^<>()]+>|\?)"
    r"(?::(?:\d+|\.{3}|…|\?))?"
    r"|(?!\d+:)[^()\s]+:\d+"
)
_LINE = re.compile(r":(\d{1,9}|\.{3}|…|\?)\Z")
_NATIVE_FILE = re.compile(rf"\.(?:{_NATIVE_SOURCE}|so[\w.]*)\Z")
_PYTHON_FILE = re.compile(rf".*\.(?:{_SOURCE})\Z|<.*>\Z", re.DOTALL)
# The name of a program or library without a known ending, such as `python3.11` or `[vdso]`.
_BINARY = re.compile(r"\[?[\w.+-]+\]?\Z")
_PLACE = re.compile(r" \(([^()]*)\)")
_LEADING = re.compile(r"(?:[\s|→←⟵⟶⇒➜▶►•*·,>=-]|<[-=])*(?:#?\d{1,3}[.):]?\s+)?")
_ARROW_FIRST = re.compile(r"\s*(?:→|⇒|➜|▶|►|[-=]+>)")
_DOWNWARDS = re.compile(r"→|⇒|➜|[-=]+>")
_REMARK = re.compile(r"\s*(?:<[-=]|←|⟵|⬅|#|//|!|--|→|[-=]+>|\*|\[|,\s*$)")
_ELISION_WORDS = re.compile(
    r"omit|snip|frame|more|same|trunc|elide|skip|cut|repeat|etc", re.IGNORECASE
)
_LEFT_OUT = re.compile(r"(?:and )?\d+ (?:more |other |further )?(?:frames?|lines?)\b")
_BRACKETS = " \t|[](){}<>-=*#_·•→←"
_QUOTED_FILE = re.compile(
    r"(?:\((?P<language>Python|C|C\+\+)\) )?File:? \"(?P<file>[^\"]*)\", line (?P<line>\d+|\?+)"
    r"(?:,? in (?P<name>.*))?\Z"
)
_BINARY_FILE = re.compile(r"Binary file \"(?P<file>[^\"]*)\"(?:, at (?P<name>[^+\s\[]+))?")
# A traceback has a comma before `in`, faulthandler has none; their orders are opposite.
_OF_TRACEBACK = re.compile(r"File:? \"[^\"]*\", line \d+, in ")
_EU_FRAME = re.compile(
    r"#\d+\s+0x[0-9a-f]+(?: - 1)?\s+(?!in )(?P<name>[^\s(].*?)(?: - (?P<file>/\S+))?\Z"
)
_GDB_NUMBER = re.compile(r"#(\d+)\s+")
_GDB_ADDRESS = re.compile(r"0x[0-9a-fA-F]+ in ")
_GDB_PYTHON = re.compile(
    r"(?:#\d+\s+)?Frame 0x[0-9a-f]+, for file (?P<file>.*?), line (?P<line>\d+),"
    r" in (?P<name>\S+)"
)
_NUMBERED = re.compile(r"(?P<name>\S+) from (?P<file>\S+?):(?P<line>\d+)\Z")
_AT_SOURCE = re.compile(r" at (\S+):(\d+)\s*\Z")
_FROM_LIBRARY = re.compile(r" from (\S+)\s*\Z")
_PACKAGE = re.compile(r".*/(?:site-packages|dist-packages)/(.+)\Z")
_LIBRARY = re.compile(r".*/lib(?:64)?/python\d[\d.]*/(.+)\Z")


@dataclass(frozen=True, slots=True)
class FrameText:
    """What one line holds: frames in the line's order, innermost first.

    ``edited``: an arrow or a remark was added by hand, so frames may be missing.
    """

    frames: tuple[Frame, ...]
    edited: bool = False


def parse_frames(text: str, *, strict: bool) -> FrameText | None:
    """The frames of a line in py-spy's form; None where it is none.

    ``strict`` (the line is not indented below a thread): only what names a file counts, or prose
    with something in parentheses would pass for a frame.
    """
    if not text.rstrip().endswith(")") and ")" not in text:
        return None
    places = [match for match in _PLACE.finditer(text) if _is_place(match[1], strict=strict)]
    known = [match for match in places if _FILE.fullmatch(match[1])]
    places = known or places[-1:]
    if not places:
        return None
    remark = text[places[-1].end() :].strip()
    if remark and not _REMARK.match(remark):
        return None
    starts = [0, *(match.end() for match in places[:-1])]
    names = [
        _LEADING.sub("", text[start : match.start()], count=1).rstrip(" |,")
        for start, match in zip(starts, places, strict=True)
    ]
    if not all(names) or (strict and not all(map(_may_be_name, names))):
        return None
    if not known and any(" " in name and not _is_cxx(name) for name in names):
        return None
    frames = tuple(make_frame(name, match[1]) for name, match in zip(names, places, strict=True))
    between = [text[match.end() : after.start()].strip()[:3] for match, after in pairwise(places)]
    downwards = bool(between) and all(_DOWNWARDS.match(gap) for gap in between)
    edited = bool(remark.strip(" ,|")) or downwards or bool(_ARROW_FIRST.match(text))
    return FrameText(frames[::-1] if downwards else frames, edited)


def make_frame(name: str, place: str) -> Frame:
    """A frame from its name and what stands in the parentheses (``file:line``, library, empty)."""
    found = _LINE.search(place)
    file = (place if found is None else place[: found.start()]).strip()
    line = _count(found[1]) if found is not None and found[1].isdecimal() else 0
    if not file.strip(".…"):
        return _python_frame(name, None, line)
    if _PYTHON_FILE.match(file):
        return _python_frame(name, file, line)
    if found is None or _NATIVE_FILE.search(file) or _is_cxx(name):
        short = file.rsplit("/", 1)[-1]
        if is_address(name):
            # An address differs in every process: kept, no two ranks would share a stack.
            name = "?" + short
        return Frame(name, file, short, line, file)
    return _python_frame(name, file, line)


def parse_file_line(text: str) -> Frame | None:
    """A frame of a traceback, of faulthandler, of ``py-bt`` or of pystack."""
    if "ile" not in text:
        return None
    match = _QUOTED_FILE.match(text)
    if match is not None:
        line = int(match["line"]) if match["line"].isdecimal() and len(match["line"]) < 10 else 0
        name, file = (match["name"] or "?").strip(), match["file"]
        if match["language"] in ("C", "C++"):
            head, _, library = name.rpartition(" (")
            name, library = (head, library.rstrip(")")) if head else (name, file or "?")
            return Frame(name, file or library, file.rsplit("/", 1)[-1] or library, line, library)
        return _python_frame(name, file, line)
    match = _BINARY_FILE.match(text)
    if match is not None:
        library = match["file"] or "?"
        short = library.rsplit("/", 1)[-1]
        return Frame(match["name"] or "?" + short, library, short, 0, library)
    match = _GDB_PYTHON.match(text)
    if match is not None:
        return _python_frame(match["name"], match["file"], _count(match["line"]))
    return None


def is_of_traceback(text: str) -> bool:
    """Whether a frame stands as a traceback writes it, which goes from the outermost inwards."""
    return _OF_TRACEBACK.match(text) is not None


def parse_numbered(text: str) -> Frame | None:
    """A frame with a number before it: gdb's, or ``#56 forward from /path/model.py:2083``."""
    match = _GDB_NUMBER.match(text)
    if match is None:
        return None
    rest = text[match.end() :]
    numbered = _NUMBERED.match(rest)
    if numbered is not None:
        return _python_frame(numbered["name"], numbered["file"], _count(numbered["line"]))
    eu_stack = _EU_FRAME.match(text)
    if eu_stack is not None:
        file = eu_stack["file"] or "?"
        return Frame(eu_stack["name"], file, file.rsplit("/", 1)[-1], 0, file)
    address = _GDB_ADDRESS.match(rest)
    return gdb_frame(rest if address is None else rest[address.end() :])


def gdb_frame(text: str) -> Frame | None:
    """``name (arguments) at file:line`` or ``name () from library``."""
    name = text.partition(" (")[0].strip()
    if not name or ("(" not in text and " at " not in text):
        return None
    source = _AT_SOURCE.search(text)
    if source is not None:
        file, line = source[1], _count(source[2])
        return Frame(name, file, file.rsplit("/", 1)[-1], line, file)
    library = _FROM_LIBRARY.search(text)
    file = library[1] if library is not None else "?"
    short = file.rsplit("/", 1)[-1]
    return Frame("?" + short if name == "??" else name, file, short, 0, file)


def is_elision(text: str) -> bool:
    """Whether a line says that frames were left out."""
    if len(text) > 200:
        return False
    core = text.strip(_BRACKETS)
    dots = core.replace(" ", "")
    if dots and not dots.strip(".…⋮"):
        return len(dots) >= 3 or not dots.strip("…⋮")
    told = (
        core.startswith(("...", "…")) or len(core.split()) == 1 or _LEFT_OUT.match(core) is not None
    )
    return told and _ELISION_WORDS.search(core) is not None and "(" not in core


def _python_frame(name: str, file: str | None, line: int) -> Frame:
    short = file
    if file is not None and file.startswith(("/", "~/")):
        below = _PACKAGE.match(file) or _LIBRARY.match(file)
        short = below[1] if below is not None else None
    return Frame(name, file, short, line)


def _is_place(place: str, *, strict: bool) -> bool:
    return bool(_FILE.fullmatch(place) or (not strict and (not place or _BINARY.match(place))))


def _may_be_name(name: str) -> bool:
    return _is_cxx(name) or " " not in name


def _is_cxx(name: str) -> bool:
    return "::" in name or "(" in name or ("<" in name and not name.startswith("<"))


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 10 else 0
