"""How numbers, times and states read for people: the same words in every report."""

from __future__ import annotations

from datetime import datetime, timezone

from whyhang.renderers.clean import one_line, shorten
from whyhang.schemas.incident import Incident
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.truth import Truth
from whyhang.schemas.verdict import VerdictKind

SHOWN_RUNS = 8
SHOWN_NAMELESS = 8
SHOWN_NODES = 6
_LONGEST_NAME = 80

VERDICT_WORDS: dict[VerdictKind, str] = {
    "local_hang": "Local hang",
    "global_hang": "Global hang",
    "slow": "Slow",
    "no_hang": "No hang",
    "inconclusive": "Inconclusive",
}
TRUTH_WORDS = {Truth.TRUE: "✓ yes", Truth.FALSE: "✗ no", Truth.UNKNOWN: "? unknown"}
SOURCE_WORDS = {
    "stacks": "stacks",
    "io": "process I/O",
    "log": "training log",
    "nccl_ras": "NCCL RAS",
    "gpu": "GPU facts",
    "fr": "flight recorder",
}
# The letters of /proc/PID/stat.
STATE_WORDS = {
    "R": "running",
    "S": "sleeping",
    "D": "uninterruptible sleep",
    "T": "stopped",
    "t": "stopped by a tracer",
    "Z": "zombie",
    "X": "exited",
    "I": "idle",
}


def moment(text: str) -> str:
    """An ISO time in UTC to the second, for reading; what is none stays as it is."""
    clean = one_line(text)
    try:
        # Python 3.10 reads no trailing Z.
        at = datetime.fromisoformat(clean[:-1] + "+00:00" if clean.endswith("Z") else clean)
    except ValueError:
        return clean
    if at.tzinfo is None:
        return f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """``45 s``, ``10 min 45 s``, ``3 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + " s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def ranks(members: RankSet, runs: int = SHOWN_RUNS) -> str:
    """``rank 3``, ``ranks 0-5/7``; bounded to so many runs, with the number left out."""
    if not members:
        return "no rank"
    return f"{'rank' if len(members) == 1 else 'ranks'} {members.format(runs)}"


def state(letter: str | None, wchan: str | None) -> str:
    """``D (uninterruptible sleep) in nfs_wait_bit_killable``; empty where nothing is known."""
    if letter is None:
        return f"in {one_line(wchan)}" if wchan else ""
    clean = one_line(letter)
    words = f"{clean} ({STATE_WORDS[clean]})" if clean in STATE_WORDS else clean
    return f"{words} in {one_line(wchan)}" if wchan else words


def some(items: tuple[str, ...], limit: int) -> str:
    """The items joined by commas, past ``limit`` the number of those left out."""
    shown = [one_line(item) for item in items[:limit]]
    if len(items) > limit:
        shown.append(f"+{len(items) - limit}")
    return ", ".join(shown)


def nodes(incident: Incident, ranks: RankSet) -> str:
    """The machines of these ranks."""
    names = (node.name for node in incident.nodes if node.ranks & ranks)
    return some(tuple(shorten(one_line(name), _LONGEST_NAME) for name in names), SHOWN_NODES)
