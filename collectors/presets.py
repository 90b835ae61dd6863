"""Presets: what a clean piece of a log says about the progress of training."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Protocol

from whyhang.collectors.bar_latch import BarLatch
from whyhang.collectors.preset_family import Family
from whyhang.collectors.preset_patterns import (
    COUNTER,
    FAMILIES,
    SPECIFIC,
    TQDM_BAR,
    TQDM_OPEN,
    TQDM_OTHER,
    TQDM_TRAINING,
)
from whyhang.collectors.presets_hf import HF
from whyhang.collectors.presets_phases import EPOCHS, PHASES
from whyhang.schemas.progress import EventKind, LogLine

# Long enough for the widest progress line known (verl prints some 4 KiB), short enough for regexes.
_MAX_SEARCHED = 16 * 1024
_MAX_TEXT = 400
# What is read again once `auto` has found the preset.
_KEPT_PIECES = 2000
# How long a generic choice may still give way to a framework's own preset, in pieces.
_PROBED_PIECES = 20_000
_ENOUGH_RISES = 3
_GENERIC = ("tqdm", "step", "epoch")
_OWN_LINES = ("running training", "{'loss':", "'objective/", ", 'epoch': ")


class Preset(Protocol):
    """Reads the lines of one family of frameworks.

    ``others`` counts movements of bars that belong to other phases (evaluation, loading): the job
    is alive, though training does not advance. ``literals``: a line that says something has one of
    these; None if any line may.
    """

    name: str
    others: int
    literals: tuple[bytes, ...] | None

    def read(self, piece: str) -> LogLine | None:
        """What the piece says; None if nothing."""
        ...


class PatternPreset:
    """A family from the table of patterns."""

    def __init__(self, family: Family) -> None:
        self.name = family.name
        self.others = 0
        self.literals = family.literals
        self._family = family
        self._bars = BarLatch() if family.latch else None

    def read(self, piece: str) -> LogLine | None:
        searched = piece[:_MAX_SEARCHED]
        ignored = self._family.ignored
        if ignored is not None and ignored.search(searched):
            return None
        for pattern in self._family.patterns:
            if pattern.literal not in searched:
                continue
            match = pattern.regex.search(searched)
            if match is not None:
                return self._judged(pattern.kind, match, piece)
        return None

    def _judged(self, kind: EventKind, match: re.Match[str], piece: str) -> LogLine | None:
        line = _line(kind, match, piece)
        if self._bars is None or line.total is None:
            return line
        if kind == "init":
            self._bars.pin(line.total)
        elif kind == "progress" and line.step is not None:
            ours, moved = self._bars.admits("", line.step, line.total)
            if not ours:
                self.others += moved
                return None
        return line


class TqdmPreset:
    """Any progress bar, with or without a description."""

    def __init__(self) -> None:
        self.name = "tqdm"
        self.others = 0
        self.literals: tuple[bytes, ...] | None = (b"%|", b"it [", *(PHASES.literals or ()))
        self._bars = BarLatch()
        self._phases = PatternPreset(PHASES)
        self._other_steps: dict[str, int] = {}

    def read(self, piece: str) -> LogLine | None:
        searched = piece[:_MAX_SEARCHED]
        match = TQDM_BAR.search(searched) if "%|" in searched else None
        if match is None and "it [" in searched:
            match = TQDM_OPEN.search(searched)
        if match is None:
            return None if "%|" in searched else self._phases.read(piece)
        line = _line("progress", match, piece)
        if line.step is None:
            return None
        # Metrics may stand before the bar as well; they come and go.
        about = re.sub(r"[\w/-]+: #\.#(?:e-#)?[, ]*", "", re.sub(r"\d+", "#", match["about"]))
        about = about.strip()
        behind = match.end("total" if "total" in match.re.groupindex else "step")
        if TQDM_OTHER.search(match["about"]) or TQDM_OTHER.search(searched, behind):
            self.others += self._other_steps.get(about, line.step) != line.step
            self._other_steps[about] = line.step
            return None
        named = TQDM_TRAINING.search(about) is not None
        ours, moved = self._bars.admits(about, line.step, line.total or 0, named=named)
        if not ours:
            self.others += moved
            return None
        epoch = re.search(r"(?i)\bepoch\W{0,3}(\d+)|^\s*(\d+)/\d+\s", match["about"])
        return line if epoch is None else replace(line, epoch=float(epoch[1] or epoch[2]))


class LinesPreset:
    """Any line counts: the weakest signal."""

    def __init__(self) -> None:
        self.name = "lines"
        self.others = 0
        self.literals: tuple[bytes, ...] | None = None

    def read(self, piece: str) -> LogLine | None:
        return LogLine(kind="progress", text=piece[:_MAX_TEXT])


class RegexPreset:
    """A user's own regex; its group ``step`` is required.

    Raises ValueError for a bad regex or one without ``step``.
    """

    def __init__(self, pattern: str) -> None:
        self.name = "pattern"
        self.others = 0
        self.literals: tuple[bytes, ...] | None = None
        try:
            self._regex = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regex: {error}") from error
        if "step" not in self._regex.groupindex:
            raise ValueError("a progress pattern needs a group named `step`: (?P<step>\\d+)")

    def read(self, piece: str) -> LogLine | None:
        match = self._regex.search(piece[:_MAX_SEARCHED])
        if match is None:
            return None
        line = _line("progress", match, piece)
        return None if line.step is None else line


class _Candidate:
    """Counts how often a preset's step rose in what was seen."""

    def __init__(self, preset: Preset, family: Family | None, own_line: bool = False) -> None:
        self.preset = preset
        self._hints = family.hints if family is not None else ("%|", "it [")
        # Every loop may draw a bare bar: a family of bars must also show a line of its own.
        self._ends_only = family is not None and family.ends_only
        self._wants_own_line = own_line
        self._rises = 0
        self._last = -math.inf
        self._epoch = math.inf
        self._rises_in_epoch = 0
        self._last_epoch = -math.inf

    def feed(self, piece: str, lowered: str) -> None:
        if self._wants_own_line and any(own in lowered for own in _OWN_LINES):
            self._wants_own_line = False
        if not any(hint in lowered for hint in self._hints):
            return
        line = self.preset.read(piece)
        if line is None or line.kind != "progress":
            return
        if line.step is None:
            # Where no bars are drawn, lines tell the share of an epoch alone.
            if line.epoch is not None and line.epoch > self._last_epoch:
                self._rises_in_epoch += 1
                self._last_epoch = line.epoch
            return
        is_later = line.epoch is not None and line.epoch > self._epoch
        if line.epoch is not None:
            self._epoch = line.epoch
        if line.step > self._last or is_later or (self._ends_only and line.step == line.total):
            self._rises += 1
        elif line.step < self._last:
            self._rises = 1
        self._last = line.step

    def proven(self) -> bool:
        return max(self._rises, self._rises_in_epoch) >= _ENOUGH_RISES and not self._wants_own_line


