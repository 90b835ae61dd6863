"""Where a text stands in a file, so that a place inside it can be shown in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whyhang.schemas.evidence import Span

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a text; ``line`` and ``column`` are those of its first character.

    Further lines of the text begin after ``indent`` columns of the file. Where ``exact`` is false
    the text was folded or escaped: every place inside it is then shown as ``whole``.
    """

    whole: Span
    line: int = 0
    column: int = 0
    indent: int = 0
    exact: bool = True

    def span(self, text: str, start: int, end: int) -> Span:
        """The place of ``text[start:end]``; only its first line if it has several."""
        if not self.exact or not self.line:
            return self.whole
        line = text.count("\n", 0, start)
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start, end)
        offset = self.column if line == 0 else self.indent + 1
        return Span(
            file=self.whole.file,
            line=self.line + line,
            column=offset + start - begin,
            length=max(1, (end if stop < 0 else stop) - start),
        )


def place_of_file(file: str) -> Place:
    """The place of a text that is a file by itself."""
    return Place(whole=Span(file=file, line=1, column=1), line=1, column=1)


def split_lines(text: str) -> tuple[str, ...]:
    """The lines as YAML counts them."""
    return tuple(_BREAK.split(text))
