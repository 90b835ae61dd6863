"""Did you mean …?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Below this likeness a suggestion confuses more than it helps.
CUTOFF = 0.6


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like ``word``, None if none is like it."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=CUTOFF)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question ``did you mean `x`?``, empty if no known word is like ``word``."""
    match = closest(word, known)
    return f"did you mean `{match}`?" if match else ""
