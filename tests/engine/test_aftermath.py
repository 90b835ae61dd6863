"""When a hang is looked at again, and what counts as a change of its verdict."""

from __future__ import annotations

from dataclasses import replace

from whyhang.engine.aftermath import Aftermath, gist
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.verdict import Suspects, Verdict


def test_three_looks_each_light_then_deep() -> None:
    """At 10, 30 and 60 minutes, first without stopping anybody, 10.5 s later with native frames."""
    aftermath = Aftermath(100.0)
    seen = []
    for now in range(100, 5000):
        look = aftermath.due(float(now))
        if look is not None:
            seen.append((now, look))
    assert seen == [
        (700, "light"),
        (711, "deep"),
        (1900, "light"),
        (1911, "deep"),
        (3700, "light"),
        (3711, "deep"),
    ]
    assert aftermath.is_over


def test_looks_slept_through_are_one() -> None:
    """A watcher that was stopped for hours looks once, not three times."""
    aftermath = Aftermath(0.0)
    assert aftermath.due(10_000.0) == "light"
    assert not aftermath.is_over
    assert aftermath.due(10_005.0) is None
    assert aftermath.due(10_011.0) == "deep"
    assert aftermath.is_over
    assert aftermath.due(20_000.0) is None


def test_only_what_people_act_on_is_a_change() -> None:
    """Another suspect or certainty is news, other words and evidence are not."""
    verdict = Verdict(
        verdict="local_hang",
        category="user_code",
        confidence="medium",
        headline="rank 2 stands",
        suspects=Suspects(ranks=RankSet([2])),
    )
    assert gist(verdict) == gist(replace(verdict, headline="for 10 minutes", print_id="1"))
    for other in (
        replace(verdict, confidence="high"),
        replace(verdict, category="disk_io"),
        replace(verdict, verdict="no_hang"),
        replace(verdict, suspects=Suspects(ranks=RankSet([2, 3]))),
    ):
        assert gist(verdict) != gist(other)
