"""Several values of JSON in one text, with headings between them: dumps that were pasted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from whyhang.collectors.text_dump_headers import Header, group_header
from whyhang.collectors.text_dump_lines import clean_lines

# py-spy's dump is an array of objects, the flight recorder's an object. Inside of one no line of
# the usual printers begins in this way.
_START = re.compile(r"^(?:> ?)?(?=\[\s*\{|\{)", re.MULTILINE)


def split_values(text: str) -> Iterator[tuple[str, object, str]]:
    """Each value with the text that stands above it, and its own text."""
    decoder = json.JSONDecoder()
    end = 0
    for match in _START.finditer(text):
        if match.end() < end:
            continue
        try:
            found, after = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        yield text[end : match.start()], found, text[match.end() : after]
        end = after


def heading_in(above: str) -> Header:
    """The last heading of a text: whose the value below it is."""
    found = [group_header(line.text) for line in clean_lines(above)]
    return next((header for header in reversed(found) if header is not None), Header())
