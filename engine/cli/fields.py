"""``whyhang fields``: what conditions may ask, of whom, and what the answer is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``whyhang fields``."""
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def run(options: argparse.Namespace) -> int:
    """Print the table of fields."""
    if options.format == "json":
        print(json.dumps(list(_rows()), indent=2))
    elif options.format == "markdown":
        from whyhang.rules.reference import field_table

        print(*field_table(), sep="\n")
    else:
        print(*_lines(), sep="\n")
    return 0


def _rows() -> Iterator[dict[str, object]]:
    from whyhang.rules.fields import FIELDS

    for info in FIELDS.values():
        yield {
            "name": info.name,
            "type": info.type,
            "scopes": list(info.scopes),
            "doc": info.doc,
            "values": list(info.values),
        }


def _lines() -> Iterator[str]:
    from whyhang.rules.fields import FIELDS
    from whyhang.rules.reference import scope_words

    names = max(map(len, FIELDS))
    scopes = max(len(scope_words(info.scopes)) for info in FIELDS.values())
    for info in FIELDS.values():
        values = f" ({', '.join(info.values)})" if info.values else ""
        about = scope_words(info.scopes)
        yield f"{info.name:{names}}  {info.type:8}  {about:{scopes}}  {info.doc}{values}"
