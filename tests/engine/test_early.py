"""Looks at a silent job before any threshold: when they are taken, and which are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from whyhang.engine.early import EarlyLooks
from whyhang.engine.group_timeout import group_timeout

if TYPE_CHECKING:
    from whyhang.engine.log_watch import LogWatch
    from whyhang.engine.stall import Stall

LOG = cast("LogWatch", None)


class Samples:
    """Stands for a stall: counts looks, remembers whether it was thrown away."""

    def __init__(self) -> None:
        self.samples = 0
        self.is_discarded = False

    def look(self, log: LogWatch, *, deep: bool) -> None:
        """Take one; never one that stops a process."""
        assert not deep
        self.samples += 1

    def discard(self) -> None:
        """Throw it away."""
        self.is_discarded = True


@pytest.fixture
def begun() -> list[Samples]:
    """The stalls that were begun."""
    return []


@pytest.fixture
def looks(begun: list[Samples]) -> EarlyLooks:
    """Looks of a job whose timeout nobody tells."""

    def begin() -> Stall:
        begun.append(Samples())
        return cast("Stall", begun[-1])

    return EarlyLooks(begin)


def test_looks_come_in_time_for_the_timeout(looks: EarlyLooks, begun: list[Samples]) -> None:
    """Two come before a collective ends the job, whatever its timeout is."""
    for timeout, first in ((None, 240), (600.0, 240), (1800.0, 240), (100.0, 40), (10.0, 30)):
        looks.expect(timeout)
        looks.look(first - 1, LOG)
        assert looks.stall is None
        looks.look(first, LOG)
        looks.look(first + 1, LOG)
        assert begun[-1].samples == 1
        looks.look(2 * first, LOG)
        assert begun[-1].samples == 2
        looks.drop()


def test_there_are_always_two_samples_to_compare(looks: EarlyLooks, begun: list[Samples]) -> None:
    """A full set stays until the next one tells as much; what is not kept is thrown away."""
    kept = []
    for count in range(1, 9):
        looks.look(240.0 * count, LOG)
        kept.append(cast("Samples", looks.stall).samples)
    assert kept == [1, 2, 3, 3, 2, 3, 3, 2]
    assert [each.is_discarded for each in begun] == [True, True, False]
    looks.look(240.0 * 9, LOG)
    looks.look(240.0 * 10, LOG)
    assert cast("Samples", looks.take()) is begun[2]
    assert [each.is_discarded for each in begun] == [True, True, False, True]
    assert looks.stall is None


def test_progress_throws_all_away(looks: EarlyLooks, begun: list[Samples]) -> None:
    """A job that goes on is looked at anew after its next long silence."""
    looks.look(240.0, LOG)
    looks.look(3.0, LOG)
    assert begun[0].is_discarded
    looks.look(239.0, LOG)
    assert looks.stall is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pretrain_gpt.py --distributed-timeout-minutes 5", 300.0),
        ("train.py --ddp_timeout=180000", 180000.0),
        ("-m torchtitan.train --comm.train_timeout_seconds 300", 300.0),
        ("-m torchtitan.train --job.config_file x.toml", 100.0),
        ("/src/torchtitan/train.py", 100.0),
        ("train.py --ddp_timeout", None),
        ("train.py --ddp_timeout soon", None),
        ("train.py --timeout 3", None),
    ],
)
def test_command_lines_tell_the_timeout(words: str, expected: float | None) -> None:
    """The options of frameworks, and the default of the one whose default is short."""
    assert group_timeout([("python3", *words.split())]) == expected
    assert group_timeout([("python3",), ("python3", *words.split())]) == expected