class PresetReader:
    """Reads a log with a named preset, with a user's regex, or with what fits (``auto``).

    While ``auto`` has not found a preset nothing is answered; then the last 2,000 pieces are read
    again with it, so that nothing is lost. A generic choice (``tqdm``, ``step``) still gives way to
    a framework's own preset. Raises ValueError for an unknown name or a bad pattern.
    """

    def __init__(self, name: str = "auto", pattern: str | None = None) -> None:
        self._chosen: Preset | None = None
        self._candidates: list[_Candidate] = []
        self._kept: deque[tuple[str, int | None, float]] = deque(maxlen=_KEPT_PIECES)
        self._probed = 0
        self._others_before = 0
        if pattern is not None:
            self._chosen = RegexPreset(pattern)
        elif name != "auto":
            self._chosen = find_preset(name)
        else:
            self._candidates = _all_candidates()

    @property
    def preset(self) -> str | None:
        """The name of the preset in use; None while none was found."""
        return None if self._chosen is None else self._chosen.name

    @property
    def literals(self) -> tuple[bytes, ...] | None:
        """Lines without one of these say nothing; None where any line may say something.

        Where thousands were tried in vain, they are the words of all presets: without one of these
        no line counts for any.
        """
        if self._chosen is None:
            return _hinting() if self._probed > _PROBED_PIECES else None
        return None if self._candidates else self._chosen.literals

    @property
    def others(self) -> int:
        """How often bars of other phases have moved: a rise says that the job is alive."""
        return self._others_before + (0 if self._chosen is None else self._chosen.others)

    def pass_over(self, pieces: int) -> None:
        """So many pieces of a flood were not fed: a generic choice has been tried on them, too."""
        if self._chosen is not None and self._candidates:
            self._probed += pieces

    def feed(self, piece: str, rank: int | None = None) -> Iterable[LogLine]:
        """What the piece, or what was kept before it, says about progress."""
        return tuple(line for _, line in self.feed_at(0.0, piece, rank))

    def feed_at(
        self, now: float, piece: str, rank: int | None = None
    ) -> Iterator[tuple[float, LogLine]]:
        """The same, each line with the time at which its piece was fed."""
        if self._candidates:
            before = self._chosen
            self._probe(piece)
            if before is None:
                self._kept.append((piece, rank, now))
                if self._chosen is not None:
                    for kept, kept_rank, at in self._kept:
                        yield from ((at, line) for line in self._read(kept, kept_rank))
                    self._kept.clear()
                return
        yield from ((now, line) for line in self._read(piece, rank))

    def _read(self, piece: str, rank: int | None) -> Iterator[LogLine]:
        line = None if self._chosen is None else self._chosen.read(piece)
        if line is not None:
            yield line if rank is None else replace(line, rank=rank)

    def _probe(self, piece: str) -> None:
        lowered = piece[:_MAX_SEARCHED].lower()
        for candidate in self._candidates:
            candidate.feed(piece, lowered)
        proven = [one.preset for one in self._candidates if one.proven()]
        if proven:
            self._choose(self._best(proven, piece))
            return
        self._probed += 1
        if self._chosen is not None and self._probed > _PROBED_PIECES:
            self._candidates = []

    def _best(self, proven: list[Preset], piece: str) -> Preset:
        """Of frameworks that print the same progress lines, the one whose other lines are there."""
        frameworks = [preset for preset in proven if preset.name not in _GENERIC]
        if len(frameworks) < 2:
            return (frameworks or proven)[0]
        pieces = [kept for kept, *_ in self._kept] + [piece]

        def understood(preset: Preset) -> int:
            fresh = find_preset(preset.name)
            return sum(fresh.read(one) is not None for one in pieces)

        return max(frameworks, key=understood)

    @staticmethod
    def _gives_way(chosen: str, other: str) -> bool:
        """Epochs are coarser than steps, and both say less than a framework's own lines."""
        if chosen not in _GENERIC or other == chosen:
            return False
        return other not in _GENERIC or chosen == "epoch"

    def _choose(self, preset: Preset) -> None:
        if self._chosen is None:
            # Fresh, because it is going to read the kept pieces again.
            self._chosen = find_preset(preset.name)
            self._probed = 0
        else:
            self._others_before += self._chosen.others
            preset.others = 0
            self._chosen = preset
        self._candidates = [
            one for one in self._candidates if self._gives_way(preset.name, one.preset.name)
        ]


