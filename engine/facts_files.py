"""The node facts of a sample, read back from ``<node>.facts.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyhang.schemas.errors import FormatError
from whyhang.schemas.missing import Missing
from whyhang.schemas.node_facts import NodeFacts
from whyhang.schemas.node_facts_codec import decode_node_facts

SUFFIX = ".facts.json"
MAX_BYTES = 64 << 20


def read_facts(folder: Path) -> Mapping[str, NodeFacts | Missing]:
    """What the nodes of a sample told of themselves, by node; Missing where a file is damaged.

    The document names its node; a damaged one goes by its file.
    """
    found: dict[str, NodeFacts | Missing] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        # Opening a pipe or a device would never end.
        if path.is_file():
            facts = _read(path)
            stem = path.name.removesuffix(SUFFIX)
            found[stem if isinstance(facts, Missing) else facts.node or stem] = facts
    return found


def _read(path: Path) -> NodeFacts | Missing:
    try:
        if path.stat().st_size > MAX_BYTES:
            return Missing(f"{path.name}: too long")
        return decode_node_facts(path.read_bytes())
    except OSError as error:
        return Missing(f"{path.name}: {error.strerror}")
    except FormatError as error:
        return Missing(f"{path.name}: {error.message}")
