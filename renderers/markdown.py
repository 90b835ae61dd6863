"""The diagnosis as one Markdown page for a ticket or a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from whyhang.renderers.brief import brief
from whyhang.renderers.clean import one_line
from whyhang.schemas.diagnosis import Diagnosis

_TEMPLATES = Path(__file__).parent / "templates"
_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^(?:#|[-+](?= ))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_FENCE = re.compile("`+")


def render_markdown(
    diagnosis: Diagnosis, *, files: Sequence[str] = (), command: str | None = None
) -> str:
    """The page. ``files`` are the reports beside it, ``command`` makes it again."""
    return _template().render(brief=brief(diagnosis, files=files, command=command))


@lru_cache(maxsize=1)
def _template() -> Template:
    # Markdown is no HTML: each value is escaped by the filter that fits its place.
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(md=plain, code=code, cell=cell, sentence=sentence, prose=prose)
    return environment.get_template("diagnosis.md.j2")


def plain(text: str) -> str:
    """Text from outside as Markdown that shows as it is: no markup, no HTML."""
    entities = re.sub("[&<>]", lambda match: _ENTITIES[match[0]], one_line(text))
    return _SPECIAL.sub(lambda match: "\\" + match[0], entities)


def code(text: str) -> str:
    """Text as a code span, whatever backticks it holds; an empty text as ``unknown``."""
    clean = one_line(text) or "unknown"
    fence = "`" * (max((len(run) for run in _FENCE.findall(clean)), default=0) + 1)
    pad = " " if clean[0] == "`" or clean[-1] == "`" else ""
    return f"{fence}{pad}{clean}{pad}{fence}"


def cell(text: str) -> str:
    """Text as a code span in a table, where a bar ends the cell even in code."""
    return code(text).replace("|", "\\|") if text else ""


def sentence(text: str) -> str:
    """Plain text that starts with a capital."""
    return plain(sentence_case(text))


def prose(text: str) -> str:
    """Our own sentences: plain text in which backticks mark commands."""
    parts = one_line(text).split("`")
    if len(parts) % 2 == 0:
        return sentence(text)
    shown = [code(part) if number % 2 else _piece(part) for number, part in enumerate(parts)]
    return sentence_case("".join(shown))


def _piece(text: str) -> str:
    """Plain text with the blanks at its ends, which part it from the code beside it."""
    inner = text.strip()
    if not inner:
        return text
    at = text.index(inner)
    return f"{text[:at]}{plain(inner)}{text[at + len(inner) :]}"


def sentence_case(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]
