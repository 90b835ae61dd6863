"""How soon a collective's timeout ends a job and its evidence, as far as command lines tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

# Options by the last part of their name, and the seconds that one of their units has.
_OPTIONS = {
    "distributed_timeout_minutes": 60.0,  # Megatron
    "ddp_timeout": 1.0,  # Hugging Face
    "train_timeout_seconds": 1.0,  # torchtitan, in the section `comm`
}
# Where nothing is said torchtitan waits this long after the first step; PyTorch itself 600 s.
_TORCHTITAN = re.compile(r"(?:^|[/.])torchtitan(?:$|[/.])")
_TORCHTITAN_SECONDS = 100.0


def group_timeout(command_lines: Iterable[Sequence[str]]) -> float | None:
    """The shortest timeout in seconds that any command line tells; None where none does."""
    return min((seconds for words in command_lines for seconds in _timeouts(words)), default=None)


def _timeouts(words: Sequence[str]) -> Iterator[float]:
    told = False
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        unit = _OPTIONS.get(name.lstrip("-").replace("-", "_").lower().rpartition(".")[2])
        if unit is None:
            continue
        value = value if equals else next(iter(words[number + 1 : number + 2]), "")
        if re.fullmatch(r"\d{1,9}", value, re.ASCII):
            told = True
            yield int(value) * unit
    if not told and any(map(_TORCHTITAN.search, words)):
        yield _TORCHTITAN_SECONDS