def find_preset(name: str) -> Preset:
    """A preset by its name or alias. Raises ValueError that lists the names."""
    if name == "tqdm":
        return TqdmPreset()
    if name == "lines":
        return LinesPreset()
    for family in FAMILIES:
        if name == family.name or name in family.aliases:
            return PatternPreset(family)
    raise ValueError(f"no preset is called {name!r}; there are: {', '.join(preset_names())}")


def preset_names() -> tuple[str, ...]:
    """All names and aliases, families first."""
    names = ["auto", "lines", "tqdm", *(family.name for family in FAMILIES)]
    aliases = [alias for family in FAMILIES for alias in family.aliases]
    return (*names, *aliases)


def _all_candidates() -> list[_Candidate]:
    specific = [_Candidate(PatternPreset(family), family) for family in SPECIFIC]
    return [
        *specific,
        _Candidate(PatternPreset(HF), HF, own_line=True),
        _Candidate(TqdmPreset(), None),
        _Candidate(PatternPreset(COUNTER), COUNTER),
        _Candidate(PatternPreset(EPOCHS), EPOCHS),
    ]


@cache
def _hinting() -> tuple[bytes, ...]:
    """The shortest hints of all families, as they are usually written."""
    hints = {"%|", "it [", *_OWN_LINES, *(hint for family in FAMILIES for hint in family.hints)}
    short = sorted(one for one in hints if not any(o != one and o in one for o in hints))
    cased = ((one, one.capitalize(), one.title(), one.upper()) for one in short)
    return tuple(dict.fromkeys(word.encode() for words in cased for word in words))


def _line(kind: EventKind, match: re.Match[str], piece: str) -> LogLine:
    found = match.groupdict()
    milliseconds = _number(found.get("ms"))
    seconds = _number(found.get("seconds")) if milliseconds is None else milliseconds / 1000.0
    return LogLine(
        kind=kind,
        step=_count(found.get("step")),
        total=_count(found.get("total")),
        epoch=_number(found.get("epoch") or found.get("later_epoch")),
        loss=_number(found.get("loss")),
        seconds_per_step=seconds,
        text=piece[:_MAX_TEXT],
    )


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if text[-1] in "kM" and len(text) <= 16:
        return int(float(text[:-1]) * (1000 if text[-1] == "k" else 1_000_000))
    if "." in text and len(text) <= 16:
        return int(float(text))
    digits = text.replace(",", "").replace("_", "").strip()
    # Sixteen digits are beyond any counter and below Python's limit for int().
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 16 else None


def _number(text: str | None) -> float | None:
    try:
        number = math.nan if text is None else float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
