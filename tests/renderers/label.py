"""Frame labels taken apart again, as their readers do."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANKS = re.compile(r"[0-9/+-]*\|[0-9/+-]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The parts of a frame label, the rank lists as text (bounded ones hold ``/+N``)."""

    thread: str
    function: str
    path: str
    ranks_in: str
    ranks_not_in: str

    def __str__(self) -> str:
        ranks = f"{self.ranks_in}|{self.ranks_not_in}"
        return f"{self.thread}@{self.function}@{self.path}@{ranks}"


def split_label(label: str) -> Label:
    """Take a label apart, from both ends, so that an ``@`` inside a path stays there.

    Raises ValueError where it is not a label.
    """
    thread, first, rest = label.partition("@")
    function, second, rest = rest.partition("@")
    path, third, ranks = rest.rpartition("@")
    if not (first and second and third and _RANKS.match(ranks)):
        raise ValueError(f"not a frame label: {label!r}")
    ranks_in, _, ranks_not_in = ranks.partition("|")
    return Label(
        thread=thread, function=function, path=path, ranks_in=ranks_in, ranks_not_in=ranks_not_in
    )
